package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/proxy"
)

// peer serves one connection of a client, and returns when it is closed.
type peer func(conn net.Conn)

// silent accepts and says nothing.
func silent(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// slow reads a byte a second.
func slow(conn net.Conn) {
	for b := make([]byte, 1); ; time.Sleep(time.Second) {
		if _, err := conn.Read(b); err != nil {
			return
		}
	}
}

// dripping answers with a header, and then with nothing.
func dripping(conn net.Conn) {
	if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
		_, _ = io.WriteString(conn, "HTTP/1.1 201 Created\r\nContent-Length: 20\r\n\r\n{")
		_, _ = conn.Read(make([]byte, 1))
	}
}

// answering answers each request with what answer says; "" = with nothing.
func answering(answer func(r *http.Request) (status int, body string)) peer {
	return func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		for {
			r, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			status, body := answer(r)
			if body == "" {
				_, _ = conn.Read(make([]byte, 1))
				return
			}
			if _, err := fmt.Fprintf(conn, "HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body); err != nil {
				return
			}
		}
	}
}

func always(status int) peer {
	return answering(func(*http.Request) (int, string) { return status, `{"code":"unavailable"}` })
}

// network connects by host: to a peer, or to nobody, which takes for ever or is
// refused.
type network map[string]peer

func (n network) client(t *testing.T, urls string) *proxy.Client {
	var peers sync.WaitGroup
	transport := &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		serve, known := n[host]
		switch {
		case !known:
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		case serve == nil:
			<-ctx.Done()
			return nil, ctx.Err()
		}
		client, server := net.Pipe()
		peers.Go(func() { defer server.Close(); serve(server) })
		return client, nil
	}}
	t.Cleanup(func() { transport.CloseIdleConnections(); peers.Wait() })
	client, err := proxy.New(proxy.Config{URL: urls, Key: "ck_1", HTTP: &http.Client{Transport: transport}, AllowPlain: true})
	require.NoError(t, err)
	return client
}

const within = 45 * time.Second

// Whatever the other side is, StartWithin ends the attempt to have a call taken,
// and the error says whether there may be a run. (Time is the bubble's.)
func TestStartWithinBoundsTheTaking(t *testing.T) {
	for name, c := range map[string]struct {
		net      network
		urls     string
		mayExist bool
	}{
		"refused":                   {network{}, "http://gone", false},
		"connecting takes for ever": {network{"deaf": nil}, "http://deaf", false},
		"accepts and says nothing":  {network{"mute": silent}, "http://mute", true},
		"reads slowly":              {network{"slow": slow}, "http://slow", true},
		"answers for ever":          {network{"drip": dripping}, "http://drip", true},
		"500":                       {network{"bad": always(500)}, "http://bad", true},
		"503":                       {network{"bad": always(503)}, "http://bad", true},
		"429":                       {network{"bad": always(429)}, "http://bad", true},
		"one refused, one mute":     {network{"mute": silent}, "http://gone,http://mute", true},
		"two refused":               {network{}, "http://gone,http://lost", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := c.net.client(t, c.urls)
				began := time.Now()
				_, err := proxy.Call[Report](t.Context(), client, "shop", "close-day", CloseDay{strings.Repeat("x", 100_000)}, proxy.StartWithin(within))
				require.Equal(t, within, time.Since(began))
				var unknown *proxy.UnconfirmedError
				require.ErrorAs(t, err, &unknown)
				require.Equal(t, c.mayExist, unknown.MayExist, err)
				require.Equal(t, "shop/close-day", unknown.Handler)
				require.NotEmpty(t, unknown.Key)
				require.Empty(t, unknown.Run)
				require.NotContains(t, err.Error(), "ck_1")
				if c.mayExist {
					require.ErrorContains(t, err, unknown.Key)
				} else {
					require.ErrorContains(t, err, "calling again is safe")
				}
			})
		})
	}
}

// Nobody gives a bound: a minute, and five with a context that has one. A context
// that ends first is the cause.
func TestTheTakingIsBoundedByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := network{"mute": silent}.client(t, "http://mute")
		call := func(ctx context.Context, opts ...proxy.Option) (time.Duration, error) {
			began := time.Now()
			_, err := proxy.Start[Report](ctx, client, "shop", "close-day", nil, opts...)
			var unknown *proxy.UnconfirmedError
			require.ErrorAs(t, err, &unknown)
			return time.Since(began), err
		}
		took, _ := call(t.Context())
		require.Equal(t, time.Minute, took)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		took, _ = call(ctx)
		require.Equal(t, 5*time.Minute, took)
		why := errors.New("enough")
		ctx, cancel = context.WithTimeoutCause(t.Context(), 7*time.Second, why)
		defer cancel()
		took, err := call(ctx, proxy.Key("mine"))
		require.Equal(t, 7*time.Second, took)
		require.ErrorIs(t, err, why)
		var unknown *proxy.UnconfirmedError
		require.ErrorAs(t, err, &unknown)
		require.Equal(t, "mine", unknown.Key)
	})
}

// A node that says nothing costs its try, and the next one is asked with the same
// key; it hears how long the caller has waited.
func TestTheNextNodeTakesTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var age string
		good := answering(func(r *http.Request) (int, string) {
			if r.Method == http.MethodPost {
				age = r.Header.Get("Call-Age")
				return 201, `{"id":"5","state":"due"}`
			}
			return 200, `{"id":"5","state":"succeeded","done":true,"attempt":1,"output":{"orders":3}}`
		})
		client := network{"mute": silent, "good": good}.client(t, "http://mute,http://good")
		report, err := proxy.Call[Report](t.Context(), client, "shop", "close-day", nil)
		require.NoError(t, err)
		require.Equal(t, Report{3}, report)
		waited, err := time.ParseDuration(age)
		require.NoError(t, err)
		require.Greater(t, waited, 10*time.Second)
	})
}

// What was taken has to start in time, too: then the admin's word is waited for a
// little longer. A run that has started may take its time.
func TestStartWithinBoundsTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		state     string // what is said of the run; "" = nothing is
		cancelled bool
	}{
		"no node answers any more": {"", false},
		"it waits and waits":       {`{"id":"5","state":"due"}`, true},
		"it is offered":            {`{"id":"5","state":"offered","attempt":1}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cancelled := false
				client := network{"node": answering(func(r *http.Request) (int, string) {
					switch {
					case r.URL.Path == "/api/v1/calls":
						return 201, `{"id":"5","state":"due"}`
					case strings.HasSuffix(r.URL.Path, "/cancel"):
						cancelled = true
					case c.state != "":
						wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
						time.Sleep(wait)
					}
					return 200, c.state
				})}.client(t, "http://node")
				began := time.Now()
				_, err := proxy.Call[Report](t.Context(), client, "shop", "close-day", nil, proxy.StartWithin(within))
				require.LessOrEqual(t, time.Since(began), within+5*time.Second)
				var unknown *proxy.UnconfirmedError
				require.ErrorAs(t, err, &unknown)
				require.Equal(t, "5", unknown.Run)
				require.True(t, unknown.MayExist)
				require.Equal(t, c.cancelled, cancelled)
			})
		})
	}
	t.Run("it has started", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			client := network{"node": answering(func(r *http.Request) (int, string) {
				if r.Method == http.MethodPost {
					return 201, `{"id":"5","state":"due"}`
				}
				wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
				time.Sleep(wait)
				if time.Since(began) < time.Hour {
					return 200, `{"id":"5","state":"running","attempt":1}`
				}
				return 200, `{"id":"5","state":"succeeded","done":true,"attempt":1,"output":{"orders":3}}`
			})}.client(t, "http://node")
			report, err := proxy.Call[Report](t.Context(), client, "shop", "close-day", nil, proxy.StartWithin(within))
			require.NoError(t, err)
			require.Equal(t, Report{3}, report)
		})
	})
}
