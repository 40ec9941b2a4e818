package api

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/alertsql"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/route"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

func init() {
	maps.Copy(bounded, map[string]string{
		"create-alert-channel": "computes", "preview-alert-channel": "computes", "update-alert-channel": "computes", "test-alert-channel": "reaches",
		"list-alert-channels": "large", "list-alert-incidents": "large", "list-alert-rules": "large", "list-alert-silences": "large",
	})
	maps.Copy(smallLists, map[string]string{
		"/deleted-alert-channels": "names of 100 deleted channels", "/deleted-alert-rules": "names of 100 deleted rules",
		"/alert-channels": "a tenant has 64, of a template and a secret each", "/alert-rules": "a tenant has 100, of 210 ids and 5 KiB of text each",
		"/alert-silences":              "a tenant has 200 that are not over, of 200 ids and 2 KiB of text each",
		"/alert-incidents/{id}/events": "201 rows of 2 KiB of text", "/deliveries": "201 rows of 3 KiB of text",
	})
	auditedOperations["create-alert-silence"] = audited{body: as(map[string]any{"reason": "r", "duration": "1h"})}
	auditedOperations["create-alert-rule"] = audited{body: as(eventRule("second"))}
	auditedOperations["create-alert-channel"] = audited{body: as(channelBody("second", "email", "emails", []string{"ops@example.com"}))}
	auditedOperations["restore-alert-channel"] = audited{before: calling("acme/admin", "DELETE", "/alert-channels/{id}", nil)}
	auditedOperations["restore-alert-rule"] = audited{before: calling("acme/admin", "DELETE", "/alert-rules/{id}", nil)}
	addOns = append(addOns, addOn{
		name: "alerting", lists: []string{"/deliveries", "/alert-incidents", "/alert-rules", "/alert-silences", "/alert-channels"},
		routes:    func(s *web.Server, d *Deps, _ *Actions) { route.Register(s, alertDeps(d, &fakeChannels{})) },
		attention: func(d *Deps) web.Attention { return route.Attention(alertDeps(d, &fakeChannels{})) },
		objects:   alertObjects, body: alertBody, fatten: fattenIncidents,
		fail: func(w *world, address, failure string) {
			id := w.ids.Next()
			w.expandAlerts(noun.Delivery{ID: id, Channel: "webhook", Target: address})
			require.NoError(w.t, w.alerts().FinishDelivery(w.t.Context(), id, noun.DeliveryFailed, 0, failure))
		},
	})
}

// alertStore is the database with the tables of alerting.
type alertStore struct {
	*gormstore.Store
	notify.Tables
}

// alertDeps are those of the operations; empty without a store.
func alertDeps(d *Deps, channels route.Channels) route.Deps {
	s, is := d.Store.(*gormstore.Store)
	if !is {
		return route.Deps{}
	}
	secrets, _ := d.Secrets.(resource.Sealer)
	alerts := alertsql.New(s.Engine)
	return route.Deps{
		Store: alertStore{s, alerts}, Kept: route.Kept{Channels: alertsql.Channels(s.DB), Rules: alertsql.Rules(s.DB), RulesChanged: alerts.RulesChanged, Names: alerts}, Secrets: secrets, Channels: channels, NewID: d.NewID, Now: func() time.Time { return d.Now() }, Log: d.Logger,
	}
}

func (w *world) alerts() *alertsql.Alerts { return alertsql.New(w.store.Engine) }

// newAlertWorld is a world whose API has these channels.
func newAlertWorld(t *testing.T, channels route.Channels) *world {
	t.Helper()
	w := newWorld(t)
	w.deps.AddOns = func(s *web.Server, actions *Actions) {
		for _, a := range addOns {
			if a.name != "alerting" {
				a.routes(s, &w.deps, actions)
			}
		}
		route.Register(s, alertDeps(&w.deps, channels))
	}
	w.deps.Attention = []web.Attention{route.Attention(alertDeps(&w.deps, channels))}
	w.start()
	return w
}

func alertObjects(w *world, admin string) objects {
	channel := into[alertChannel](w.call(admin, "POST", "/alert-channels", channelBody("mail", "email", "emails", []string{"ops@example.com"})).is(201))
	rule := into[alertRule](w.call(admin, "POST", "/alert-rules", eventRule("r")).is(201))
	silence := into[route.AlertSilence](w.call(admin, "POST", "/alert-silences", map[string]any{"reason": "r", "duration": "1h"}).is(201))
	tenant, _, _ := strings.Cut(admin, "/")
	job := into[web.Page[Job]](w.call(admin, "GET", "/jobs?limit=1", nil).is(200)).Items[0]
	return objects{
		"/alert-channels/{id}": channel.ID, "/alert-rules/{id}": rule.ID, "/alert-silences/{id}": silence.ID,
		"/alert-incidents/{id}": w.incident(w.tenants[tenant], mustID[domain.JobID](w.t, job.ID)).String(),
	}
}

func alertBody(method, path string) any {
	switch {
	case method == http.MethodPut && strings.Contains(path, "/alert-channels/"):
		return channelBody("changed", "email", "emails", []string{"ops@example.com"})
	case method == http.MethodPut && strings.Contains(path, "/alert-rules/"):
		return eventRule("changed")
	case method == http.MethodPut && strings.HasSuffix(path, "/alert-settings"):
		return map[string]any{}
	}
	return nil
}

// largeIncidents is how many fattenIncidents makes. All of them together have more than maxHanded.
const largeIncidents = 30

// fattenIncidents makes incidents of many jobs.
func fattenIncidents(w *world, tenant domain.TenantID, job string) map[string]int {
	w.t.Helper()
	page := into[web.Page[Job]](w.call("acme/admin", "GET", "/jobs?limit=200", nil).is(http.StatusOK))
	require.Greater(w.t, len(page.Items), largeIncidents)
	list := make([]noun.IncidentJob, noun.MaxIncidentJobs)
	for i := range list {
		list[i] = noun.IncidentJob{ID: mustID[domain.JobID](w.t, job), Name: strings.Repeat("j", 200), Events: 1}
	}
	for _, of := range page.Items[:largeIncidents] {
		id := w.incident(tenant, mustID[domain.JobID](w.t, of.ID))
		_, err := w.alerts().ChangeIncident(w.t.Context(), tenant, id, func(i *noun.Incident, _ time.Time) error {
			i.Jobs = list
			return nil
		})
		require.NoError(w.t, err)
	}
	return map[string]int{"/alert-incidents": largeIncidents + 1}
}

// incident makes one of a job.
func (w *world) incident(tenant domain.TenantID, job domain.JobID) (id domain.IncidentID) {
	w.t.Helper()
	event := domain.AlertEvent{TenantID: tenant, Kind: domain.AlertRunFailed, JobID: job, Revision: 1, Reason: domain.ReasonHandlerFailed, DedupeKey: fmt.Sprint(w.ids.Next())}
	require.NoError(w.t, w.store.RecordAlerts(w.t.Context(), []domain.AlertEvent{event}))
	w.expandAlerts()
	list, err := w.alerts().ListIncidents(w.t.Context(), notify.ListIncidentsParams{Tenant: tenant})
	require.NoError(w.t, err)
	return list.Items[0].ID
}

// expandAlerts makes these deliveries of each event that is in the outbox.
func (w *world) expandAlerts(deliveries ...noun.Delivery) {
	w.t.Helper()
	_, err := w.alerts().ExpandAlertEvents(w.t.Context(), 10, func(b *notify.AlertBatch) {
		storetest.EachAlone(b, func(notify.AlertContext) bool { return true }, func(notify.AlertContext) []noun.Delivery { return deliveries })
	})
	require.NoError(w.t, err)
}
