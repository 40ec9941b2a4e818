package executor_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// refusing is an admin that answers the n-th registration (from 0) with these
// notices, and further ones with the last.
func refusing(answers ...[]*proto.Notice) *fakeadmin.Admin {
	n := 0
	return &fakeadmin.Admin{Judge: func(*fakeadmin.Session, *proto.Register) *proto.Registered {
		answer := answers[min(n, len(answers)-1)]
		n++
		return &proto.Registered{Notices: answer}
	}}
}

func notice(code, job string) *proto.Notice {
	return &proto.Notice{Code: code, Subject: job, Message: "because of " + code}
}

// closing registers a handler with a job that admins refuse.
func closing(ex *executor.Executor) {
	nop := func(context.Context) error { return nil }
	executor.HandleFunc(ex, "close", nop, executor.Job("close-day", executor.Cron("0 0 2 * * *")), executor.Job("close-week"))
}

func strict(c *executor.Config) { c.Strict = true }

// strictly runs an application with Config.Strict and returns what Run returns.
func strictly(t *testing.T, admin *fakeadmin.Admin) (ex *executor.Executor, done chan error) {
	t.Helper()
	ex, err := executor.New(executor.Config{
		Name: "shop", Addresses: []string{admin.Address()}, Token: fakeadmin.Token, JournalDir: t.TempDir(),
		Strict: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(t, err)
	closing(ex)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	done = make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	return ex, done
}

func TestStrictEndsWhenAJobIsRefused(t *testing.T) {
	admin := startAdmin(t, refusing([]*proto.Notice{notice("conflict", "close-day"), notice("conflict", "of another version")}))
	ex, done := strictly(t, admin)
	err := <-done
	require.EqualError(t, err, `executor: the admin refuses job "close-day" of handler "close" (conflict): because of conflict`)
	var refused *executor.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, []executor.RefusedDeclaration{{Job: "close-day", Handler: "close", Code: "conflict", Reason: "because of conflict"}}, refused.Declarations)
	select {
	case <-ex.Ready():
		require.Fail(t, "ready although a declaration was refused")
	default:
	}
}

func TestStrictEndsWhenASettingOfAHandlerIsRefused(t *testing.T) {
	_, done := strictly(t, startAdmin(t, refusing([]*proto.Notice{notice("validation_failed", "close")})))
	require.EqualError(t, <-done, `executor: the admin refuses what handler "close" declares (validation_failed): because of validation_failed`)
}

func TestStrictEndsWhenTheRegistrationIsRefused(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{Refuse: func(*proto.ClientHello) *proto.Error {
		return &proto.Error{Code: "malformed", Message: "too many labels", RetryAfterMs: -1}
	}})
	_, done := strictly(t, admin)
	var refused *executor.RefusedError
	require.ErrorAs(t, <-done, &refused)
	require.Equal(t, []executor.RefusedDeclaration{{Code: "malformed", Reason: "too many labels"}}, refused.Declarations)
}

// A wrong token is no refusal of what is declared: it may be made valid while
// the process tries. What was taken once does not end a process later.
func TestStrictGoesOn(t *testing.T) {
	unavailable := []*proto.Notice{notice("unavailable", "")}
	edited := []*proto.Notice{notice("edited_in_console", "close-day")}
	refused := []*proto.Notice{notice("conflict", "close-week")}
	admin := startAdmin(t, refusing(unavailable, edited, refused))
	a := start(t, admin, closing, strict)
	<-a.Ready()
	require.Eventually(t, func() bool { return a.Health() == nil }, patience, time.Millisecond, "not decided yet")
	session(t, admin, 1).Cut()
	session(t, admin, 2)
	require.Eventually(t, func() bool { return a.Health() == nil }, patience, time.Millisecond, "an edited job is the console's, as the code declares")
	session(t, admin, 2).Cut()
	session(t, admin, 3)
	var later *executor.RefusedError
	require.Eventually(t, func() bool { return errors.As(a.Health(), &later) }, patience, time.Millisecond)
	require.ErrorContains(t, later, `job "close-week" of handler "close" (conflict)`)
	require.NoError(t, a.stop())
}

// Without Strict the process goes on, and Health tells until a registration says
// otherwise.
func TestHealthTellsWhatWasRefused(t *testing.T) {
	admin := startAdmin(t, refusing([]*proto.Notice{notice("conflict", "close-week"), notice("conflict", "close-day")}, nil))
	a := start(t, admin, closing)
	<-a.Ready()
	var refused *executor.RefusedError
	require.Eventually(t, func() bool { return errors.As(a.Health(), &refused) }, patience, time.Millisecond)
	require.Len(t, refused.Declarations, 2)
	require.Equal(t, "close-day", refused.Declarations[0].Job)
	session(t, admin, 1).Cut()
	session(t, admin, 2)
	require.Eventually(t, func() bool { return a.Health() == nil }, patience, time.Millisecond)
	require.NoError(t, a.stop())
}

func TestCallbacksThatNoHandlerIs(t *testing.T) {
	for option, use := range map[string]executor.JobOption{
		"OnSuccess": executor.OnSuccess("no-such-handler"), "OnFailure": executor.OnFailure("no-such-handler"),
		"BeforeShards": executor.BeforeShards("no-such-handler"), "AfterShards": executor.AfterShards("no-such-handler"),
	} {
		t.Run(option, func(t *testing.T) {
			ex, err := executor.New(executor.Config{Name: "shop", Addresses: []string{"127.0.0.1:1"}, Token: "x", JournalDir: t.TempDir()})
			require.NoError(t, err)
			executor.HandleFunc(ex, "close", func(context.Context) error { return nil }, executor.Shards(2), use)
			require.EqualError(t, ex.Run(t.Context()),
				`executor: handler "close": job "close": `+option+`("no-such-handler"): no handler of this name is registered`)
		})
	}
}
