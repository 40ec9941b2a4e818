package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/route"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestIncidents(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	w.instance(shop, "one", "reconcile")
	job := w.job("acme", "bad", shop)
	first := w.incident(shop.TenantID, mustID[domain.JobID](t, job.ID))
	second := w.incident(shop.TenantID, mustID[domain.JobID](t, job.ID))
	path := "/alert-incidents/" + first.String()

	page := into[web.Page[route.Incident]](w.call("acme/viewer", "GET", "/alert-incidents?limit=1", nil).is(200))
	require.Equal(t, second.String(), page.Items[0].ID)
	page = into[web.Page[route.Incident]](w.call("acme/viewer", "GET", "/alert-incidents?limit=1&cursor="+*page.NextCursor, nil).is(200))
	require.Equal(t, first.String(), page.Items[0].ID)
	require.Nil(t, page.NextCursor)
	one := into[route.Incident](w.call("acme/viewer", "GET", path, nil).is(200))
	require.Equal(t, "open", one.State)
	require.Equal(t, shop.ID.String(), *one.ExecutorID)
	require.EqualValues(t, 1, one.Events)
	events := into[web.Page[route.IncidentEvent]](w.call("acme/viewer", "GET", path+"/events", nil).is(200))
	require.Len(t, events.Items, 1)
	require.Equal(t, "run_failed", events.Items[0].Kind)
	require.Equal(t, "handler_failed", events.Items[0].Reason)

	w.call("acme/viewer", "POST", path+"/acknowledge", nil).problem(403, "permission_denied")
	one = into[route.Incident](w.call("acme/operator", "POST", path+"/acknowledge", nil).is(200))
	require.Equal(t, "acknowledged", one.State)
	require.Equal(t, "acme-operator", one.AcknowledgedBy)
	again := into[route.Incident](w.call("acme/editor", "POST", path+"/acknowledge", nil).is(200))
	require.Equal(t, one, again, "it is taken on already")
	require.Len(t, into[web.Page[route.Incident]](w.call("acme/viewer", "GET", "/alert-incidents?state=acknowledged&executorId="+shop.ID.String(), nil).is(200)).Items, 1)
	one = into[route.Incident](w.call("acme/editor", "POST", path+"/resolve", nil).is(200))
	require.Equal(t, "resolved", one.State)
	require.Equal(t, "acme-editor", one.ResolvedBy)
	require.Equal(t, one, into[route.Incident](w.call("acme/operator", "POST", path+"/resolve", nil).is(200)))
	w.call("acme/operator", "POST", path+"/acknowledge", nil).problem(409, "conflict")
	w.call("acme/viewer", "GET", "/alert-incidents?executorId=x", nil).problem(422, "validation_failed")
}
