package auth_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/auth"
	"github.com/carillon-sched/carillon/executor-sdk/executortest"
)

func TestRulesDecideWhoMayRunWhat(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		ex.Use(auth.Handler("refund", auth.Cause("schedule"), auth.All(auth.Cause("api"), auth.RequestedBy("key:billing"))))
		for _, name := range []string{"refund", "report"} {
			executor.HandleFunc(ex, name, func(context.Context) error { return nil }, executor.Retries(3))
		}
		require.Equal(t, executortest.Succeeded, admin.Call("report", nil).State())
		require.Equal(t, executortest.Succeeded, admin.CallAs("key:billing", "refund", nil).State())
		refused := admin.CallAs("mallory", "refund", nil)
		require.Equal(t, executortest.Failed, refused.State())
		require.Equal(t, 1, refused.Attempts())
		require.Equal(t, "refund may not be run here by mallory (cause api)", refused.Err())
		require.Equal(t, executortest.Failed, admin.Call("refund", nil).State())
	})
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		ex.Use(auth.Every(auth.RequestedBy("alice")))
		executor.HandleFunc(ex, "report", func(context.Context) error { return nil })
		require.Equal(t, executortest.Succeeded, admin.CallAs("alice", "report", nil).State())
		require.Equal(t, executortest.Failed, admin.Call("report", nil).State())
	})
}
