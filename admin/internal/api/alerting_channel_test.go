package api

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/alertsql"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/route"
	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
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

// channelBody is the body of a channel. Changes of url, secret and token are its secrets, and a
// value that is nil is left out.
func channelBody(name, kind string, change ...any) map[string]any {
	spec, secrets := map[string]any{"kind": kind}, map[string]any{}
	for i := 0; i < len(change); i += 2 {
		field, of := change[i].(string), spec
		if field == "url" || field == "secret" || field == "token" {
			of = secrets
		}
		of[field] = change[i+1]
		if change[i+1] == nil {
			delete(of, field)
		}
	}
	return map[string]any{"name": name, "spec": spec, "secrets": secrets}
}

func dingTalk(change ...any) map[string]any {
	return channelBody("on call", "dingtalk", append([]any{"url", "https://oapi.dingtalk.example/robot/send?access_token=s3cret-1", "secret", "SECs3cret"}, change...)...)
}

// alertChannel is a document of a channel, as the API shows it.
type alertChannel struct {
	document.Answer
	Spec noun.AlertChannelSpec `json:"spec"`
}

func (w *world) channelSecrets(id string) map[string]string {
	w.t.Helper()
	c, err := alertsql.Channels(w.store.DB).Find(w.t.Context(), w.tenants["acme"], int64(mustID[domain.ChannelID](w.t, id)))
	require.NoError(w.t, err)
	require.NotContains(w.t, string(c.Sealed)+string(c.Spec), "s3cret")
	s, err := resource.OpenSecrets(w.box, secret.PurposeAlertChannel, &c.Meta)
	require.NoError(w.t, err)
	return s
}

func TestAlertChannelLifecycle(t *testing.T) {
	w := newWorld(t)
	w.call("acme/operator", "POST", "/alert-channels", dingTalk()).problem(403, "permission_denied")
	created := w.call("acme/editor", "POST", "/alert-channels", dingTalk()).is(201)
	require.NotContains(t, string(created.body), "s3cret")
	c := into[alertChannel](created)
	require.Equal(t, []any{int64(1), true, "https://oapi.dingtalk.example", 2}, []any{c.Version, c.Spec.Enabled, c.Spec.Host, len(c.Secrets)})
	require.Regexp(t, "^fingerprint:[0-9a-f]{24}$", c.Secrets["url"])
	w.call("acme/editor", "POST", "/alert-channels", dingTalk()).problem(409, "conflict")

	path := "/alert-channels/" + c.ID
	got := w.call("acme/viewer", "GET", path, nil).is(200)
	require.NotContains(t, string(got.body), "s3cret")
	require.Equal(t, `"1"`, got.header.Get("ETag"))

	// Secrets that are left out stay. The host is the server's to write.
	change := channelBody("nights", "dingtalk", "enabled", false, "language", "zh", "mentions", []string{"13800000000"}, "host", "https://elsewhere.example")
	w.call("acme/editor", "PUT", path, change).problem(428, "validation_failed")
	w.call("acme/editor", "PUT", path, change, header{"If-Match": `"7"`}).problem(412, "revision_mismatch")
	c = into[alertChannel](w.call("acme/editor", "PUT", path, change, header{"If-Match": `"1"`}).is(200))
	require.Equal(t, []any{int64(2), "nights", false, "zh", "https://oapi.dingtalk.example"}, []any{c.Version, c.Name, c.Spec.Enabled, c.Spec.Language, c.Spec.Host})
	require.Equal(t, map[string]string{"url": "https://oapi.dingtalk.example/robot/send?access_token=s3cret-1", "secret": "SECs3cret"}, w.channelSecrets(c.ID))

	list := w.call("acme/viewer", "GET", "/alert-channels", nil).is(200)
	require.Equal(t, []alertChannel{c}, into[web.Page[alertChannel]](list).Items)
	p := w.call("acme/editor", "PUT", path, channelBody("x", "slack", "url", "https://hooks.example", "secret", ""), header{"If-Match": "*"}).problem(422, "validation_failed")
	require.Equal(t, "body.spec.kind", p.Errors[0].Location)
	p = w.call("acme/editor", "POST", "/alert-channels", channelBody("12", "slack", "url", "https://hooks.example")).problem(422, "validation_failed")
	require.Equal(t, "body.name", p.Errors[0].Location)

	w.call("acme/operator", "DELETE", path, nil).problem(403, "permission_denied")
	defaults := func(version string, channels ...string) {
		w.call("acme/admin", "PUT", "/alert-settings", map[string]any{"defaultChannelIds": append([]string{}, channels...)}, header{"If-Match": version}).is(200)
	}
	defaults(`"0"`, c.ID)
	require.Contains(t, w.call("acme/editor", "DELETE", path, nil).problem(409, "conflict").Detail, "default channels")
	defaults(`"1"`)
	w.call("acme/editor", "DELETE", path, nil).is(204)
	w.call("acme/viewer", "GET", path, nil).problem(404, "not_found")
	require.Equal(t, c.Secrets, into[alertChannel](w.call("acme/editor", "POST", path+"/restore", nil).is(200)).Secrets)
	require.Equal(t, "SECs3cret", w.channelSecrets(c.ID)["secret"])
}

// An apply of the listed channels writes nothing.
func TestAlertChannelsAreExportedAndApplied(t *testing.T) {
	w := newWorld(t)
	with := func(body map[string]any) map[string]any { body["kind"] = "AlertChannel"; return body }
	made := into[apply.Plan](w.call("acme/editor", "POST", "/apply", documentsBody(
		with(dingTalk("templates", map[string]any{"title": "mine"})),
		with(channelBody("bot", "telegram", "chatId", "-100", "token", "1:s3cret-1", "enabled", false)),
		with(channelBody("mail", "email", "emails", []string{"ops@example.com"})),
	)).is(200))
	require.Equal(t, []any{3, 0}, []any{made.Create, made.Failed})
	exported := into[web.Page[map[string]any]](w.call("acme/viewer", "GET", "/alert-channels", nil).is(200)).Items
	require.Len(t, exported, 3)
	plan := into[apply.Plan](w.call("acme/editor", "POST", "/plan", documentsBody(exported...)).is(200))
	require.Equal(t, []any{3, 0, 0}, []any{plan.Same, plan.Update, plan.Create})

	exported[0]["spec"].(map[string]any)["enabled"] = true
	plan = into[apply.Plan](w.call("acme/editor", "POST", "/plan", documentsBody(exported...)).is(200))
	require.Equal(t, []any{1, "spec.enabled", "false", "true"}, []any{plan.Update, plan.Items[0].Changes[0].Path, string(plan.Items[0].Changes[0].Before), string(plan.Items[0].Changes[0].After)})
	w.call("beta/editor", "POST", "/plan", documentsBody(exported...)).problem(422, "validation_failed")
}

// Who may edit a channel cannot have its token sent to a server of theirs.
func TestAlertChannelTokenIsNotRedirected(t *testing.T) {
	w := newWorld(t)
	anyVersion := header{"If-Match": "*"}
	for _, row := range []struct{ before, elsewhere, with map[string]any }{
		{channelBody("a", "opsgenie", "token", "s3cret-1"), channelBody("a", "opsgenie", "baseUrl", "https://thief.example"),
			channelBody("a", "opsgenie", "baseUrl", "https://thief.example", "token", "s3cret-2")},
		{channelBody("b", "webhook", "url", "https://hook.example/", "token", "s3cret-1"), channelBody("b", "webhook", "url", "https://thief.example"),
			channelBody("b", "webhook", "url", "https://thief.example", "token", "s3cret-2")},
	} {
		c := into[alertChannel](w.call("acme/editor", "POST", "/alert-channels", row.before).is(201))
		path := "/alert-channels/" + c.ID
		p := w.call("acme/editor", "PUT", path, row.elsewhere, anyVersion).problem(422, "validation_failed")
		require.Equal(t, "body.secrets.token", p.Errors[0].Location)
		// The same address is no other receiver.
		w.call("acme/editor", "PUT", path, row.before, anyVersion).is(200)
		w.call("acme/editor", "PUT", path, row.with, anyVersion).is(200)
		require.Equal(t, "s3cret-2", w.channelSecrets(c.ID)["token"])
	}
}

func TestAlertChannelMistakes(t *testing.T) {
	w := newWorld(t)
	of := func(kind string, change ...any) map[string]any { return channelBody("x", kind, change...) }
	for name, test := range map[string]struct {
		body map[string]any
		want string
	}{
		"no addresses":               {of("email"), "body.spec.emails"},
		"no address":                 {of("email", "emails", []string{"x"}), "body.spec.emails[0]"},
		"an address twice":           {of("email", "emails", []string{"a@example.com", "A@example.com"}), "body.spec.emails[1]"},
		"a mail with a url":          {of("email", "emails", []string{"a@example.com"}, "url", "https://s3cret.example"), "body.secrets.url"},
		"no url":                     {of("slack"), "body.secrets.url"},
		"a scheme":                   {of("slack", "url", "ftp://s3cret.example"), "body.secrets.url"},
		"a user":                     {of("slack", "url", "https://a:s3cret@example.com"), "body.secrets.url"},
		"half of a robot":            {dingTalk("url", "https://oapi.dingtalk.example/robot/send"), "body.secrets.url"},
		"half of another robot":      {of("wecom", "url", "https://qyapi.example/cgi-bin/webhook/send"), "body.secrets.url"},
		"no token":                   {of("telegram", "chatId", "7"), "body.secrets.token"},
		"a token that is none":       {of("telegram", "chatId", "7", "token", "s3cret"), "body.secrets.token"},
		"no chat":                    {of("telegram", "token", "1:s3cret"), "body.spec.chatId"},
		"a mention that is markup":   {of("slack", "url", "https://example.com", "mentions", []string{"U1> <!here"}), "body.spec.mentions[0]"},
		"mentions of none":           {of("teams", "url", "https://example.com", "mentions", []string{"a"}), "body.spec.mentions"},
		"another's template":         {of("slack", "url", "https://example.com", "templates", map[string]any{"body": "x"}), "body.spec.templates.body"},
		"a secret that does nothing": {of("slack", "url", "https://example.com", "secret", "s3cret"), "body.secrets.secret"},
		"a type without a body":      {of("webhook", "url", "https://example.com", "templates", map[string]any{"contentType": "text/plain"}), "body.spec.templates.contentType"},
		"a type of two lines":        {of("webhook", "url", "https://example.com", "templates", map[string]any{"body": "x", "contentType": "text/plain\r\nx: y"}), "body.spec.templates.contentType"},
	} {
		a := w.call("acme/editor", "POST", "/alert-channels", test.body)
		require.NotContains(t, string(a.body), "s3cret", name)
		p := a.problem(422, "validation_failed")
		require.Equal(t, test.want, p.Errors[0].Location, name)
	}
}

func TestAlertChannelTemplatesAreChecked(t *testing.T) {
	fake := &fakeChannels{check: domain.Invalid("body.spec.templates.title", "fails")}
	w := newAlertWorld(t, fake)
	p := w.call("acme/editor", "POST", "/alert-channels", dingTalk("templates", map[string]any{"title": "{{"})).problem(422, "validation_failed")
	require.Equal(t, "body.spec.templates.title", p.Errors[0].Location)
	p = w.call("acme/editor", "POST", "/alert-channels/preview", map[string]any{"spec": map[string]any{"kind": "slack", "templates": map[string]any{"title": "{{"}}}).problem(422, "validation_failed")
	require.Equal(t, "body.spec.templates.title", p.Errors[0].Location)
}

func TestAlertChannelTest(t *testing.T) {
	fake := &fakeChannels{trial: noun.ChannelTrial{Delivered: true, Rendered: noun.RenderedAlert{Body: "hi"}}}
	w := newAlertWorld(t, fake)
	c := into[alertChannel](w.call("acme/editor", "POST", "/alert-channels", dingTalk("enabled", false)).is(201))
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
	got := into[route.RenderedAlert](w.call("acme/editor", "POST", path, map[string]any{"spec": map[string]any{"kind": "slack", "language": "zh"}, "alert": "no_executor"}).is(200))
	require.Equal(t, "b", got.Body)
	require.Equal(t, []any{noun.ChannelSlack, "zh", domain.AlertNoExecutor}, []any{fake.spec.Kind, fake.spec.Language, fake.kind})
	require.Nil(t, fake.of)

	c := into[alertChannel](w.call("acme/editor", "POST", "/alert-channels", dingTalk("templates", map[string]any{"title": "mine"})).is(201))
	w.call("acme/editor", "POST", path, map[string]any{"channel": c.ID}).is(200)
	require.Equal(t, []any{"on call", "mine"}, []any{fake.spec.Name, fake.spec.Templates.Title})
	w.call("acme/editor", "POST", path, map[string]any{"channel": c.Name, "spec": map[string]any{"templates": map[string]any{"text": "now"}}}).is(200)
	require.Equal(t, noun.ChannelTemplates{Text: "now"}, fake.spec.Templates)
	w.call("acme/editor", "POST", path, map[string]any{"channel": c.ID, "spec": map[string]any{"kind": "slack"}}).problem(422, "validation_failed")
	w.call("beta/editor", "POST", path, map[string]any{"channel": c.ID}).problem(404, "not_found")

	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	run := w.ran("acme", w.job("acme", "nightly", e), domain.Report{Outcome: domain.OutcomeTimedOut})
	w.call("acme/editor", "POST", path, map[string]any{"spec": map[string]any{"kind": "slack"}, "runId": run.ID.String()}).is(200)
	require.Equal(t, []any{domain.AlertRunTimedOut, run.ID, "nightly", "shop", "acme"},
		[]any{fake.of.Event.Kind, fake.of.Execution.ID, fake.of.Job.Spec.Name, fake.of.Executor.Name, strings.ToLower(fake.of.Tenant.Name)})
	w.call("beta/editor", "POST", path, map[string]any{"spec": map[string]any{"kind": "slack"}, "runId": run.ID.String()}).problem(404, "not_found")
}
