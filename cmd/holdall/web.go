package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdall/holdall/cmd/holdall/internal/web"
	"github.com/holdall/holdall/lockset"
	"github.com/holdall/holdall/lockset/inspect"
	"github.com/holdall/holdall/unitofwork"
)

type webFlags struct {
	listen, tokenFile, metrics string
	hosts                      []string
	free                       bool
	every                      time.Duration
	list                       inspect.ListOptions
}

func webCommand(a *app) *cobra.Command {
	var f webFlags
	cmd := &cobra.Command{
		Use:   "web [PREFIX]",
		Short: "Show who has which keys in a browser, as it goes on",
		Long: "web serves pages that show what ls --watch and show say: which keys are held, waited for, dead,\n" +
			"prepared or stuck, and one key's story. It runs until it is interrupted.\n\n" +
			"The tables are read once every --every, however many pages are open, and not at all while none\n" +
			"is. Each time it scans the whole lock table, as ls does; --capacity bounds that.\n\n" +
			"It only reads, unless --allow-free has it offer what free does, but not --now. It serves this host\n" +
			"alone, unless --listen says otherwise: then whoever looks needs the token, which is printed in the\n" +
			"URL or stands in --token-file. It speaks HTTP: put a proxy that speaks TLS before it, or use ssh -L.\n\n" +
			"--metrics names a Prometheus, or a page of metrics in its format, that has those of otelholdall.\n" +
			"OTLP only takes metrics: it cannot be asked for them.",
		Example: "  holdall web\n  holdall web customer: --listen 127.0.0.1:0 --capacity 100\n" +
			"  holdall web --allow-free --metrics http://127.0.0.1:9090",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.list.Prefix = strings.Join(args, "") // of one at most
			return a.web(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8765", "`address` and port to serve at; port 0 is any that is free")
	flags.StringSliceVar(&f.hosts, "host", nil, "`name` by which browsers call this host, besides that of --listen")
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with the token that whoever looks needs")
	flags.BoolVar(&f.free, "allow-free", false, "offer to take keys from their holders")
	flags.StringVar(&f.metrics, "metrics", "", "`URL` of a Prometheus, or of a page of metrics, for rates")
	flags.DurationVar(&f.every, "every", 5*time.Second, "`time` between two readings")
	flags.Float64Var(&f.list.Units, "capacity", 0, "`units` of read capacity a second that a scan may take on average; 0 is as many as it gets")
	flags.BoolVar(&f.list.Consistent, "consistent", false, "read consistently, for twice the capacity")
	return cmd
}

func (a *app) web(ctx context.Context, f webFlags) error {
	host, err := f.check()
	if err != nil {
		return wrongUsage(err)
	}
	cfg := web.Config{
		Title: a.tablesWords(f.list.Prefix), Partly: f.list.Prefix != "", Every: f.every, ReadOnly: !f.free, Host: host, Names: f.hosts,
	}
	if f.metrics != "" {
		if cfg.Rates, err = web.NewMetrics(f.metrics); err != nil {
			return wrongUsage(fmt.Errorf("--metrics: %w", err))
		}
	}
	if cfg.Token, err = f.token(host); err != nil {
		return err
	}
	a.logs = f.free // for whoever asks later who took a key, and why
	tables := &pages{app: a, flags: f, clients: map[string]*unitofwork.Client{}}
	cfg.Tables = tables
	if tables.inspector, err = a.inspector(ctx, func(cfg *lockset.Config) { cfg.Trace = tables.spending() }); err != nil {
		return err
	}
	listener, err := a.serveAt(ctx, f.listen, func(at net.Addr) string { return f.url(host, at, cfg.Token) })
	if err != nil {
		return err
	}
	return web.Serve(ctx, listener, cfg)
}

// serveAt listens at an address, and says the URL of what is served there.
func (a *app) serveAt(ctx context.Context, address string, url func(net.Addr) string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w; 127.0.0.1:0 is a port that is free", err)
	}
	where := url(listener.Addr())
	a.out.line("%s", where)
	if err := a.out.json(map[string]string{"url": where}); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// tablesWords are the tables in words, for the head of each page.
func (a *app) tablesWords(prefix string) string {
	words := "table " + a.table
	if a.units != "" {
		words += ", units " + a.units
	}
	if prefix != "" {
		words += ", keys that begin with " + prefix
	}
	return words
}

// check returns the host of the address to serve at.
func (f *webFlags) check() (host string, err error) {
	host, _, err = net.SplitHostPort(f.listen)
	switch {
	case err != nil:
		return "", fmt.Errorf("--listen is %q: an address with a port is needed, such as 127.0.0.1:0", f.listen)
	case slices.ContainsFunc(f.hosts, func(name string) bool { return !isName(name) }):
		return "", fmt.Errorf("--host is %q: names are needed, or addresses, without a scheme and a port", strings.Join(f.hosts, ","))
	case f.every <= 0 || f.list.Units < 0:
		return "", errors.New("--every is more than zero, and --capacity not less")
	}
	return host, nil
}

// isName reports whether browsers can name a host so.
func isName(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil || name != "" && !strings.ContainsAny(name, ":/@[] ")
}

// shortestToken is of one that somebody has made up; it is asked for over a network.
const shortestToken = 16

// token is what whoever looks needs: that of the file, or else a new one, if others than this host
// are served.
func (f *webFlags) token(host string) (string, error) {
	if f.tokenFile == "" {
		if isLoopback(host) {
			return "", nil
		}
		return rand.Text(), nil
	}
	content, err := os.ReadFile(f.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if len(token) < shortestToken {
		return "", wrongUsage(fmt.Errorf("--token-file: %s has a token of %d bytes, and at least %d are needed", f.tokenFile, len(token), shortestToken))
	}
	return token, nil
}

// isLoopback reports whether an address to listen at is reached from this host alone.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// url is where browsers find the page. A token that stands in a file is not shown.
func (f *webFlags) url(host string, at net.Addr, token string) string {
	_, port, _ := net.SplitHostPort(at.String())
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if len(f.hosts) > 0 {
			host = f.hosts[0]
		}
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/"}
	if token != "" && f.tokenFile == "" {
		u.RawQuery = url.Values{"token": {token}}.Encode()
	}
	return u.String()
}
