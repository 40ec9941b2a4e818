package api

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/route"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

// fakeChannels notes what it is asked.
type fakeChannels struct {
	check   error
	trial   noun.ChannelTrial
	tried   []noun.AlertChannel
	tenants []domain.Tenant
	spec    noun.AlertChannelSpec
	kind    domain.AlertKind
	of      *notify.AlertContext
	noMails bool
}

func (f *fakeChannels) Mails() bool { return !f.noMails }

func (f *fakeChannels) Check(*noun.AlertChannelSpec) error { return f.check }

func (f *fakeChannels) TryChannel(_ context.Context, t domain.Tenant, c noun.AlertChannel) noun.ChannelTrial {
	f.tried, f.tenants = append(f.tried, c), append(f.tenants, t)
	return f.trial
}

func (f *fakeChannels) PreviewChannel(spec noun.AlertChannelSpec, kind domain.AlertKind, of *notify.AlertContext) (noun.RenderedAlert, error) {
	f.spec, f.kind, f.of = spec, kind, of
	return noun.RenderedAlert{Title: "t", ContentType: "text/plain", Body: "b"}, nil
}

func dingTalk(change ...any) map[string]any {
	body := map[string]any{"name": "on call", "kind": "dingtalk", "url": "https://oapi.dingtalk.example/robot/send?access_token=s3cret-1", "secret": "SECs3cret"}
	for i := 0; i < len(change); i += 2 {
		body[change[i].(string)] = change[i+1]
	}
	return body
}

func (w *world) channelSecrets(id string) (s noun.AlertChannelSecrets) {
	w.t.Helper()
	c, err := w.alerts().FindAlertChannel(w.t.Context(), w.tenants["acme"], mustID[domain.ChannelID](w.t, id))
	require.NoError(w.t, err)
	require.NotContains(w.t, string(c.Secrets), "s3cret")
	plain, err := w.box.Open(c.TenantID, secret.PurposeAlertChannel, int64(c.ID), c.Secrets)
	require.NoError(w.t, err)
	require.NoError(w.t, json.Unmarshal(plain, &s))
	return s
}

func TestAlertChannelLifecycle(t *testing.T) {
	w := newWorld(t)
	w.call("acme/operator", "POST", "/alert-channels", dingTalk()).problem(403, "permission_denied")
	created := w.call("acme/editor", "POST", "/alert-channels", dingTalk()).is(201)
	require.NotContains(t, string(created.body), "s3cret")
	c := into[route.AlertChannel](created)
	require.Equal(t, []any{int64(1), true, "https://oapi.dingtalk.example", true, false}, []any{c.Version, c.Enabled, c.Host, c.HasSecret, c.HasToken})
	w.call("acme/editor", "POST", "/alert-channels", dingTalk()).problem(409, "conflict")

	path := "/alert-channels/" + c.ID
	got := w.call("acme/viewer", "GET", path, nil).is(200)
	require.NotContains(t, string(got.body), "s3cret")
	require.Equal(t, `"1"`, got.header.Get("ETag"))

	// What is left out stays.
	change := map[string]any{"name": "nights", "kind": "dingtalk", "enabled": false, "language": "zh", "mentions": []string{"13800000000"}}
	w.call("acme/editor", "PUT", path, change).problem(428, "validation_failed")
	w.call("acme/editor", "PUT", path, change, header{"If-Match": `"7"`}).problem(412, "revision_mismatch")
	c = into[route.AlertChannel](w.call("acme/editor", "PUT", path, change, header{"If-Match": `"1"`}).is(200))
	require.Equal(t, []any{int64(2), "nights", false, "zh", true}, []any{c.Version, c.Name, c.Enabled, c.Language, c.HasSecret})
	require.Equal(t, noun.AlertChannelSecrets{URL: "https://oapi.dingtalk.example/robot/send?access_token=s3cret-1", Secret: "SECs3cret"}, w.channelSecrets(c.ID))

	list := w.call("acme/viewer", "GET", "/alert-channels", nil).is(200)
	require.Equal(t, []route.AlertChannel{c}, into[web.Page[route.AlertChannel]](list).Items)
	p := w.call("acme/editor", "PUT", path, map[string]any{"name": "x", "kind": "slack"}, header{"If-Match": "*"}).problem(422, "validation_failed")
	require.Equal(t, "body.kind", p.Errors[0].Location)

	w.call("acme/operator", "DELETE", path, nil).problem(403, "permission_denied")
	w.call("acme/editor", "DELETE", path, nil).is(204)
	w.call("acme/viewer", "GET", path, nil).problem(404, "not_found")
}

// Who may edit a channel cannot have its token sent to a server of theirs.
func TestAlertChannelTokenIsNotRedirected(t *testing.T) {
	w := newWorld(t)
	anyVersion := header{"If-Match": "*"}
	for _, row := range []struct{ before, elsewhere map[string]any }{
		{map[string]any{"name": "a", "kind": "opsgenie", "token": "s3cret-1"}, map[string]any{"name": "a", "kind": "opsgenie", "baseUrl": "https://thief.example"}},
		{map[string]any{"name": "b", "kind": "webhook", "url": "https://hook.example/", "token": "s3cret-1"}, map[string]any{"name": "b", "kind": "webhook", "url": "https://thief.example"}},
	} {
		c := into[route.AlertChannel](w.call("acme/editor", "POST", "/alert-channels", row.before).is(201))
		path := "/alert-channels/" + c.ID
		p := w.call("acme/editor", "PUT", path, row.elsewhere, anyVersion).problem(422, "validation_failed")
		require.Equal(t, "body.token", p.Errors[0].Location)
		row.elsewhere["token"] = "s3cret-2"
		w.call("acme/editor", "PUT", path, row.elsewhere, anyVersion).is(200)
		require.Equal(t, "s3cret-2", w.channelSecrets(c.ID).Token)
	}
}

func TestAlertChannelMistakes(t *testing.T) {
	w := newWorld(t)
	of := func(kind string, change ...any) map[string]any {
		body := map[string]any{"name": "x", "kind": kind}
		for i := 0; i < len(change); i += 2 {
			body[change[i].(string)] = change[i+1]
		}
		return body
	}
	for name, test := range map[string]struct {
		body map[string]any
		want string
	}{
		"no addresses":               {of("email"), "body.emails"},
		"no address":                 {of("email", "emails", []string{"x"}), "body.emails[0]"},
		"an address twice":           {of("email", "emails", []string{"a@example.com", "A@example.com"}), "body.emails[1]"},
		"a mail with a url":          {of("email", "emails", []string{"a@example.com"}, "url", "https://s3cret.example"), "body.url"},
		"no url":                     {of("slack"), "body.url"},
		"a scheme":                   {of("slack", "url", "ftp://s3cret.example"), "body.url"},
		"a user":                     {of("slack", "url", "https://a:s3cret@example.com"), "body.url"},
		"half of a robot":            {dingTalk("url", "https://oapi.dingtalk.example/robot/send"), "body.url"},
		"half of another robot":      {of("wecom", "url", "https://qyapi.example/cgi-bin/webhook/send"), "body.url"},
		"no token":                   {of("telegram", "chatId", "7"), "body.token"},
		"a token that is none":       {of("telegram", "chatId", "7", "token", "s3cret"), "body.token"},
		"no chat":                    {of("telegram", "token", "1:s3cret"), "body.chatId"},
		"a mention that is markup":   {of("slack", "url", "https://example.com", "mentions", []string{"U1> <!here"}), "body.mentions[0]"},
		"mentions of none":           {of("teams", "url", "https://example.com", "mentions", []string{"a"}), "body.mentions"},
		"another's template":         {of("slack", "url", "https://example.com", "templates", map[string]any{"body": "x"}), "body.templates.body"},
		"a secret that does nothing": {of("slack", "url", "https://example.com", "secret", "s3cret"), "body.secret"},
		"a type without a body":      {of("webhook", "url", "https://example.com", "templates", map[string]any{"contentType": "text/plain"}), "body.templates.contentType"},
		"a type of two lines":        {of("webhook", "url", "https://example.com", "templates", map[string]any{"body": "x", "contentType": "text/plain\r\nx: y"}), "body.templates.contentType"},
	} {
		a := w.call("acme/editor", "POST", "/alert-channels", test.body)
		require.NotContains(t, string(a.body), "s3cret", name)
		p := a.problem(422, "validation_failed")
		require.Equal(t, test.want, p.Errors[0].Location, name)
	}
}

func TestAlertChannelTemplatesAreChecked(t *testing.T) {
	fake := &fakeChannels{check: domain.Invalid("body.templates.title", "fails")}
	w := newAlertWorld(t, fake)
	p := w.call("acme/editor", "POST", "/alert-channels", dingTalk("templates", map[string]any{"title": "{{"})).problem(422, "validation_failed")
	require.Equal(t, "body.templates.title", p.Errors[0].Location)
	p = w.call("acme/editor", "POST", "/alert-channels/preview", map[string]any{"kind": "slack", "templates": map[string]any{"title": "{{"}}).problem(422, "validation_failed")
	require.Equal(t, "body.templates.title", p.Errors[0].Location)
}

func TestAlertChannelTest(t *testing.T) {
	fake := &fakeChannels{trial: noun.ChannelTrial{Delivered: true, Rendered: noun.RenderedAlert{Body: "hi"}}}
	w := newAlertWorld(t, fake)
	c := into[route.AlertChannel](w.call("acme/editor", "POST", "/alert-channels", dingTalk("enabled", false)).is(201))
	path := "/alert-channels/" + c.ID + "/test"
	w.call("acme/operator", "POST", path, nil).problem(403, "permission_denied")
	got := into[route.ChannelTestResult](w.call("acme/editor", "POST", path, nil).is(200))
	require.True(t, got.Delivered)
	require.Equal(t, "hi", got.Rendered.Body)
	require.Len(t, fake.tried, 1)
	require.Equal(t, []any{c.ID, w.tenants["acme"]}, []any{fake.tried[0].ID.String(), fake.tenants[0].ID})

	fake.trial = noun.ChannelTrial{Permanent: true, Message: "token is not exist"}
	got = into[route.ChannelTestResult](w.call("acme/editor", "POST", path, nil).is(200))
	require.Equal(t, []any{false, true, "token is not exist"}, []any{got.Delivered, got.Permanent, got.Message})
}

func TestAlertChannelPreview(t *testing.T) {
	fake := &fakeChannels{}
	w := newAlertWorld(t, fake)
	const path = "/alert-channels/preview"
	w.call("acme/editor", "POST", path, map[string]any{}).problem(422, "validation_failed")
	got := into[route.RenderedAlert](w.call("acme/editor", "POST", path, map[string]any{"kind": "slack", "language": "zh", "alert": "no_executor"}).is(200))
	require.Equal(t, "b", got.Body)
	require.Equal(t, []any{noun.ChannelSlack, "zh", domain.AlertNoExecutor}, []any{fake.spec.Kind, fake.spec.Language, fake.kind})
	require.Nil(t, fake.of)

	c := into[route.AlertChannel](w.call("acme/editor", "POST", "/alert-channels", dingTalk("templates", map[string]any{"title": "mine"})).is(201))
	w.call("acme/editor", "POST", path, map[string]any{"channelId": c.ID}).is(200)
	require.Equal(t, []any{"on call", "mine"}, []any{fake.spec.Name, fake.spec.Templates.Title})
	w.call("acme/editor", "POST", path, map[string]any{"channelId": c.ID, "templates": map[string]any{"text": "now"}}).is(200)
	require.Equal(t, noun.ChannelTemplates{Text: "now"}, fake.spec.Templates)
	w.call("acme/editor", "POST", path, map[string]any{"channelId": c.ID, "kind": "slack"}).problem(422, "validation_failed")
	w.call("beta/editor", "POST", path, map[string]any{"channelId": c.ID}).problem(404, "not_found")

	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	run := w.ran("acme", w.job("acme", "nightly", e), domain.Report{Outcome: domain.OutcomeTimedOut})
	w.call("acme/editor", "POST", path, map[string]any{"kind": "slack", "runId": run.ID.String()}).is(200)
	require.Equal(t, []any{domain.AlertRunTimedOut, run.ID, "nightly", "shop", "acme"},
		[]any{fake.of.Event.Kind, fake.of.Execution.ID, fake.of.Job.Spec.Name, fake.of.Executor.Name, strings.ToLower(fake.of.Tenant.Name)})
	w.call("beta/editor", "POST", path, map[string]any{"kind": "slack", "runId": run.ID.String()}).problem(404, "not_found")
}
