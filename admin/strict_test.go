package admin_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// What the admin says about declarations ends a strict application, and stands in
// the health of others.
func TestRefusedDeclarationsReachTheApplication(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	register := func(ex *executor.Executor) {
		nop := func(context.Context) error { return nil }
		executor.HandleFunc(ex, "work", nop, executor.Job("fine"), executor.Job("hourly", executor.Cron("0 0 25 * * *")))
	}
	access, err := n.admin.Provision(t.Context(), "shop")
	require.NoError(t, err)
	ex, err := executor.New(executor.Config{
		Name: "shop", Addresses: []string{n.admin.ExecutorAddress()}, Token: executor.Secret(access.JoinToken), Strict: true,
		JournalDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	})
	require.NoError(t, err)
	register(ex)
	err = ex.Run(t.Context())
	var refused *executor.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Declarations, 1)
	require.Equal(t, "hourly", refused.Declarations[0].Job)
	require.Equal(t, "work", refused.Declarations[0].Handler)
	require.NotEmpty(t, refused.Declarations[0].Reason)
	require.Empty(t, n.jobNamed("fine"), "a deploy that fails changes no job")

	lenient := n.startExecutor("shop", nil, register)
	require.NotEmpty(t, n.jobNamed("fine"))
	require.ErrorAs(t, lenient.Health(), &refused)
}
