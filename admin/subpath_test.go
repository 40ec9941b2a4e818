package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	sdkproxy "github.com/carillon-sched/carillon/executor-sdk/proxy"
	"github.com/carillon-sched/carillon/executor-sdk/timers"
)

// doors are the ways to a node at a path. Each returns the address with the path.
func doors(t *testing.T, a *admin.Admin, path string) map[string]string {
	t.Helper()
	direct, err := url.Parse(a.URL())
	require.NoError(t, err)
	require.Equal(t, path, direct.Path)
	serve := func(h http.Handler) string {
		mux := http.NewServeMux()
		mux.Handle(path+"/", h)
		s := httptest.NewServer(mux) // all else is another application
		t.Cleanup(s.Close)
		return s.URL + path
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: direct.Scheme, Host: direct.Host})
	return map[string]string{
		"its own port":                  a.URL(),
		"a proxy that keeps the path":   serve(proxy),
		"a proxy that takes it away":    serve(http.StripPrefix(path, proxy)),
		"an application that mounts it": serve(a.Handler()),
	}
}

// TestANodeBelowAPath signs in with a cookie, calls the API and the
// SDK's client through each way to a node that is at a path.
func TestANodeBelowAPath(t *testing.T) {
	t.Parallel()
	const path = "/ops/carillon"
	pages := ""
	n := startNode(t, func(c *admin.Config) {
		c.BaseURL = "https://example.com" + path + "/"
		c.UI = func(at string) http.Handler {
			pages = at
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("page " + r.URL.Path)) })
		}
	})
	require.Equal(t, path, pages)
	fired := make(chan string, 10)
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleIn(ex, "greet", func(_ context.Context, name string) error { fired <- name; return nil })
	})
	key := n.key("timers", "timer")
	var client *sdkproxy.Client

	for name, address := range doors(t, n.admin, path) {
		t.Run(name, func(t *testing.T) {
			status, text := get(t, address+"/jobs/7")
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, "page /jobs/7", text)
			_, text = get(t, address+"/api/openapi.json")
			require.Contains(t, text, `"url": "`+path+`"`)
			for _, probe := range []string{"/healthz", "/readyz"} {
				status, _ = get(t, address+probe)
				require.Equal(t, http.StatusOK, status, probe)
			}
			signsIn(t, address)

			var err error
			client, err = sdkproxy.New(sdkproxy.Config{URL: address + "/", Key: key})
			require.NoError(t, err)
			_, err = timers.New[string](client, "shop", "greet").After(t.Context(), time.Millisecond, name)
			require.NoError(t, err)
			require.Equal(t, name, <-fired)
		})
	}

	root := strings.TrimSuffix(n.admin.URL(), path)
	for _, probe := range []string{"/healthz", "/readyz", "/metrics", path + "/metrics"} {
		status, _ := get(t, root+probe)
		require.Equal(t, http.StatusOK, status, probe)
	}
	var shown json.RawMessage
	timer, err := timers.New[string](client, "shop", "greet").After(t.Context(), time.Millisecond, "a run")
	require.NoError(t, err)
	n.eventually(func() bool {
		timer, err = timers.New[string](client, "shop", "greet").Get(t.Context(), timer.Key)
		return err == nil && timer.State == "succeeded"
	}, func() string { return fmt.Sprint(timer, err) })
	n.do(http.MethodPost, "/api/v1/alert-channels/preview", map[string]any{"spec": map[string]any{"kind": "slack"}, "runId": timer.Run}, &shown, 200)
	require.Contains(t, string(shown), "https://example.com"+path+"/t/default/runs/"+timer.Run)
}

// signsIn logs in as a browser does, and renews the session by its cookie.
func signsIn(t *testing.T, address string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := &http.Client{Jar: jar}
	res, err := client.Post(address+"/api/v1/auth/login", "application/json", strings.NewReader(`{"username":"admin","password":"`+password+`"}`))
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
	elsewhere, err := url.Parse(address)
	require.NoError(t, err)
	elsewhere.Path = "/api/v1/auth/refresh"
	require.Empty(t, jar.Cookies(elsewhere), "another application on the host gets the cookie")
	res, err = client.Post(address+"/api/v1/auth/refresh", "", nil)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
}
