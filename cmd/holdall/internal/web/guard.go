package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// guard decides who may ask for what. It refuses requests that
//   - name another host: a page of another site has made its own name lead here;
//   - come from another site, unless somebody has followed a link;
//   - show no token, where one is needed;
//   - change something, and do not come from a form of this server's in the same browser.
type guard struct {
	hosts  []string // without ports, in lower case
	anyIP  bool     // addresses are hosts, too: whoever names one was not led here by a name
	token  string   // empty: none is needed
	secret []byte   // of this process: what it signs
	cookie string   // the name of the session's
}

// policy lets a page load the files of this package, and ask this server; nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// newGuard is that of a server that listens at an address; names are further hosts.
func newGuard(address net.Addr, host string, names []string, token string) *guard {
	_, port, _ := net.SplitHostPort(address.String())
	g := &guard{hosts: []string{"localhost", "127.0.0.1", "::1"}, token: token, secret: []byte(rand.Text()), cookie: "holdall-" + port}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		g.anyIP = true
	}
	for _, name := range append(names, host) {
		if name != "" {
			g.hosts = append(g.hosts, strings.ToLower(strings.TrimSuffix(name, ".")))
		}
	}
	return g
}

type refusal struct {
	code int
	why  string
}

// check says why a request is refused, whatever it asks for; nil if it is not.
func (g *guard) check(r *http.Request) *refusal {
	if !g.serves(r.Host) {
		return &refusal{http.StatusMisdirectedRequest, fmt.Sprintf("the host %q is not served here: see --host", r.Host)}
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case site == "" || site == "same-origin" || site == "none":
	case r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document": // a link
	default:
		return &refusal{http.StatusForbidden, "the request comes from another site"}
	}
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		if !sameOrigin(r) {
			return &refusal{http.StatusForbidden, "the request does not come from a page of this server"}
		}
	default:
		return &refusal{http.StatusMethodNotAllowed, "only GET and POST are known"}
	}
	return nil
}

// serves reports whether a Host header names this server.
func (g *guard) serves(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if _, err := netip.ParseAddr(name); err == nil && g.anyIP {
		return true
	}
	return slices.Contains(g.hosts, name)
}

// sameOrigin reports whether a browser says that a page of this server sends a request. One that says
// nothing of where it comes from is not believed.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return r.Header.Get("Sec-Fetch-Site") == "same-origin"
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// isToken compares in a time that tells nothing of the token.
func (g *guard) isToken(given string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(g.token))
	return g.token != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// sign is a proof that this process has made a text for a use.
func (g *guard) sign(use, text string) string {
	mac := hmac.New(sha256.New, g.secret)
	mac.Write([]byte(use + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// session is the browser's, if it shows one that this process has given to it; else empty.
func (g *guard) session(r *http.Request) string {
	c, err := r.Cookie(g.cookie)
	if err != nil {
		return ""
	}
	id, signature, _ := strings.Cut(c.Value, ".")
	if !hmac.Equal([]byte(signature), []byte(g.sign("session", id))) {
		return ""
	}
	return id
}

// begin gives the browser a session. The cookie is sent with nothing that another site begins.
func (g *guard) begin(w http.ResponseWriter) (id string) {
	id = rand.Text()
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // not Secure: whoever wants TLS puts a proxy before it, which speaks HTTP to it
		Name: g.cookie, Value: id + "." + g.sign("session", id), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	return id
}

// isForm reports whether a form was made for the browser's session, which a signature of that proves.
func (g *guard) isForm(r *http.Request, proof string) bool {
	session := g.session(r)
	return session != "" && hmac.Equal([]byte(proof), []byte(g.sign("form", session)))
}

// headers are those of all answers.
func headers(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with less, a browser does not say where a form comes from
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
