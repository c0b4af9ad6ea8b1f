package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func everybody(c *Config) { c.Host, c.Token = "0.0.0.0", "a-token-of-some-length" }

func TestOtherHostsAreRefused(t *testing.T) {
	h := serve(t, town())
	for host, code := range map[string]int{
		"127.0.0.1:8765": 200, "localhost:8765": 200, "[::1]:8765": 200, "LOCALHOST.": 200, "127.0.0.1": 200,
		"evil.example:8765": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example": 421, "": 421, "192.0.2.1:8765": 421, "evil.example@127.0.0.1": 421,
	} {
		for _, path := range []string{"/", "/key?key=a", "/style.css"} {
			require.Equal(t, code, browse(h, http.MethodGet, path, nil, from(host)).StatusCode, "%s %s", host, path)
		}
		require.NotContains(t, bodyOf(t, browse(h, http.MethodGet, "/", nil, from("evil.example"))), "host-1")
	}
	all := serve(t, town(), everybody, func(c *Config) { c.Names = []string{"locks.example"} })
	for host, code := range map[string]int{"locks.example": 401, "192.0.2.1:8765": 401, "[2001:db8::1]:8765": 401, "evil.example": 421} {
		require.Equal(t, code, browse(all, http.MethodGet, "/", nil, from(host)).StatusCode, host)
	}
}

func TestOtherSitesAreRefused(t *testing.T) {
	tables := town()
	h := serve(t, tables)
	for _, c := range []struct {
		code                   int
		method, site, mode, to string
	}{
		{200, "GET", "none", "navigate", "document"},       // typed
		{200, "GET", "cross-site", "navigate", "document"}, // a link
		{200, "GET", "same-origin", "cors", "empty"},
		{403, "GET", "cross-site", "no-cors", "image"},
		{403, "GET", "cross-site", "cors", "empty"},
		{403, "GET", "same-site", "cors", "empty"}, // another port of this host
		{403, "GET", "cross-site", "navigate", "iframe"},
		{403, "POST", "cross-site", "navigate", "document"},
	} {
		got := browse(h, c.method, "/", nil, with("Sec-Fetch-Site", c.site), with("Sec-Fetch-Mode", c.mode), with("Sec-Fetch-Dest", c.to))
		require.Equal(t, c.code, got.StatusCode, "%+v", c)
		require.Empty(t, got.Header.Get("Access-Control-Allow-Origin"))
	}
	for _, method := range []string{"PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"} {
		require.Equal(t, http.StatusMethodNotAllowed, browse(h, method, "/", nil).StatusCode, method)
	}
}

func TestAnswersHaveHeadersThatLetNothingIn(t *testing.T) {
	h := serve(t, town())
	for _, path := range []string{"/", "/key?key=a", "/style.css", "/page.js", "/icon.svg", "/absent", "/free?key=a&unit=unit-a", "/key?key="} {
		got := browse(h, http.MethodGet, path, nil)
		csp := got.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			require.Contains(t, csp, part, path)
		}
		require.NotContains(t, csp, "unsafe")
		require.Equal(t, "nosniff", got.Header.Get("X-Content-Type-Options"))
		require.Equal(t, "same-origin", got.Header.Get("Referrer-Policy"))
		require.Equal(t, "no-store", got.Header.Get("Cache-Control"))
		require.NotContains(t, bodyOf(t, got), "<script>")
	}
}

func TestWhoeverLooksNeedsTheToken(t *testing.T) {
	tables := town()
	h := serve(t, tables, everybody)
	for _, path := range []string{"/", "/key?key=a", "/events", "/key/events?key=a", "/free?key=a&unit=unit-a", "/?token=", "/?token=a-token-of-some-lengt", "/?token=a-token-of-some-length2"} {
		got := browse(h, http.MethodGet, path, nil)
		require.Equal(t, http.StatusUnauthorized, got.StatusCode, path)
		require.Empty(t, got.Cookies())
		require.NotContains(t, bodyOf(t, got), "host-1")
	}
	require.Zero(t, tables.readsOf("rows"))
	require.Equal(t, http.StatusUnauthorized, browse(h, http.MethodPost, "/free?key=a", url.Values{"unit": {"unit-a"}}).StatusCode)
	forged := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "holdall-8765", Value: "AAAA.BBBB"}) }
	require.Equal(t, http.StatusUnauthorized, browse(h, http.MethodGet, "/", nil, forged).StatusCode)

	for _, entered := range []*http.Response{
		browse(h, http.MethodGet, "/?token=a-token-of-some-length", nil),
		browse(h, http.MethodPost, "/", url.Values{"token": {"a-token-of-some-length"}}),
	} {
		require.Equal(t, http.StatusOK, entered.StatusCode)
		require.Len(t, entered.Cookies(), 1)
		c := entered.Cookies()[0]
		require.True(t, c.HttpOnly)
		require.Equal(t, http.SameSiteStrictMode, c.SameSite)
		require.NotContains(t, c.Value, "a-token")
		got := browse(h, http.MethodGet, "/", nil, func(r *http.Request) { r.AddCookie(c) })
		require.Equal(t, http.StatusOK, got.StatusCode)
		require.Contains(t, bodyOf(t, got), "host-1")
		// It is one of this process alone.
		require.Equal(t, http.StatusUnauthorized, browse(serve(t, town(), everybody), http.MethodGet, "/", nil, func(r *http.Request) { r.AddCookie(c) }).StatusCode)
	}
	require.Equal(t, http.StatusForbidden, browse(h, http.MethodPost, "/", url.Values{"token": {"a-token-of-some-length"}}, with("Origin", "http://evil.example")).StatusCode)
}

func TestAFormOfAnotherSiteOrSessionFreesNothing(t *testing.T) {
	tables := town()
	h := serve(t, tables)
	form, cookies := formOf(t, browse(h, http.MethodGet, "/free?key=a&unit=unit-a", nil))
	require.Equal(t, "unit-a", form.Get("unit"))
	other, otherCookies := formOf(t, browse(h, http.MethodGet, "/free?key=a&unit=unit-a", nil))
	noProof := url.Values{"unit": {"unit-a"}}
	nothing := func(*http.Request) {}
	for name, c := range map[string]struct {
		form   url.Values
		change []func(*http.Request)
	}{
		"no cookie":              {form, nil},
		"another's cookie":       {form, []func(*http.Request){otherCookies}},
		"another's proof":        {other, []func(*http.Request){cookies}},
		"no proof":               {noProof, []func(*http.Request){cookies}},
		"another site":           {form, []func(*http.Request){cookies, with("Origin", "http://evil.example")}},
		"another port":           {form, []func(*http.Request){cookies, with("Origin", "http://127.0.0.1:9999")}},
		"no origin":              {form, []func(*http.Request){cookies, with("Origin", "null")}},
		"another site, it says":  {form, []func(*http.Request){cookies, with("Sec-Fetch-Site", "cross-site")}},
		"says not where it is":   {form, []func(*http.Request){cookies, without("Origin"), without("Sec-Fetch-Site")}},
		"by another name":        {form, []func(*http.Request){cookies, from("evil.example"), with("Origin", "http://evil.example")}},
		"a form that is too big": {url.Values{"reason": {strings.Repeat("x", largestForm)}, "proof": form["proof"], "unit": {"unit-a"}}, []func(*http.Request){cookies}},
		"a proof in the URL":     {noProof, []func(*http.Request){cookies, func(r *http.Request) { r.URL.RawQuery += "&" + form.Encode() }}},
	} {
		got := browse(h, http.MethodPost, "/free?key=a", c.form, append(c.change, nothing)...)
		require.GreaterOrEqual(t, got.StatusCode, 400, name)
		require.Empty(t, tables.freed, name)
	}
	form.Set("reason", " it hangs ")
	require.Equal(t, http.StatusOK, browse(h, http.MethodPost, "/free?key=a", form, cookies).StatusCode)
	require.Equal(t, []string{"a from unit-a because it hangs"}, tables.freed)
}

func TestReadingOnlyIsReadingOnly(t *testing.T) {
	tables := town()
	h := serve(t, tables, func(c *Config) { c.ReadOnly = true })
	require.NotContains(t, bodyOf(t, browse(h, http.MethodGet, "/key?key=a", nil)), "/free")
	require.Equal(t, http.StatusNotFound, browse(h, http.MethodGet, "/free?key=a&unit=unit-a", nil).StatusCode)
	form, cookies := formOf(t, browse(serve(t, town()), http.MethodGet, "/free?key=a&unit=unit-a", nil))
	require.Equal(t, http.StatusNotFound, browse(h, http.MethodPost, "/free?key=a", form, cookies).StatusCode)
	require.Empty(t, tables.freed)
}
