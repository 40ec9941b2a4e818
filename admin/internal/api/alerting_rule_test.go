package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/route"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

func (w *world) alertChannel(tenant, name string) string {
	w.t.Helper()
	return into[alertChannel](w.call(tenant+"/admin", "POST", "/alert-channels", channelBody(name, "email", "emails", []string{"a@example.com"})).is(201)).ID
}

func TestAlertRules(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	channel := w.alertChannel("acme", "ops")
	body := map[string]any{
		"name": "money", "position": 5, "match": map[string]any{"kinds": []string{"run_failed"}, "executorIds": []string{shop.ID.String()}, "labels": "team=finance"},
		"condition": map[string]any{"kind": "failures", "failures": 3, "of": 5}, "severity": "critical", "channelIds": []string{channel}, "repeat": "1h0m0s",
		"quietHours": map[string]any{"zone": "Europe/Berlin", "from": "22:00", "to": "06:30", "days": []string{"saturday"}}, "escalateAfter": "30m0s", "escalateTo": []string{channel},
	}
	created := w.call("acme/editor", "POST", "/alert-rules", body).is(201)
	rule := into[route.AlertRule](created)
	require.True(t, *rule.Enabled)
	require.Equal(t, "team=finance", rule.Match.Labels)
	require.Equal(t, "06:30", rule.QuietHours.To)
	require.Equal(t, []string{"saturday"}, rule.QuietHours.Days)
	require.Equal(t, rule, into[route.AlertRule](w.call("acme/viewer", "GET", "/alert-rules/"+rule.ID, nil).is(200)))
	w.call("acme/operator", "POST", "/alert-rules", body).problem(403, "permission_denied")
	w.call("acme/editor", "POST", "/alert-rules", body).problem(409, "conflict")
	second := into[route.AlertRule](w.call("acme/editor", "POST", "/alert-rules", map[string]any{"name": "all", "condition": map[string]any{"kind": "events"}, "mute": true, "enabled": false}).is(201))
	require.False(t, *second.Enabled)
	list := into[web.Page[route.AlertRule]](w.call("acme/viewer", "GET", "/alert-rules", nil).is(200)).Items
	require.Equal(t, []string{"all", "money"}, []string{list[0].Name, list[1].Name}, "by position")

	absent := into[route.AlertRule](w.call("acme/editor", "POST", "/alert-rules", map[string]any{"name": "nightly", "condition": map[string]any{"kind": "absent", "after": "26h"}}).is(201))
	require.Equal(t, "26h0m0s", absent.Condition.After)
	body["name"] = "money matters"
	w.call("acme/editor", "PUT", "/alert-rules/"+rule.ID, body).problem(428, "validation_failed")
	changed := into[route.AlertRule](w.call("acme/editor", "PUT", "/alert-rules/"+rule.ID, body, header{"If-Match": `"1"`}).is(200))
	require.EqualValues(t, 2, changed.Version)
	w.call("acme/editor", "PUT", "/alert-rules/"+rule.ID, body, header{"If-Match": `"1"`}).problem(412, "revision_mismatch")
	w.call("acme/editor", "DELETE", "/alert-rules/"+second.ID, nil).is(204)

	for name, change := range map[string]map[string]any{
		"unknown job":           {"match": map[string]any{"jobIds": []string{"771177117711771177"}}},
		"executor of another":   {"match": map[string]any{"executorIds": []string{w.executor("beta", "shop").ID.String()}}},
		"unknown channel":       {"channelIds": []string{"771177117711771177"}},
		"more than there are":   {"condition": map[string]any{"kind": "failures", "failures": 6, "of": 5}},
		"no after":              {"condition": map[string]any{"kind": "absent"}},
		"kinds of none":         {"condition": map[string]any{"kind": "late", "after": "1m"}},
		"factor of what":        {"condition": map[string]any{"kind": "events", "factor": 2}},
		"no keyword":            {"condition": map[string]any{"kind": "keyword"}},
		"escalated success":     {"match": map[string]any{"kinds": []string{"run_succeeded"}}, "condition": map[string]any{"kind": "events"}},
		"to nobody":             {"escalateTo": []string{}},
		"too often":             {"repeat": "1s"},
		"no zone":               {"quietHours": map[string]any{"zone": "Mars", "from": "22:00", "to": "06:00"}},
		"selector":              {"match": map[string]any{"labels": "a in ("}},
		"not an id":             {"match": map[string]any{"jobIds": []string{"x"}}},
		"muted, and to someone": {"mute": true},
	} {
		bad := map[string]any{}
		for key, value := range body {
			bad[key] = value
		}
		for key, value := range change {
			bad[key] = value
		}
		bad["name"] = name
		w.run(t, name, func(*testing.T) { w.call("acme/editor", "POST", "/alert-rules", bad).problem(422, "validation_failed") })
	}
	// What a rule names may go; the rest of it can be changed all the same.
	w.call("acme/admin", "DELETE", "/executors/"+shop.ID.String(), nil, header{"If-Match": "*"}).is(204)
	w.call("acme/editor", "PUT", "/alert-rules/"+rule.ID, body, header{"If-Match": `"2"`}).is(200)
}

func TestSilences(t *testing.T) {
	w := newWorld(t)
	silence := into[route.AlertSilence](w.call("acme/operator", "POST", "/alert-silences", map[string]any{"reason": "deploy", "duration": "2h", "match": map[string]any{"labels": "env=test"}}).is(201))
	starts, err := time.Parse(time.RFC3339, silence.StartsAt)
	require.NoError(t, err)
	ends, err := time.Parse(time.RFC3339, silence.EndsAt)
	require.NoError(t, err)
	require.Equal(t, 2*time.Hour, ends.Sub(starts))
	require.Equal(t, "env=test", silence.Match.Labels)
	w.call("acme/viewer", "POST", "/alert-silences", map[string]any{"reason": "x", "duration": "2h"}).problem(403, "permission_denied")
	require.Len(t, into[web.Page[route.AlertSilence]](w.call("acme/viewer", "GET", "/alert-silences", nil).is(200)).Items, 1)
	ended := into[route.AlertSilence](w.call("acme/operator", "POST", "/alert-silences/"+silence.ID+"/end", nil).is(200))
	require.Equal(t, "acme-operator", ended.EndedBy)
	require.Equal(t, ended, into[route.AlertSilence](w.call("acme/editor", "POST", "/alert-silences/"+silence.ID+"/end", nil).is(200)))
	require.Empty(t, into[web.Page[route.AlertSilence]](w.call("acme/viewer", "GET", "/alert-silences", nil).is(200)).Items)
	require.Len(t, into[web.Page[route.AlertSilence]](w.call("acme/viewer", "GET", "/alert-silences?all=true", nil).is(200)).Items, 1)
	for name, body := range map[string]map[string]any{
		"no end":      {"reason": "x"},
		"two ends":    {"reason": "x", "duration": "1h", "endsAt": "2030-01-01T00:00:00Z"},
		"in the past": {"reason": "x", "startsAt": "2020-01-01T00:00:00Z", "duration": "1h"},
		"too long":    {"reason": "x", "duration": "2500h"},
		"no reason":   {"duration": "1h", "reason": " "},
		"unknown job": {"reason": "x", "duration": "1h", "match": map[string]any{"jobIds": []string{"771177117711771177"}}},
	} {
		w.run(t, name, func(*testing.T) {
			w.call("acme/operator", "POST", "/alert-silences", body).problem(422, "validation_failed")
		})
	}
}

func TestAlertSettings(t *testing.T) {
	w := newWorld(t)
	channel := w.alertChannel("acme", "ops")
	none := into[route.AlertSettings](w.call("acme/viewer", "GET", "/alert-settings", nil).is(200))
	require.Zero(t, none.Version)
	body := map[string]any{"defaultChannelIds": []string{channel}, "quietHours": map[string]any{"zone": "Asia/Shanghai", "from": "23:00", "to": "07:00"}}
	w.call("acme/editor", "PUT", "/alert-settings", body).problem(428, "validation_failed")
	saved := into[route.AlertSettings](w.call("acme/editor", "PUT", "/alert-settings", body, header{"If-Match": `"0"`}).is(200))
	require.EqualValues(t, 1, saved.Version)
	require.Equal(t, []string{channel}, saved.DefaultChannelIDs)
	w.call("acme/editor", "PUT", "/alert-settings", body, header{"If-Match": `"0"`}).problem(412, "revision_mismatch")
	saved = into[route.AlertSettings](w.call("acme/editor", "PUT", "/alert-settings", map[string]any{}, header{"If-Match": "*"}).is(200))
	require.EqualValues(t, 2, saved.Version)
	require.Nil(t, saved.QuietHours)
	require.Empty(t, into[route.AlertSettings](w.call("beta/viewer", "GET", "/alert-settings", nil).is(200)).DefaultChannelIDs)
	w.call("beta/editor", "PUT", "/alert-settings", body, header{"If-Match": "*"}).problem(422, "validation_failed")
	w.call("acme/operator", "PUT", "/alert-settings", body, header{"If-Match": "*"}).problem(403, "permission_denied")
}
