package api

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Eight nodes start with the same documents: each is made once. One with a mistake and its
// neighbours do not keep each other from it.
func TestNodesThatStartAtOnce(t *testing.T) {
	w := newWorld(t)
	token, err := auth.NewJoinToken()
	require.NoError(t, err)
	key, err := auth.NewAPIKey()
	require.NoError(t, err)
	documents := []json.RawMessage{
		json.RawMessage(`{"kind":"Job","name":"nightly","spec":{"executor":{"name":"web"},"handler":"work","schedule":{"kind":"cron","expr":"0 2 * * *","zone":"UTC"}}}`),
		json.RawMessage(`{"kind":"JoinToken","name":"web","spec":{"executor":"web"},"secrets":{"token":"` + token + `"}}`),
		json.RawMessage(`{"kind":"ApiKey","name":"web","spec":{"role":"caller+manager","executors":["web"]},"secrets":{"key":"` + key + `"}}`),
		json.RawMessage(`{"kind":"Executor","name":"web","spec":{"maxRunning":3}}`),
		json.RawMessage(`{"kind":"Calendar","name":"cn","spec":{}}`),
		json.RawMessage(`{"kind":"Member","name":"invited","spec":{"role":"viewer"}}`),
		json.RawMessage(`{"kind":"User","name":"made-once","spec":{"memberships":[{"tenant":"acme","role":"editor"}]},"secrets":{"password":"a bell in the tower"}}`),
		json.RawMessage(`{"kind":"Calendar","name":"wrong","spec":{"none":1}}`),
	}
	id := auth.Provisioning(w.tenants["acme"])
	var all [8][]apply.Outcome
	var nodes sync.WaitGroup
	for n := range all {
		nodes.Go(func() {
			out, err := apply.Make(t.Context(), w.api, id, documents, false)
			if err != nil {
				t.Errorf("make: %v", err)
			}
			all[n] = out
		})
	}
	nodes.Wait()
	for i := range documents {
		made := 0
		for _, out := range all {
			if wrong := i == len(documents)-1; wrong {
				fields, told := web.FieldsOf("", out[i].Err)
				require.True(t, told)
				require.Equal(t, ".spec.none", fields[0].Location)
			} else {
				require.NoError(t, out[i].Err, string(documents[i]))
				require.Empty(t, out[i].Differs)
			}
			if out[i].Made {
				made++
			}
		}
		switch i {
		case 3: // its limit is written after it, perhaps by another node
			require.Positive(t, made)
		case len(documents) - 1:
			require.Zero(t, made)
		default:
			require.Equal(t, 1, made, string(documents[i]))
		}
	}
	e, err := w.store.FindExecutorByName(t.Context(), w.tenants["acme"], "web")
	require.NoError(t, err)
	limits, err := w.store.ListLimits(t.Context(), w.tenants["acme"])
	require.NoError(t, err)
	require.Len(t, limits, 1)
	require.Equal(t, domain.Limit{LimitKey: domain.LimitKey{Tenant: w.tenants["acme"], Executor: e.ID}, Max: 3}, limits[0].Limit)
	tokens, err := w.store.ListJoinTokens(t.Context(), w.tenants["acme"], e.ID)
	require.NoError(t, err)
	require.Len(t, tokens, 1)
	u, err := w.store.FindUserByName(t.Context(), "made-once")
	require.NoError(t, err)
	places, err := w.store.ListMemberships(t.Context(), u.ID)
	require.NoError(t, err)
	require.Equal(t, []domain.Membership{{TenantID: w.tenants["acme"], UserID: u.ID, Role: domain.RoleEditor}}, places)
}

// Existing objects stay. A credential with another meaning is reported.
func TestWhatIsThereStays(t *testing.T) {
	w := newWorld(t)
	token, err := auth.NewJoinToken()
	require.NoError(t, err)
	key, err := auth.NewAPIKey()
	require.NoError(t, err)
	try := func(tenant, document string) apply.Outcome {
		t.Helper()
		out, err := apply.Make(t.Context(), w.api, auth.Provisioning(w.tenants[tenant]), []json.RawMessage{json.RawMessage(document)}, false)
		require.NoError(t, err)
		return out[0]
	}
	made := func(tenant, document string) {
		t.Helper()
		require.Equal(t, apply.Outcome{Made: true}, try(tenant, document))
		require.Equal(t, apply.Outcome{}, try(tenant, document), "a second time it is there")
	}
	left := func(tenant, document, want string) {
		t.Helper()
		out := try(tenant, document)
		require.False(t, out.Made)
		require.ErrorContains(t, out.Err, want)
	}
	executor := func(name, about string) string {
		return `{"kind":"Executor","name":"` + name + `","spec":{"description":"` + about + `"}}`
	}
	made("acme", executor("web", "d"))
	made("acme", executor("web-2", "d"))
	out := try("acme", executor("web", "another"))
	require.Equal(t, "spec.description", out.Differs[0].Path)
	require.False(t, out.Made)

	joining := func(executor string) string {
		return `{"kind":"JoinToken","name":"t","spec":{"executor":"` + executor + `","maxUses":3,"declareJobs":false},"secrets":{"token":"` + token + `"}}`
	}
	made("acme", joining("web"))
	left("acme", joining("web-2"), "its secret is that of another executor's token")
	e, err := w.store.FindExecutorByName(t.Context(), w.tenants["acme"], "web")
	require.NoError(t, err)
	tokens, err := w.store.ListJoinTokens(t.Context(), w.tenants["acme"], e.ID)
	require.NoError(t, err)
	require.Equal(t, []any{"t", 3, true, "provisioning"}, []any{tokens[0].Name, tokens[0].MaxUses, tokens[0].NoJobs, tokens[0].CreatedBy})
	require.NoError(t, w.store.RevokeJoinToken(t.Context(), w.tenants["acme"], tokens[0].ID))
	left("acme", joining("web"), "it was revoked")

	calling := func(role string) string {
		return `{"kind":"ApiKey","name":"k","spec":{"role":"` + role + `","executors":["web"],"callHandlers":["web/do it"]},"secrets":{"key":"` + key + `"}}`
	}
	made("acme", calling("caller"))
	left("acme", calling("caller+timer"), "has other rights")
	made("beta", executor("web", "d"))
	left("beta", calling("caller"), "its secret is that of another tenant's key")

	// The settings of a tenant that nobody has set count as missing.
	tenant := func(jobs, keys string) string {
		return `{"kind":"Tenant","name":"acme","spec":{"quotas":{"jobs":` + jobs + `` + keys + `}}}`
	}
	require.True(t, try("", tenant("7", "")).Made)
	require.Equal(t, apply.Outcome{}, try("", tenant("7", "")))
	out = try("", tenant("9", ""))
	require.False(t, out.Made)
	require.Equal(t, "spec.quotas.jobs", out.Differs[0].Path)
	require.True(t, try("", tenant("7", `,"api_keys":5`)).Made)
	most, err := w.store.MaxOf(t.Context(), w.tenants["acme"], domain.QuotaAPIKeys)
	require.NoError(t, err)
	require.EqualValues(t, 5, most)
}

// The kinds with secrets are no kinds of the API, but their schemas are there for editors.
func TestLocalKindsAreNotApplied(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []string{"JoinToken", "ApiKey", "User"} {
		body := documentsBody(map[string]any{"kind": kind, "name": "a", "spec": map[string]any{}})
		answer := w.call("platform", "POST", "/apply", body).is(422)
		require.Contains(t, string(answer.body), kind+" stands in a provision file only: carillon server --provision")
		w.call("acme/viewer", "GET", "/kinds/"+kind+"/schema", nil).is(200)
	}
	require.NotContains(t, string(w.call("platform", "GET", "/kinds", nil).is(200).body), "ApiKey")
}
