package executor_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

func TestValuesOfTheContextReachHandlers(t *testing.T) {
	type key struct{}
	admin := startAdmin(t, &fakeadmin.Admin{})
	ex, err := executor.New(executor.Config{Name: "shop", Addresses: []string{admin.Address()}, Token: fakeadmin.Token, JournalDir: t.TempDir()})
	require.NoError(t, err)
	executor.HandleOut(ex, "h", func(ctx context.Context) (string, error) { return ctx.Value(key{}).(string), nil })
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "pool"))
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "h")))
	require.Equal(t, `"pool"`, string(saw(t, admin, results(1)).Results[0].GetOutput()))
	cancel()
	require.NoError(t, <-done)
}

func TestRunRefusesToBegin(t *testing.T) {
	config := executor.Config{Name: "shop", Addresses: []string{"127.0.0.1:1"}, Token: "x", JournalDir: "run_test.go"}
	ex, err := executor.New(config)
	require.NoError(t, err)
	require.EqualError(t, ex.Run(t.Context()), "executor: no handlers are registered")
	executor.HandleFunc(ex, "h", func(context.Context) error { return nil })
	err = ex.Run(t.Context())
	require.ErrorContains(t, err, "executor: open journal: mkdir run_test.go: not a directory")
	require.ErrorContains(t, err, "set Config.JournalDir or CARILLON_EXECUTOR_JOURNAL to a writable folder")

	admin := startAdmin(t, &fakeadmin.Admin{})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(context.Context) error { return nil })
	})
	<-a.Ready()
	require.EqualError(t, a.Run(t.Context()), "executor: Run was called before")
	require.PanicsWithValue(t, `carillon: handler "late": register before Run`, func() {
		executor.HandleFunc(a.Executor, "late", func(context.Context) error { return nil })
	})
	require.NoError(t, a.stop())
}

func TestWrongTokenIsToldAndTriedAgain(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(context.Context) error { return nil })
	}, func(c *executor.Config) { c.Token = "cjt_wrong" })
	require.Eventually(t, func() bool { return strings.Contains(a.log.String(), "admin refuses this executor") }, patience, time.Millisecond)
	require.ErrorContains(t, a.Health(), "bad_token")
	require.NotContains(t, a.log.String(), "cjt_wrong")
	select {
	case <-a.Ready():
		require.Fail(t, "ready without a registration")
	default:
	}
	require.NoError(t, a.stop())
}

func TestNoticesAreLogged(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{Judge: func(*fakeadmin.Session, *proto.Register) *proto.Registered {
		return &proto.Registered{Notices: []*proto.Notice{{Code: "invalid_cron", Subject: "job close-day", Message: "field 2: 61 is over 59"}}}
	}})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(context.Context) error { return nil })
	})
	<-a.Ready()
	require.NoError(t, a.stop())
	require.Contains(t, a.log.String(), `level=WARN msg="the admin did not take a declaration"`)
	require.Contains(t, a.log.String(), "field 2: 61 is over 59")
}

// Who dials decides about the network: TLS is not taken from the environment.
func TestDialTakesThePlaceOfTheNetwork(t *testing.T) {
	t.Setenv("CARILLON_EXECUTOR_TLS", "true")
	admin := startAdmin(t, &fakeadmin.Admin{})
	var asked atomic.Value
	app := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "tick", func(context.Context) error { return nil })
	}, func(c *executor.Config) {
		c.Addresses = []string{"behind-a-proxy.example:7070"}
		c.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			asked.CompareAndSwap(nil, address)
			var d net.Dialer
			return d.DialContext(ctx, "tcp", admin.Address())
		}
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "tick", granted)))
	saw(t, admin, results(1))
	require.NoError(t, app.stop())
	require.Equal(t, "behind-a-proxy.example:7070", asked.Load())
}
