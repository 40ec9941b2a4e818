package api

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// cookieOf returns the refresh cookie of an answer.
func cookieOf(t *testing.T, a answer) *http.Cookie {
	t.Helper()
	res := http.Response{Header: a.header}
	cookies := res.Cookies()
	require.Len(t, cookies, 1)
	require.Regexp(t, `^carillon_refresh_[\w-]{16}$`, cookies[0].Name)
	return cookies[0]
}

func sendCookie(c *http.Cookie) header { return header{"Cookie": c.Name + "=" + c.Value} }

// TestTwoInstallationsOnOneHost: browsers send all cookies of a host to each of its ports.
func TestTwoInstallationsOnOneHost(t *testing.T) {
	jar := map[string]string{}
	ask := func(w *world, path string, body any) answer {
		var all []string
		for name, value := range jar {
			all = append(all, name+"="+value)
		}
		a := w.call("", "POST", path, body, header{"Cookie": strings.Join(all, "; ")})
		for _, c := range (&http.Response{Header: a.header}).Cookies() {
			if jar[c.Name] = c.Value; c.MaxAge < 0 {
				delete(jar, c.Name)
			}
		}
		return a
	}
	one, two := newWorld(t), newWorld(t)
	for _, w := range []*world{one, two} {
		ask(w, "/auth/login", map[string]any{"username": "acme-editor", "password": peerPassword}).is(200)
	}
	for range 3 {
		ask(one, "/auth/refresh", nil).is(200)
		ask(two, "/auth/refresh", nil).is(200)
	}
	ask(two, "/auth/logout", nil).is(204)
	ask(two, "/auth/refresh", nil).problem(401, "unauthenticated")
	ask(one, "/auth/refresh", nil).is(200)
	for name := range jar {
		jar[name] = strings.Repeat("x", 200)
	}
	ask(one, "/auth/refresh", nil).problem(401, "unauthenticated")
}

func TestSession(t *testing.T) {
	w := newWorld(t)
	login := w.call("", "POST", "/auth/login", map[string]any{"username": "Acme-Editor", "password": peerPassword}).is(200)
	login.golden("login")
	first := cookieOf(t, login)
	require.True(t, first.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, first.SameSite)
	require.Equal(t, "/api/v1/auth", first.Path)
	require.False(t, first.Secure, "plain HTTP on loopback")
	require.WithinDuration(t, time.Now().Add(7*24*time.Hour), first.Expires, time.Minute)
	body := into[Login](login)
	expires, err := time.Parse(time.RFC3339, body.ExpiresAt)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(10*time.Minute), expires, 5*time.Second)

	w.bearers["me"] = body.AccessToken
	w.call("me", "GET", "/me", nil).is(200).golden("me")

	refreshed := w.call("", "POST", "/auth/refresh", nil, sendCookie(first)).is(200)
	second := cookieOf(t, refreshed)
	require.NotEqual(t, first.Value, second.Value)
	w.call("", "POST", "/auth/refresh", nil, sendCookie(first)).is(200) // two tabs
	w.call("", "POST", "/auth/refresh", nil, sendCookie(second)).is(200)

	again := cookieOf(t, w.call("", "POST", "/auth/login", map[string]any{"username": "acme-editor", "password": peerPassword}).is(200))
	out := w.call("", "POST", "/auth/logout", nil, sendCookie(again)).is(204)
	require.Empty(t, out.body)
	require.Negative(t, cookieOf(t, out).MaxAge, "the browser forgets it")
	w.call("", "POST", "/auth/refresh", nil, sendCookie(again)).problem(401, "unauthenticated")
	w.call("", "POST", "/auth/logout", nil).is(204)
}

func TestPreferences(t *testing.T) {
	w := newWorld(t)
	chosen := map[string]any{"language": "zh", "theme": "dark"}
	w.call("acme/viewer", "PUT", "/me/preferences", chosen).is(204)
	require.Equal(t, domain.Preferences{Language: "zh", Theme: "dark"}, into[Me](w.call("acme/viewer", "GET", "/me", nil).is(200)).User.Preferences)
	other := w.call("", "POST", "/auth/login", map[string]any{"username": "acme-viewer", "password": peerPassword}).is(200)
	require.Equal(t, "zh", into[Login](other).User.Preferences.Language, "on another machine")
	require.Empty(t, into[Me](w.call("acme/editor", "GET", "/me", nil).is(200)).User.Preferences, "of one user")

	w.call("acme/viewer", "PUT", "/me/preferences", map[string]any{"language": "fr"}).problem(422, "validation_failed")
	w.key("key", "viewer")
	w.call("key", "PUT", "/me/preferences", chosen).problem(403, "permission_denied")
	w.call("acme/viewer", "PUT", "/me/preferences", map[string]any{}).is(204)
	require.Empty(t, into[Me](w.call("acme/viewer", "GET", "/me", nil).is(200)).User.Preferences)
}

func TestLoginRefusals(t *testing.T) {
	w := newWorld(t)
	try := func(user, password string) web.Problem {
		return w.call("", "POST", "/auth/login", map[string]any{"username": user, "password": password}).problem(401, "unauthenticated")
	}
	require.Equal(t, try("acme-editor", "wrong").Detail, try("nobody", "wrong").Detail)
	w.call("", "POST", "/auth/login", map[string]any{"username": "acme-editor", "password": peerPassword, "tenant": "beta"}).problem(403, "permission_denied")
	for range 4 {
		try("acme-editor", "wrong")
	}
	a := w.call("", "POST", "/auth/login", map[string]any{"username": "acme-editor", "password": peerPassword})
	a.problem(429, "rate_limited")
	require.Regexp(t, `^([1-9]|1[0-2])$`, a.header.Get("Retry-After"))
	require.NotContains(t, w.logText(), peerPassword)
}

func TestCookieRoutesRefuseOtherSites(t *testing.T) {
	w := newWorld(t)
	cookie := cookieOf(t, w.call("", "POST", "/auth/login", map[string]any{"username": "acme-editor", "password": peerPassword}).is(200))
	for name, h := range map[string]header{
		"cross-site":            {"Sec-Fetch-Site": "cross-site"},
		"same-site, not origin": {"Sec-Fetch-Site": "same-site"},
		"old browser":           {"Origin": "https://evil.example"},
		"null origin":           {"Origin": "null"},
	} {
		w.run(t, name, func(*testing.T) {
			w.call("", "POST", "/auth/refresh", nil, sendCookie(cookie), h).problem(403, "permission_denied")
			w.call("", "POST", "/auth/logout", nil, sendCookie(cookie), h).problem(403, "permission_denied")
			w.call("", "POST", "/auth/login", map[string]any{"username": "x", "password": "y"}, h).problem(403, "permission_denied")
		})
	}
	w.call("", "POST", "/auth/refresh", nil, sendCookie(cookie), header{"Sec-Fetch-Site": "same-origin"}).is(200)
}

func TestNoCORS(t *testing.T) {
	w := newWorld(t)
	a := w.call("acme/viewer", "GET", "/jobs", nil, header{"Origin": "https://evil.example"}).is(200)
	require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
	a = w.call("", "OPTIONS", "/jobs", nil, header{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"})
	require.GreaterOrEqual(t, a.status, 400)
	require.Empty(t, a.header.Get("Access-Control-Allow-Origin"))
}

func TestCookieIsSecureWithTLS(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewTLSServer(w.handler)
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+web.Base+"/auth/login",
		strings.NewReader(`{"username":"acme-editor","password":"`+peerPassword+`"}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	client := server.Client()
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, 200, res.StatusCode)
	require.True(t, res.Cookies()[0].Secure)
	require.Equal(t, "max-age=31536000", res.Header.Get("Strict-Transport-Security"))
}

// TestExpiredAccessToken lets eleven minutes pass.
func TestExpiredAccessToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		token := w.as("acme/viewer")
		w.call("acme/viewer", "GET", "/version", nil).is(200)
		time.Sleep(11 * time.Minute)
		require.Equal(t, token, w.as("acme/viewer"))
		p := w.call("acme/viewer", "GET", "/version", nil).problem(401, "token_expired")
		require.Equal(t, "the access token has expired", p.Detail)
	})
}

func TestPassword(t *testing.T) {
	w := newWorld(t)
	change := func(current, next string) answer {
		return w.call("acme/viewer", "POST", "/auth/password", map[string]any{"current": current, "new": next})
	}
	require.Equal(t, "body.new", change(peerPassword, "short").problem(422, "validation_failed").Errors[0].Location)
	require.Equal(t, "body.new", change(peerPassword, "acme-viewer").problem(422, "validation_failed").Errors[0].Location)
	require.Equal(t, "body.current", change("wrong", "a third long password").problem(422, "validation_failed").Errors[0].Location)
	other := w.as("acme/viewer")
	a := change(peerPassword, "a third long password").is(204)
	w.call("", "GET", "/me", nil, header{"Authorization": "Bearer " + other}).problem(401, "unauthenticated")
	w.call("", "POST", "/auth/refresh", nil, sendCookie(cookieOf(t, a))).is(200)
	w.call("", "POST", "/auth/login", map[string]any{"username": "acme-viewer", "password": peerPassword}).problem(401, "unauthenticated")
}

func TestSwitchTenant(t *testing.T) {
	w := newWorld(t)
	into[Me](w.call("platform", "GET", "/me", nil).is(200))
	there := into[Login](w.call("platform", "POST", "/auth/tenant", map[string]any{"tenant": "beta"}).is(200))
	require.Equal(t, "beta", there.Tenant.Name)
	require.Equal(t, "admin", there.User.Role)
	w.bearers["platform@beta"] = there.AccessToken
	e := w.executor("beta", "shop")
	w.call("platform@beta", "GET", "/executors/"+e.ID.String(), nil).is(200)
	w.call("platform", "GET", "/executors/"+e.ID.String(), nil).problem(404, "not_found")
}

// TestSecureCookies logs in through a proxy that ends TLS and without one.
func TestSecureCookies(t *testing.T) {
	for _, tt := range []struct {
		setting               SecureCookies
		plain, proxied, forge bool
	}{
		{"", false, true, false},
		{SecureCookiesAuto, false, true, false},
		{SecureCookiesAlways, true, true, true},
		{SecureCookiesNever, false, false, false},
	} {
		t.Run(string(tt.setting), func(t *testing.T) {
			w := newWorld(t, func(d *Deps) {
				d.SecureCookies, d.TrustedProxies = tt.setting, []netip.Prefix{netip.MustParsePrefix("198.51.100.9/32")}
			})
			secure := func(peer, proto string) bool {
				req := httptest.NewRequestWithContext(t.Context(), "POST", web.Base+"/auth/login", strings.NewReader(`{"username":"acme-viewer","password":"`+peerPassword+`"}`))
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("X-Forwarded-Proto", proto)
				req.Header.Set("X-Forwarded-For", "192.0.2.77")
				req.RemoteAddr = peer
				a := w.send(req).is(200)
				require.Equal(t, strings.Contains(a.header.Get("Strict-Transport-Security"), "max-age"), proto == "https" && strings.HasPrefix(peer, "198.51.100.9:"))
				return strings.Contains(a.header.Get("Set-Cookie"), "; Secure")
			}
			require.Equal(t, tt.plain, secure("198.51.100.9:1", "http"))
			require.Equal(t, tt.proxied, secure("198.51.100.9:1", "https"))
			require.Equal(t, tt.forge, secure("203.0.113.9:1", "https"), "not a proxy")
			require.Contains(t, w.logText(), "remote_ip=192.0.2.77")
		})
	}
}
