package admin_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// TestATokenThatMayNotDeclareJobs: handlers are registered and work, jobs of the
// code are refused and told, those that are there stay, and another token's
// instance of the same build makes up for it.
func TestATokenThatMayNotDeclareJobs(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	access, err := n.admin.Provision(t.Context(), "shop")
	require.NoError(t, err)
	var executors struct {
		Items []struct{ ID, Name string }
	}
	n.do("GET", "/api/v1/executors", nil, &executors, 200)
	id := ""
	for _, e := range executors.Items {
		if e.Name == "shop" {
			id = e.ID
		}
	}
	var token struct {
		Secret      string
		DeclareJobs bool
	}
	n.do("POST", "/api/v1/executors/"+id+"/join-tokens", map[string]any{"declareJobs": false}, &token, 201)
	require.False(t, token.DeclareJobs)

	application := func(e *executor.Executor) {
		executor.HandleFunc(e, "count", func(context.Context) error { return nil }, executor.Job("every-second", executor.Every(time.Second)))
	}
	silenced := func(c *executor.Config) { c.Token = executor.Secret(token.Secret) }
	n.startExecutor("shop", silenced, application)
	type detail struct {
		RefusedDeclarations []struct{ Job, Code, Message string }
	}
	var got detail
	look := func() detail {
		got = detail{}
		n.do("GET", "/api/v1/executors/"+id, nil, &got, 200)
		return got
	}
	said := func() string { return fmt.Sprintf("%+v", got) }
	n.eventually(func() bool { return len(look().RefusedDeclarations) == 1 }, said)
	require.Equal(t, "every-second", got.RefusedDeclarations[0].Job)
	require.Equal(t, "permission_denied", got.RefusedDeclarations[0].Code)
	require.Contains(t, got.RefusedDeclarations[0].Message, "may not declare jobs")
	n.until(n.runNow(n.newJob("shop", "count", nil), nil), "succeeded")

	allowed := func(c *executor.Config) { c.Token = executor.Secret(access.JoinToken) }
	n.startExecutor("shop", allowed, application)
	n.eventually(func() bool { return len(look().RefusedDeclarations) == 0 }, said)
	var jobs struct{ Items []struct{ Name string } }
	n.do("GET", "/api/v1/jobs?q=every", nil, &jobs, 200)
	require.Len(t, jobs.Items, 1)
}
