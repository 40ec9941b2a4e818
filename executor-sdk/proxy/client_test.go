package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/proxy"
)

func TestConfig(t *testing.T) {
	t.Setenv("CARILLON_URL", "")
	t.Setenv("CARILLON_API_KEY", "")
	t.Setenv("CARILLON_API_KEY_FILE", "")
	for want, config := range map[string]proxy.Config{
		"no API key":   {URL: "https://x"},
		"no admin":     {Key: "ck_1"},
		"is no URL":    {Key: "ck_1", URL: "carillon:8080"},
		"in the clear": {Key: "ck_1", URL: "https://a, http://carillon.internal"},
	} {
		_, err := proxy.New(config)
		require.ErrorContains(t, err, want)
	}
	for _, url := range []string{"http://127.0.0.1:8080", "http://localhost:8080/", "http://[::1]:1", "https://a,https://b"} {
		_, err := proxy.New(proxy.Config{Key: "ck_1", URL: url})
		require.NoError(t, err)
	}
	_, err := proxy.New(proxy.Config{Key: "ck_1", URL: "http://carillon.internal", AllowPlain: true})
	require.NoError(t, err)
	t.Setenv("CARILLON_URL", "https://a")
	t.Setenv("CARILLON_API_KEY", "ck_1")
	_, err = proxy.New(proxy.Config{})
	require.NoError(t, err)
}

func TestTheKeyIsReadFromAFile(t *testing.T) {
	shown := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "key")
	t.Setenv("CARILLON_API_KEY", "")
	t.Setenv("CARILLON_API_KEY_FILE", path)
	_, err := proxy.New(proxy.Config{URL: server.URL})
	require.ErrorContains(t, err, "CARILLON_API_KEY_FILE: open "+path)
	require.NoError(t, os.WriteFile(path, []byte("ck_1\n"), 0o600))
	for key, want := range map[string]string{"": "Bearer ck_1", "ck_2": "Bearer ck_2"} {
		client, err := proxy.New(proxy.Config{URL: server.URL, Key: key})
		require.NoError(t, err)
		_, err = proxy.Start[Report](t.Context(), client, "shop", "close-day", nil)
		require.Error(t, err)
		require.Equal(t, want, shown)
	}
}

// Nodes that stop and answers that get lost cost time, not the call; and the
// key is the same in all tries.
func TestACallSurvivesNodesThatFail(t *testing.T) {
	var requests, keys atomic.Int32
	var key atomic.Value
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer ck_1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPost {
			if old := key.Swap(r.Header.Get("Idempotency-Key")); old != nil && old != r.Header.Get("Idempotency-Key") {
				keys.Add(1)
			}
		}
		switch requests.Add(1) {
		case 1:
			panic(http.ErrAbortHandler) // after the run was made, before the answer
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			body, _ := io.ReadAll(r.Body)
			var in map[string]any
			if json.Unmarshal(body, &in) != nil || in["executor"] != "shop" || in["handler"] != "close-day" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"id":"5","state":"due"}`)
		case 4:
			_, _ = io.WriteString(w, `{"id":"5","state":"running"}`)
		default:
			_, _ = io.WriteString(w, `{"id":"5","state":"succeeded","done":true,"output":{"orders":3}}`)
		}
	}))
	defer good.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	client, err := proxy.New(proxy.Config{URL: gone.URL + "," + good.URL, Key: "ck_1"})
	require.NoError(t, err)
	report, err := proxy.Call[Report](t.Context(), client, "shop", "close-day", CloseDay{"x"})
	require.NoError(t, err)
	require.Equal(t, Report{3}, report)
	require.Zero(t, keys.Load())
	require.NotEmpty(t, key.Load())
}

func TestARefusalIsNotRepeated(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"code":"permission_denied","detail":"your role does not allow this"}`)
	}))
	defer server.Close()
	client, err := proxy.New(proxy.Config{URL: server.URL, Key: "ck_1"})
	require.NoError(t, err)
	_, err = proxy.Start[Report](t.Context(), client, "shop", "close-day", nil)
	var refused *proxy.RefusedError
	ok := errors.As(err, &refused)
	require.True(t, ok, err)
	require.Equal(t, &proxy.RefusedError{Status: 403, Code: "permission_denied", Detail: "your role does not allow this"}, refused)
	require.EqualValues(t, 1, requests.Load())
	require.NotContains(t, err.Error(), "ck_1")
}

func TestCallsAtOnceKeepTheirConnections(t *testing.T) {
	const calls = 32
	var connections, asked atomic.Int32
	var wave atomic.Pointer[chan struct{}]
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		all := *wave.Load()
		if asked.Add(1)%calls == 0 {
			close(all)
		}
		<-all // so that all are under way at once
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"5","state":"due"}`)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	client, err := proxy.New(proxy.Config{URL: server.URL, Key: "ck_1"})
	require.NoError(t, err)
	for range 2 {
		all := make(chan struct{})
		wave.Store(&all)
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				_, err := proxy.Start[Report](t.Context(), client, "shop", "close-day", nil)
				assert.NoError(t, err)
			})
		}
		wg.Wait()
	}
	require.EqualValues(t, calls, connections.Load(), "the second wave connects no more")
}

func TestTheContextEndsAStubbornSearch(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	client, err := proxy.New(proxy.Config{URL: gone.URL, Key: "ck_1"})
	require.NoError(t, err)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err = proxy.Call[Report](ctx, client, "shop", "close-day", nil)
	require.ErrorIs(t, err, why)
}

// A tenant that has moved to another cell is asked for there with the same key, as
// long as that is not sent in the clear.
func TestACallFollowsTheTenant(t *testing.T) {
	var here, there atomic.Int32
	cell := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there.Add(1)
		if r.Header.Get("Authorization") != "Bearer ck_1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"id":"5","state":"succeeded","done":true,"output":{"orders":3}}`)
	}))
	defer cell.Close()
	address := cell.URL
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		here.Add(1)
		w.WriteHeader(http.StatusMisdirectedRequest)
		_, _ = io.WriteString(w, `{"code":"tenant_elsewhere","detail":"it lives elsewhere","cell":{"name":"eu2","url":"`+address+`"}}`)
	}))
	defer old.Close()
	client, err := proxy.New(proxy.Config{URL: old.URL, Key: "ck_1"})
	require.NoError(t, err)
	for range 2 {
		report, err := proxy.Call[Report](t.Context(), client, "shop", "close-day", CloseDay{"x"})
		require.NoError(t, err)
		require.Equal(t, Report{3}, report)
	}
	require.EqualValues(t, 1, here.Load(), "it is remembered")

	address = "http://eu2.example.com"
	client, err = proxy.New(proxy.Config{URL: old.URL, Key: "ck_1"})
	require.NoError(t, err)
	_, err = proxy.Start[Report](t.Context(), client, "shop", "close-day", nil)
	var refused *proxy.RefusedError
	require.True(t, errors.As(err, &refused), err)
	require.Equal(t, "tenant_elsewhere", refused.Code)
}
