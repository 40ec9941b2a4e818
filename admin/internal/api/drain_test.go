package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// An instance is kept out by removing it, also when it has gone: it might come back.
// Twice is once, and the reason stands in the list.
func TestRemoveInstance(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	i, gone := w.instance(e, "one", "reconcile"), w.instance(e, "two", "reconcile")
	require.NoError(t, w.store.LeaveInstances(t.Context(), []store.InstanceLeave{{Tenant: e.TenantID, ID: gone.ID, Reason: "stopped"}})[0])
	remove := func(who, id, reason string) answer {
		return w.call(who, "DELETE", "/instances/"+id+"?reason="+reason, nil)
	}
	remove("acme/operator", i.ID.String(), "").is(403)
	remove("beta/admin", i.ID.String(), "").problem(404, "not_found")
	first := into[RemovedInstance](remove("acme/admin", i.ID.String(), "stolen").is(200))
	require.Equal(t, "acme-admin", first.Instance.DrainedBy)
	require.Equal(t, first.DenialID, into[RemovedInstance](remove("acme/admin", i.ID.String(), "again").is(200)).DenialID)
	remove("acme/admin", gone.ID.String(), "").is(200)

	type denial struct{ kind, instance, reason, by string }
	list := func() (got []denial) {
		for _, d := range into[web.Page[access.Denial]](w.call("acme/admin", "GET", "/executors/"+e.ID.String()+"/denials", nil).is(200)).Items {
			got = append(got, denial{d.Kind, d.Instance, d.Reason, d.CreatedBy})
		}
		return got
	}
	require.ElementsMatch(t, []denial{{"instance", "two", "", "acme-admin"}, {"instance", "one", "stolen", "acme-admin"}}, list())
	w.call("acme/admin", "DELETE", "/executors/"+e.ID.String()+"/denials/"+first.DenialID, nil).is(204)
	require.Equal(t, []denial{{"instance", "two", "", "acme-admin"}}, list())
}
