package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/holdall/holdall/lockset"
)

// keeper stands between the suites and DynamoDB: a server on this host through which all that
// they send goes. So one process alone has the credentials and counts, nothing reaches a table
// outside of the namespace, and when this process ends, however it ends, nothing is sent any more.
type keeper struct {
	to        target
	namespace string
	meter     *meter
	key       string // the access key of those who may ask
	client    aws.HTTPClient

	server *http.Server
	url    string

	mu     sync.Mutex
	tables map[string]bool // that were asked for
}

// keep starts a keeper.
func keep(to target, namespace string, m *meter) (*keeper, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k := &keeper{
		to: to, namespace: namespace, meter: m, key: rand.Text(), url: "http://" + l.Addr().String(), tables: map[string]bool{},
		// The connections that the library recommends, and as many as the suites send requests at a time.
		client: lockset.HTTPClient().WithTransportOptions(func(t *http.Transport) { t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 256 }),
	}
	k.server = &http.Server{Handler: k, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = k.server.Serve(l) }()
	return k, nil
}

// close lets nothing through any more.
func (k *keeper) close() { _ = k.server.Close() }

// asked are the tables that were to be made.
func (k *keeper) asked() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.tables))
}

// ask notes a table that is to be made, and reports whether it is the first time.
func (k *keeper) ask(name string) (first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first = !k.tables[name]
	k.tables[name] = true
	return first
}

func (k *keeper) forget(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.tables, name)
}

// taken is how long a request may be that DynamoDB reads to its end.
const taken = 16 << 20

// longest is how long a request may be: more than DynamoDB takes, which is to say so itself.
const longest = 64 << 20

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longest))
	if err != nil {
		panic(http.ErrAbortHandler) // its sender is gone, or sends too much
	}
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !strings.Contains(r.Header.Get("Authorization"), "Credential="+k.key+"/") {
		refuse(w, "not a request of this run")
		return
	}
	asks, actions, err := admit(operation, body, k.namespace)
	if err == nil {
		err = k.meter.take()
	}
	if err != nil {
		refuse(w, err.Error())
		return
	}
	first := operation == "CreateTable" && k.ask(asks.TableName)
	got, err := k.pass(r, body)
	code := ""
	switch {
	case err != nil:
		code = "(no answer)"
	case got.status != http.StatusOK:
		code = codeOf(got.status, got.body)
	}
	if first && code == "ResourceInUseException" { // it was there, and is somebody else's
		k.forget(asks.TableName)
	}
	k.meter.answered(operation, estimate(operation, actions, len(body), len(got.body)), code)
	if err != nil {
		panic(http.ErrAbortHandler) // nothing was answered, and so it is passed on
	}
	got.hand(w)
}

// answer is what DynamoDB has answered.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// hand passes it on as it came.
func (a answer) hand(w http.ResponseWriter) {
	w.Header()["Date"] = nil // this server's own is none of DynamoDB's
	for name, values := range a.header {
		if name != "Content-Length" && name != "Connection" && name != "Keep-Alive" && name != "Transfer-Encoding" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// pass sends a request on, signed anew, as of the time at which its sender has signed it.
func (k *keeper) pass(from *http.Request, body []byte) (answer, error) {
	ctx := from.Context()
	to, err := http.NewRequestWithContext(ctx, http.MethodPost, k.to.Endpoint+"/", bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	// DynamoDB Local answers what is too long, and then closes the connection on whoever uses it next.
	to.Close = len(body) > taken
	for _, name := range []string{"X-Amz-Target", "Content-Type", "Accept-Encoding"} {
		to.Header.Set(name, from.Header.Get(name))
	}
	signed, err := time.Parse("20060102T150405Z", from.Header.Get("X-Amz-Date"))
	if err != nil {
		return answer{}, err
	}
	credentials, err := k.to.Credentials.Retrieve(ctx)
	if err != nil {
		return answer{}, fmt.Errorf("credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, to, hex.EncodeToString(sum[:]), "dynamodb", k.to.Region, signed); err != nil {
		return answer{}, err
	}
	response, err := k.client.Do(to)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, text}, err
}

// refuse answers in DynamoDB's form, with a code that nobody takes for one of DynamoDB's and
// that is not sent again.
func refuse(w http.ResponseWriter, why string) {
	text, _ := json.Marshal(map[string]string{"__type": "com.holdall#RefusedByThisRun", "message": why})
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(text)
}

// codeOf is the error that an answer is; of a cancelled transaction, with its reasons.
func codeOf(status int, text []byte) string {
	var said struct {
		Type    string                  `json:"__type"`
		Reasons []struct{ Code string } `json:"CancellationReasons"`
	}
	_ = json.Unmarshal(text, &said) // what cannot be read has no code
	if said.Type == "" {
		return fmt.Sprintf("HTTP %d", status)
	}
	code := said.Type[strings.LastIndexByte(said.Type, '#')+1:]
	seen := map[string]bool{}
	for _, r := range said.Reasons {
		if r.Code != "" && r.Code != "None" {
			seen[r.Code] = true
		}
	}
	if len(seen) > 0 {
		code += " [" + strings.Join(slices.Sorted(maps.Keys(seen)), ", ") + "]"
	}
	return code
}
