package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// A node writes events of runs that have succeeded if a rule names them, and counts them in
// an incident.
func TestARuleHearsOfSuccesses(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "quick", func(context.Context) error { return nil })
	})
	n.do(http.MethodPost, "/api/v1/alert-rules", map[string]any{
		"name": "done", "spec": map[string]any{"match": map[string]any{"kinds": []string{"run_succeeded"}}, "condition": map[string]any{"kind": "events"}},
	}, nil, 201)
	id := n.newJob("shop", "quick", map[string]any{"schedule": map[string]any{"kind": "fixed_rate", "every": "1s"}})
	var list struct {
		Items []struct{ Kind, JobID string }
	}
	n.eventually(func() bool {
		n.do(http.MethodGet, "/api/v1/alert-incidents", nil, &list, 200)
		return len(list.Items) > 0
	}, func() string { return fmt.Sprint(list) })
	require.Equal(t, "run_succeeded", list.Items[0].Kind)
	require.Equal(t, id, list.Items[0].JobID)
}

// TestOwnersAreTold when a run failed for good, by mail and by webhook.
func TestOwnersAreTold(t *testing.T) {
	t.Parallel()
	smtp := testenv.SMTP(t)
	hook := testenv.HTTPSink(t)
	n := startNode(t, func(c *admin.Config) {
		c.AddOns = admin.Settings{"mail-host": {"127.0.0.1"}, "mail-port": {strconv.Itoa(smtp.Port())}, "mail-from": {"carillon@example.test"}, "mail-tls": {"none"}}
	})
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "hopeless", func(context.Context) error { return errors.New("the till is empty") })
	})
	// Only the domain of the sender gets mails.
	channel := func(address string, want int) {
		n.do(http.MethodPost, "/api/v1/alert-channels", map[string]any{"name": address, "spec": map[string]any{"kind": "email", "emails": []string{"lin@example.test", address}}}, nil, want)
	}
	channel("wang@example.test", 201)
	channel("eve@evil.example", 422)
	job := n.newJob("shop", "hopeless", map[string]any{
		"retry": map[string]any{"maxAttempts": 2, "delay": "50ms"},
		"owner": map[string]any{"name": "Lin", "email": "lin@example.test"},
		"alert": map[string]any{"onFailure": true, "webhookUrl": hook.URL, "webhookSecret": "whsec-0123456789abcdef"},
	})
	id := n.runNow(job, nil)
	n.until(id, "failed")
	mails := smtp.WaitMails(t, 1)
	require.Contains(t, fmt.Sprint(mails[0]), "lin@example.test")
	requests := hook.Wait(t, 1)
	require.Contains(t, string(requests[0].Body), id)
	require.Contains(t, string(requests[0].Body), "the till is empty")
	require.NotEmpty(t, requests[0].Header.Get("Carillon-Signature"))
}
