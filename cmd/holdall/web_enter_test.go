package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/cmd/holdall/internal/browser"
)

// Whoever is served besides this host enters with the URL that was printed, or types the token.
func TestWebIsEnteredWithTheToken(t *testing.T) {
	t.Parallel()
	b := newLivingBed(t)
	b.actor(t, "holds", "host-1", "a").ready(t)
	s := b.web(t, "--listen", "0.0.0.0:0")
	where, token, _ := strings.Cut(s.url, "?token=")
	chromium := browser.Start(t)
	p := chromium.Open(where, browser.Options{})
	p.Excuse("401")
	require.Equal(t, "Token", p.Text("h1"))
	pictures(t, p, "token")
	p.Click("#token")
	p.Type("not the token" + kb.Enter)
	p.UntilText(".alarm", "That is not the token")
	p.Click("#token")
	p.Type(token + kb.Enter)
	p.UntilText("#link", "Live")
	require.Contains(t, p.Text(inList("a")), "host-1")

	other := strings.Replace(s.url, "127.0.0.1", "localhost", 1) // for which the browser has no cookie
	p = chromium.Open(other, browser.Options{})
	p.UntilText("#link", "Live")
	require.Equal(t, "/", browser.Eval[string](p, "location.pathname + location.search"), "the token does not stay in sight")
	require.Empty(t, browser.Eval[string](p, "document.cookie"), "no script has the session")
}

// A page of another site can neither read the page, nor make it free a key.
func TestOtherSitesCannotUseTheBrowser(t *testing.T) {
	t.Parallel()
	b := newLivingBed(t)
	holder := b.actor(t, "holds", "host-1", "a").ready(t)
	s := b.web(t, "--allow-free")
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!doctype html><link rel=icon href="data:,"><h1>evil</h1><iframe src=%q></iframe>
<form method=post action=%q><input name=unit value=%q><button>Win</button></form>
<script>fetch(%q).then(r => r.text()).then(t => document.title = "read " + t, () => document.title = "refused")</script>`,
			s.url, s.url+"free?key=a", holder.nonce, s.url)
	}))
	t.Cleanup(evil.Close)
	chromium := browser.Start(t)
	p := chromium.Open(s.key("a"), browser.Options{}) // the browser has a session
	p.Click(".button.danger")
	p.UntilText("h1", "Take this key?")
	p = chromium.Open(strings.Replace(evil.URL, "127.0.0.1", "localhost", 1), browser.Options{})
	p.Excuse("403", "CORS", "ERR_FAILED", "ERR_BLOCKED", "frame-ancestors 'none'")
	p.Until("document.title === 'refused'")
	p.Click("button")
	p.UntilText("h1", "Refused")
	require.Equal(t, holder.nonce, b.row(t, "a").Holder.Unit)
}
