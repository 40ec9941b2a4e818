package api

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/route"
	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func (w *world) alertChannel(tenant, name string) string {
	w.t.Helper()
	return into[alertChannel](w.call(tenant+"/admin", "POST", "/alert-channels", channelBody(name, "email", "emails", []string{"a@example.com"})).is(201)).ID
}

// alertRule is a document of a rule, as the API shows it.
type alertRule struct {
	document.Answer
	Spec noun.AlertRuleText `json:"spec"`
}

func ruleBody(name string, spec map[string]any) map[string]any {
	return map[string]any{"kind": "AlertRule", "name": name, "spec": spec}
}

// eventRule is a rule of one member more than it needs.
func eventRule(name string, more ...any) map[string]any {
	spec := map[string]any{"condition": map[string]any{"kind": "events"}}
	for i := 0; i < len(more); i += 2 {
		spec[more[i].(string)] = more[i+1]
	}
	return ruleBody(name, spec)
}

func moneySpec(executor, channel string) map[string]any {
	return map[string]any{
		"position": 5, "match": map[string]any{"kinds": []string{"run_failed"}, "executors": []string{executor}, "labels": "team=finance"},
		"condition": map[string]any{"kind": "failures", "failures": 3, "of": 5}, "severity": "critical", "channels": []string{channel}, "repeat": "1h0m0s",
		"quietHours": map[string]any{"zone": "Europe/Berlin", "from": "22:00", "to": "06:30", "days": []string{"saturday"}}, "escalateAfter": "30m0s", "escalateTo": []string{"ops"},
	}
}

func TestAlertRules(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	channel := w.alertChannel("acme", "ops")
	spec := moneySpec("shop", channel)
	body := ruleBody("money", spec)
	rule := into[alertRule](w.call("acme/editor", "POST", "/alert-rules", body).is(201))
	require.Equal(t, []any{true, "team=finance", "06:30", "saturday"}, []any{rule.Spec.Enabled, rule.Spec.Match.Labels, rule.Spec.QuietHours.To, rule.Spec.QuietHours.Days[0]})
	require.Equal(t, [][]string{{"ops"}, {"ops"}, {"shop"}}, [][]string{rule.Spec.Channels, rule.Spec.EscalateTo, rule.Spec.Match.Executors}, "all are shown by name")
	got := into[alertRule](w.call("acme/viewer", "GET", "/alert-rules/money", nil).is(200))
	require.Zero(t, got.UsedBy.Count)
	got.UsedBy = nil
	require.Equal(t, rule, got)
	w.call("acme/operator", "POST", "/alert-rules", body).problem(403, "permission_denied")
	w.call("acme/editor", "POST", "/alert-rules", body).problem(409, "conflict")
	second := into[alertRule](w.call("acme/editor", "POST", "/alert-rules", eventRule("all", "mute", true, "enabled", false)).is(201))
	require.Equal(t, []any{false, noun.SeverityWarning}, []any{second.Spec.Enabled, second.Spec.Severity})
	require.Equal(t, []alertRule{second, rule}, into[web.Page[alertRule]](w.call("acme/viewer", "GET", "/alert-rules", nil).is(200)).Items)

	path := "/alert-rules/" + rule.ID
	w.call("acme/editor", "PUT", path, body).problem(428, "validation_failed")
	body["name"] = "money matters"
	changed := into[alertRule](w.call("acme/editor", "PUT", path, body, header{"If-Match": `"1"`}).is(200))
	require.Equal(t, []any{int64(2), "ops"}, []any{changed.Version, changed.Spec.Channels[0]})
	w.call("acme/editor", "PUT", path, body, header{"If-Match": `"1"`}).problem(412, "revision_mismatch")
	w.call("acme/editor", "DELETE", "/alert-rules/"+second.ID, nil).is(204)

	// Another name of a channel shows in its rules.
	w.call("acme/editor", "PUT", "/alert-channels/ops", channelBody("nights", "email", "emails", []string{"a@example.com"}), header{"If-Match": "*"}).is(200)
	require.Equal(t, []string{"nights"}, into[alertRule](w.call("acme/viewer", "GET", path, nil).is(200)).Spec.EscalateTo)
	w.call("acme/editor", "DELETE", "/alert-channels/nights", nil).problem(409, "conflict")
	spec["escalateTo"] = []string{"nights"}

	// An executor can be deleted while a rule names it, and the rule can be edited. The name alone
	// is that of the next executor.
	w.call("acme/admin", "DELETE", "/executors/"+shop.ID.String(), nil, header{"If-Match": "*"}).is(204)
	p := w.call("acme/editor", "PUT", path, body, header{"If-Match": `"2"`}).problem(422, "validation_failed")
	require.Equal(t, "body.spec.match.executors[0]", p.Errors[0].Location)
	shown := into[map[string]any](w.call("acme/viewer", "GET", path, nil).is(200))
	require.Equal(t, []any{"shop (deleted)"}, shown["spec"].(map[string]any)["match"].(map[string]any)["executors"])
	require.Equal(t, 1, into[apply.Plan](w.call("acme/editor", "POST", "/plan", documentsBody(shown)).is(200)).Same)
	shown["name"] = "still the same"
	require.Equal(t, []string{"shop (deleted)"}, into[alertRule](w.call("acme/editor", "PUT", path, shown, header{"If-Match": `"2"`}).is(200)).Spec.Match.Executors)
	w.executor("acme", "shop")
	body["name"] = "still the same"
	require.Equal(t, []string{"shop"}, into[alertRule](w.call("acme/editor", "PUT", path, body, header{"If-Match": `"3"`}).is(200)).Spec.Match.Executors)
}

func TestAlertRulesAreChecked(t *testing.T) {
	w := newWorld(t)
	shop := "shop"
	w.executor("acme", shop)
	other := w.executor("beta", "shop").ID.String()
	channel := w.alertChannel("acme", "ops")
	w.alertChannel("beta", "theirs")
	w.call("acme/editor", "POST", "/alert-rules", ruleBody("well", moneySpec(shop, channel))).is(201)
	for name, row := range map[string]struct {
		change map[string]any
		at     string
	}{
		"unknown job":           {map[string]any{"match": map[string]any{"jobs": []string{"nightly"}}}, "body.spec.match.jobs[0]"},
		"executor of another":   {map[string]any{"match": map[string]any{"executors": []string{other}}}, "body.spec.match.executors[0]"},
		"unknown channel":       {map[string]any{"channels": []string{channel, "771177117711771177"}}, "body.spec.channels[1]"},
		"channel of another":    {map[string]any{"escalateTo": []string{"theirs"}}, "body.spec.escalateTo[0]"},
		"more than there are":   {map[string]any{"condition": map[string]any{"kind": "failures", "failures": 6, "of": 5}}, "body.spec.condition.failures"},
		"no after":              {map[string]any{"condition": map[string]any{"kind": "absent"}}, "body.spec.condition.after"},
		"no duration":           {map[string]any{"condition": map[string]any{"kind": "absent", "after": "soon"}}, "body.spec.condition.after"},
		"kinds of none":         {map[string]any{"condition": map[string]any{"kind": "late", "after": "1m"}}, "body.spec.match.kinds"},
		"factor of what":        {map[string]any{"condition": map[string]any{"kind": "events", "factor": 2}}, "body.spec.condition.factor"},
		"no keyword":            {map[string]any{"condition": map[string]any{"kind": "keyword"}}, "body.spec.condition.keyword"},
		"escalated success":     {map[string]any{"match": map[string]any{"kinds": []string{"run_succeeded"}}, "condition": map[string]any{"kind": "events"}}, "body.spec.escalateAfter"},
		"to nobody":             {map[string]any{"escalateTo": []string{}}, "body.spec.escalateTo"},
		"too often":             {map[string]any{"repeat": "1s"}, "body.spec.repeat"},
		"no zone":               {map[string]any{"quietHours": map[string]any{"zone": "Mars", "from": "22:00", "to": "06:00"}}, "body.spec.quietHours.zone"},
		"selector":              {map[string]any{"match": map[string]any{"labels": "a in ("}}, "body.spec.match.labels"},
		"unknown, old form":     {map[string]any{"match": map[string]any{"jobIds": []string{"771177117711771177"}}}, "body.spec.match.jobs[0]"},
		"muted, and to someone": {map[string]any{"mute": true}, "body.spec.mute"},
	} {
		bad := moneySpec(shop, channel)
		maps.Copy(bad, row.change)
		w.run(t, name, func(*testing.T) {
			p := w.call("acme/editor", "POST", "/alert-rules", ruleBody(name, bad)).problem(422, "validation_failed")
			require.Equal(t, row.at, p.Errors[0].Location)
		})
	}
}

// An apply of the listed channels and rules writes nothing. Rules
// may name channels of the same apply, in any order.
func TestAlertRulesAreExportedAndApplied(t *testing.T) {
	w := newWorld(t)
	mail := channelBody("mail", "email", "emails", []string{"ops@example.com"})
	mail["kind"] = "AlertChannel"
	body := documentsBody(eventRule("all", "channels", []string{"mail"}), eventRule("critical", "channels", []string{"mail"}, "severity", "critical"), mail)
	plan := into[apply.Plan](w.call("acme/editor", "POST", "/plan", body).is(200))
	require.Equal(t, []any{3, "AlertRule"}, []any{plan.Create, plan.Items[0].Kind})
	w.call("acme/editor", "POST", "/plan", documentsBody(eventRule("all", "channels", []string{"mail"}))).problem(422, "validation_failed")
	body["plan"] = plan.ID
	done := into[apply.Plan](w.call("acme/editor", "POST", "/apply", body).is(200))
	require.Equal(t, []any{3, 0, "AlertRule", "AlertChannel"}, []any{done.Create, done.Failed, done.Items[0].Kind, done.Items[2].Kind})

	var exported []map[string]any
	for _, list := range []string{"/alert-rules", "/alert-channels"} {
		exported = append(exported, into[web.Page[map[string]any]](w.call("acme/viewer", "GET", list, nil).is(200)).Items...)
	}
	require.Len(t, exported, 3)
	plan = into[apply.Plan](w.call("acme/editor", "POST", "/plan", documentsBody(exported...)).is(200))
	require.Equal(t, []any{3, 0, 0}, []any{plan.Same, plan.Update, plan.Create})
	require.Equal(t, 3, into[apply.Plan](w.call("acme/editor", "POST", "/apply", documentsBody(exported...)).is(200)).Same)
	spec := exported[0]["spec"].(map[string]any)
	spec["channels"] = []any{"mail", "mail 2"}
	more := channelBody("mail 2", "email", "emails", []string{"b@example.com"})
	more["kind"] = "AlertChannel"
	plan = into[apply.Plan](w.call("acme/editor", "POST", "/plan", documentsBody(append(exported, more)...)).is(200))
	require.Equal(t, []any{1, 1, "spec.channels"}, []any{plan.Update, plan.Create, plan.Items[0].Changes[0].Path})
	require.JSONEq(t, `["mail"]`, string(plan.Items[0].Changes[0].Before))
	require.JSONEq(t, `["mail","mail 2"]`, string(plan.Items[0].Changes[0].After))

	// A channel that rules name stays.
	p := w.call("acme/editor", "DELETE", "/alert-channels/mail", nil).problem(409, "conflict")
	require.Contains(t, p.Detail, `is used by the alert rules "all", "critical"; remove it there first`)
	for _, rule := range []string{"all", "critical"} {
		w.call("acme/editor", "DELETE", "/alert-rules/"+rule, nil).is(204)
	}
	w.call("acme/editor", "DELETE", "/alert-channels/mail", nil).is(204)
	gone := into[web.Page[document.DeletedDocument]](w.call("acme/viewer", "GET", "/deleted-alert-rules", nil).is(200)).Items
	require.Len(t, gone, 2)
	w.call("acme/editor", "POST", "/alert-rules/"+gone[0].ID+"/restore", nil).problem(409, "conflict")
}

// Rules name executors and jobs. All may be new in one request, in any order. The form of before
// has ids, and is the same rule.
func TestAlertRulesNameJobsAndExecutors(t *testing.T) {
	w := newWorld(t)
	match := map[string]any{"executors": []any{"shop"}, "jobs": []any{"nightly", "monthly"}}
	executor := map[string]any{"kind": "Executor", "name": "shop", "spec": map[string]any{}}
	rule := eventRule("money", "match", match)
	body := documentsBody(rule, jobDocument("nightly", "shop"), jobDocument("monthly", "shop"), executor)
	body["allowUnknownHandler"] = true
	plan := into[apply.Plan](w.call("acme/editor", "POST", "/plan", body).is(200))
	require.Equal(t, []any{4, 0}, []any{plan.Create, plan.Failed})
	w.call("acme/editor", "POST", "/plan", documentsBody(rule)).problem(422, "validation_failed")
	done := into[apply.Plan](w.call("acme/editor", "POST", "/apply", body).is(200))
	require.Equal(t, []any{4, 0}, []any{done.Create, done.Failed}, done)

	listed := into[web.Page[map[string]any]](w.call("acme/viewer", "GET", "/alert-rules", nil).is(200)).Items[0]
	require.Equal(t, match, listed["spec"].(map[string]any)["match"])
	require.Equal(t, 1, into[apply.Plan](w.call("acme/editor", "POST", "/plan", documentsBody(listed)).is(200)).Same)
	before := eventRule("money", "match", map[string]any{"executorIds": []any{done.Items[3].ID}, "jobIds": []any{done.Items[1].ID, done.Items[2].ID}})
	require.Equal(t, 1, into[apply.Plan](w.call("acme/editor", "POST", "/plan", documentsBody(before)).is(200)).Same)

	// Another name of a job shows in its rule. A plan of a deletion tells which rules name it,
	// unless they go along.
	renamed := jobDocument("yearly", "shop")
	w.call("acme/editor", "PUT", "/jobs/"+done.Items[2].ID+"?allowUnknownHandler=true", jobBody("yearly", domain.Executor{}, with("executor", map[string]any{"name": "shop"})), header{"If-Match": "*"}).is(200)
	require.Equal(t, []string{"nightly", "yearly"}, into[alertRule](w.call("acme/viewer", "GET", "/alert-rules/money", nil).is(200)).Spec.Match.Jobs)
	warned := func(documents ...map[string]any) (out []string) {
		body := documentsBody(documents...)
		body["delete"] = true
		for _, item := range into[apply.Plan](w.call("acme/editor", "POST", "/plan", body).is(200)).Items {
			for _, warning := range item.Warnings {
				out = append(out, item.Name+": "+warning.Text)
			}
		}
		return out
	}
	text := `: it is named by the alert rule "money": change it there, or it matches nothing of this any more`
	require.ElementsMatch(t, []string{"shop" + text, "yearly" + text}, warned(executor, renamed, jobDocument("nothing", "shop")))
	require.Empty(t, warned(executor, renamed, rule))
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
