package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// TestReadersSeeNoAddresses reads every route as everybody: who may not edit sees
// no webhook and no address out of an error, who administers nothing sees no
// address of a node or an instance.
func TestReadersSeeNoAddresses(t *testing.T) {
	const webhook, inside, node, sessions, instance = "https://hooks.example.com/secret-path", "10.1.2.3:443", "node-inside:7070", `"sessions":4711`, "10.9.8.7"
	w := newWorld(t, func(d *Deps) {
		d.Nodes = func() []domain.Node {
			return []domain.Node{{ID: 1, BootID: "boot-1", Name: "here", ExecutorAddress: node, Sessions: 4711}}
		}
	})
	own := w.objectsOf("acme")
	_, err := w.store.RegisterNode(t.Context(), domain.Node{BootID: "boot-1", Name: "here", ExecutorAddress: node}, time.Minute)
	require.NoError(t, err)
	e, err := w.store.FindExecutor(t.Context(), w.tenants["acme"], mustID[domain.ExecutorID](t, own["/executors/{id}"]))
	require.NoError(t, err)
	job := w.job("acme", "alerting", e, with("alert.webhookUrl", webhook), with("alert.onFailure", true))
	own["/jobs/{id}"], own["/runs/{id}"] = job.ID, w.ran("acme", job, domain.Report{Outcome: domain.OutcomeFailed}).ID.String()
	stored, err := w.store.FindJob(t.Context(), e.TenantID, mustID[domain.JobID](t, job.ID))
	require.NoError(t, err)
	proposal := domain.Proposal{ID: w.ids.Next(), TenantID: e.TenantID, Executor: e.ID, Name: job.Name, Hash: "h2", Spec: stored.Spec}
	proposal.Spec.CodeSays, proposal.Spec.Alert.WebhookURL = domain.CodeSays{"alert.webhookUrl"}, webhook+"/next"
	require.NoError(t, w.store.Propose(t.Context(), proposal))
	own["/job-proposals/{id}"] = domain.JobID(proposal.ID).String()
	told := []string{} // by add-ons, which say what went wrong
	for _, a := range addOns {
		if a.fail != nil {
			a.fail(w, webhook, "dial tcp "+inside+": connection refused")
			told = []string{inside}
		}
	}

	seen := map[domain.Role]map[string]int{}
	operations(w.api.Document(), func(method, path string, _ *huma.Operation) {
		if method != http.MethodGet {
			return
		}
		for _, role := range []domain.Role{domain.RoleViewer, domain.RoleOperator, domain.RoleEditor, domain.RoleAdmin} {
			if seen[role] == nil {
				seen[role] = map[string]int{}
			}
			text := string(w.call("acme/"+string(role), method, fill(path, own, nil, -1)+matrixQuery[path], nil).body)
			for _, what := range []string{"hooks.example.com", "secret-path", inside, "node-inside", sessions, instance} {
				if strings.Contains(text, what) {
					seen[role][what]++
				}
			}
		}
	})
	for _, role := range []string{"viewer", "operator", "editor"} {
		for _, path := range []string{"/cluster", "/nodes"} {
			text := string(w.call("acme/"+role, "GET", path, nil).is(200).body)
			require.Contains(t, text, `"sessions":null`, path)
			require.NotRegexp(t, `"sessions":\d`, text, "0 would be a statement")
		}
	}
	require.Empty(t, seen[domain.RoleViewer])
	require.Empty(t, seen[domain.RoleOperator])
	require.Positive(t, seen[domain.RoleEditor]["secret-path"])
	for _, what := range told {
		require.Positive(t, seen[domain.RoleEditor][what])
	}
	require.Zero(t, seen[domain.RoleEditor]["node-inside"])
	require.Zero(t, seen[domain.RoleEditor][instance])
	for _, what := range append(told, "hooks.example.com", "node-inside", sessions, instance) {
		require.Positive(t, seen[domain.RoleAdmin][what], what)
	}
}
