package notify_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/alertsql"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// channel makes an alert channel of the tenant.
func (w world) channel(t *testing.T, spec noun.AlertChannelSpec, secrets noun.AlertChannelSecrets) noun.AlertChannel {
	t.Helper()
	c := noun.AlertChannel{ID: domain.ChannelID(ids.Next()), TenantID: w.tenant, Spec: spec}
	c.Spec.Name, c.Spec.Enabled = "channel "+c.ID.String(), true
	var wrong domain.Checker
	noun.CheckAlertChannel(&c.Spec, &secrets, &wrong)
	require.NoError(t, wrong.Err())
	plain, err := json.Marshal(secrets)
	require.NoError(t, err)
	c.Secrets, err = box().Seal(w.tenant, secret.PurposeAlertChannel, int64(c.ID), plain)
	require.NoError(t, err)
	c, err = storetest.PutChannel(t.Context(), w.channels(), c)
	require.NoError(t, err)
	return c
}

func (w world) channels() resource.Store { return alertsql.Channels(w.store.Store.DB) }

// tell makes the next event one for these channels.
func (w world) tell(t *testing.T, channels ...noun.AlertChannel) {
	t.Helper()
	w.fail(t)
	_, err := w.store.ExpandAlertEvents(t.Context(), 100, func(b *notify.AlertBatch) {
		storetest.EachAlone(b, func(notify.AlertContext) bool { return true }, func(c notify.AlertContext) (out []noun.Delivery) {
			for i := range channels {
				out = append(out, channels[i].Deliveries(c.Event.ID)...)
			}
			return out
		})
	})
	require.NoError(t, err)
}

// The whole way of alerts through channels: what is in the database reaches real
// servers, as the channel says, and the log tells what became of it.
func TestAlertChannels(t *testing.T) {
	sink, mails := testenv.HTTPSink(t), testenv.SMTP(t)
	w := newWorld(t, open(t, "sqlite", t.TempDir()+"/c.db"), "")
	ding := w.channel(t, noun.AlertChannelSpec{Kind: noun.ChannelDingTalk, Language: "zh"}, noun.AlertChannelSecrets{URL: sink.URL + "/robot/send?access_token=t0ken"})
	hook := w.channel(t, noun.AlertChannelSpec{Kind: noun.ChannelWebhook, Templates: noun.ChannelTemplates{Body: `{"what":{{json .Title}},"who":{{json .Channel}}}`}},
		noun.AlertChannelSecrets{URL: sink.URL + "/hook", Secret: "s3cret", Token: "t0ken"})
	team := w.channel(t, noun.AlertChannelSpec{Kind: noun.ChannelEmail, Emails: []string{"ann@example.com", "bob@example.com"},
		Templates: noun.ChannelTemplates{Title: "{{.Job.Name}} is down", Text: "Look: {{.Link}}", HTML: "<i>{{.Title}}</i>"}}, noun.AlertChannelSecrets{})
	off := w.channel(t, noun.AlertChannelSpec{Kind: noun.ChannelSlack}, noun.AlertChannelSecrets{URL: sink.URL + "/never"})
	gone := w.channel(t, noun.AlertChannelSpec{Kind: noun.ChannelSlack}, noun.AlertChannelSecrets{URL: sink.URL + "/never"})
	w.tell(t, ding, hook, team, off, gone)
	off.Spec.Enabled = false
	_, err := storetest.PutChannel(t.Context(), w.channels(), off)
	require.NoError(t, err)
	require.NoError(t, w.channels().Delete(t.Context(), w.tenant, int64(gone.ID), 0, "anna"))

	q := quick{realStore: w.store, settled: make(chan noun.DeliveryState, 100)}
	sink.Script(testenv.HTTPAnswer{Body: `{"errcode":0,"errmsg":"ok"}`}, testenv.HTTPAnswer{Body: `{"errcode":0,"errmsg":"ok"}`})
	run(t, q, mails.Port())
	require.Equal(t, map[noun.DeliveryState]int{noun.DeliveryDelivered: 4, noun.DeliveryFailed: 2}, q.settle(t, 6))

	got := map[string]testenv.HTTPRequest{}
	for _, r := range sink.Wait(t, 2) {
		got[strings.SplitN(r.URI, "?", 2)[0]] = r
	}
	require.Contains(t, string(got["/robot/send"].Body), "执行失败：close-day")
	require.JSONEq(t, `{"what":"Failed: close-day","who":"`+hook.Spec.Name+`"}`, string(got["/hook"].Body))
	require.Equal(t, "Bearer t0ken", got["/hook"].Header.Get("Authorization"))
	require.NotEmpty(t, got["/hook"].Header.Get("Carillon-Signature"))
	to := []string{}
	for _, m := range mails.WaitMails(t, 2) {
		to = append(to, m.To...)
		require.Contains(t, m.Data, "Subject: close-day is down")
		require.Contains(t, m.Data, "Look: https://c.example.com/t/shop%20")
		require.Contains(t, m.Data, "<i>Failed: close-day</i>")
	}
	require.ElementsMatch(t, []string{"ann@example.com", "bob@example.com"}, to)

	log, err := w.store.ListDeliveries(t.Context(), notify.ListDeliveriesParams{Tenant: w.tenant})
	require.NoError(t, err)
	why := map[domain.ChannelID]string{}
	for _, d := range log {
		why[d.ChannelID] = d.LastError
	}
	require.Equal(t, map[domain.ChannelID]string{
		ding.ID: "", hook.ID: "", team.ID: "", off.ID: "the alert channel is disabled", gone.ID: "the alert channel has been deleted",
	}, why)
}

// A product that limits is left alone, and what waits for it comes later.
func TestARobotThatLimits(t *testing.T) {
	sink := testenv.HTTPSink(t)
	w := newWorld(t, open(t, "sqlite", t.TempDir()+"/c.db"), "")
	ding := w.channel(t, noun.AlertChannelSpec{Kind: noun.ChannelDingTalk}, noun.AlertChannelSecrets{URL: sink.URL + "/robot/send?access_token=t0ken"})
	q := quick{realStore: w.store, settled: make(chan noun.DeliveryState, 100)}
	w.tell(t, ding)
	sink.Script(testenv.HTTPAnswer{Body: `{"errcode":410100,"errmsg":"too fast"}`})
	service := run(t, q, 0)
	require.Equal(t, map[noun.DeliveryState]int{noun.DeliveryPending: 1}, q.settle(t, 1))
	w.tell(t, ding, ding, ding)
	service.Nudge()
	require.Equal(t, map[noun.DeliveryState]int{noun.DeliveryPending: 3}, q.settle(t, 3))
	require.Len(t, sink.Requests(), 1, "not tried while the robot is silent")
	log, err := w.store.ListDeliveries(t.Context(), notify.ListDeliveriesParams{Tenant: w.tenant})
	require.NoError(t, err)
	require.Contains(t, log[3].LastError, "410100")
	require.Contains(t, log[0].LastError, "not tried yet")
}

// TestATenantsMailsAreBounded: over all channels and jobs. Further mails wait, and a
// test is refused.
func TestATenantsMailsAreBounded(t *testing.T) {
	mails := testenv.SMTP(t)
	w := newWorld(t, open(t, "sqlite", t.TempDir()+"/c.db"), "")
	one := w.channel(t, noun.AlertChannelSpec{Kind: noun.ChannelEmail, Emails: []string{"a@example.com", "b@example.com", "c@example.com"}}, noun.AlertChannelSecrets{})
	two := w.channel(t, noun.AlertChannelSpec{Kind: noun.ChannelEmail, Emails: []string{"d@example.com", "e@example.com", "f@example.com"}}, noun.AlertChannelSecrets{})
	w.tell(t, one, two)
	q := quick{realStore: w.store, settled: make(chan noun.DeliveryState, 100)}
	service := run(t, q, mails.Port(), func(o *notify.Options) { o.MailsPerHour = 8 }) // four at once
	require.Equal(t, map[noun.DeliveryState]int{noun.DeliveryDelivered: 4, noun.DeliveryPending: 2}, q.settle(t, 6))
	require.Len(t, mails.WaitMails(t, 4), 4)
	log, err := w.store.ListDeliveries(t.Context(), notify.ListDeliveriesParams{Tenant: w.tenant})
	require.NoError(t, err)
	waiting := 0
	for _, d := range log {
		if d.State == noun.DeliveryPending {
			waiting++
			require.Contains(t, d.LastError, "--mail-per-hour")
		}
	}
	require.Equal(t, 2, waiting)
	for _, c := range []noun.AlertChannel{one, two} {
		got := service.TryChannel(t.Context(), domain.Tenant{ID: w.tenant, Name: "shop"}, c)
		require.Equal(t, []any{false, false}, []any{got.Delivered, got.Permanent})
		require.Contains(t, got.Message, "--mail-per-hour")
	}
	require.Len(t, mails.Mails(), 4)
}

// TestRefusedTestsCountForNothing: neither for the channel nor for the tenant's mails.
func TestRefusedTestsCountForNothing(t *testing.T) {
	mails := testenv.SMTP(t)
	w := newWorld(t, open(t, "sqlite", t.TempDir()+"/c.db"), "")
	service, err := newService(quick{realStore: w.store}, mails.Port(), func(o *notify.Options) { o.MailsPerHour = 80 }) // forty at once
	require.NoError(t, err)
	mail := func() noun.AlertChannel {
		return w.channel(t, noun.AlertChannelSpec{Kind: noun.ChannelEmail, Emails: []string{"a@example.com"}}, noun.AlertChannelSecrets{})
	}
	try := func(c noun.AlertChannel) noun.ChannelTrial {
		return service.TryChannel(t.Context(), domain.Tenant{ID: w.tenant, Name: "shop"}, c)
	}
	delivered := 0
	last := ""
	for c := mail(); !strings.Contains(last, "--mail-per-hour"); c = mail() {
		refused := 0
		for refused < 50 && !strings.Contains(last, "--mail-per-hour") { // it takes 20 at once
			if got := try(c); got.Delivered {
				delivered++
			} else {
				refused++
				last = got.Message
			}
		}
	}
	require.GreaterOrEqual(t, delivered, 40, "tests that were refused counted")
}

func TestTryChannel(t *testing.T) {
	sink, mails := testenv.HTTPSink(t), testenv.SMTP(t)
	w := newWorld(t, open(t, "sqlite", t.TempDir()+"/c.db"), "")
	service, err := newService(quick{realStore: w.store}, mails.Port())
	require.NoError(t, err)
	tenant := domain.Tenant{ID: w.tenant, Name: "shop"}
	slack := w.channel(t, noun.AlertChannelSpec{Kind: noun.ChannelSlack}, noun.AlertChannelSecrets{URL: sink.URL})
	slack.Spec.Enabled = false
	sink.Script(testenv.HTTPAnswer{Body: "ok"}, testenv.HTTPAnswer{Status: 404, Body: "no_service"}, testenv.HTTPAnswer{Status: 429, Header: map[string][]string{"Retry-After": {"60"}}})
	got := service.TryChannel(t.Context(), tenant, slack)
	require.True(t, got.Delivered, got.Message)
	require.Contains(t, got.Rendered.Body, "Test message: "+slack.Spec.Name)
	require.Contains(t, string(sink.Wait(t, 1)[0].Body), "Test message: "+slack.Spec.Name)
	got = service.TryChannel(t.Context(), tenant, slack)
	require.Equal(t, []any{false, true}, []any{got.Delivered, got.Permanent})
	require.Contains(t, got.Message, "no_service")
	got = service.TryChannel(t.Context(), tenant, slack)
	require.Equal(t, []any{false, false}, []any{got.Delivered, got.Permanent})
	got = service.TryChannel(t.Context(), tenant, slack)
	require.Contains(t, got.Message, "try again in", "the receiver asked to wait")
	require.Len(t, sink.Requests(), 3)

	team := w.channel(t, noun.AlertChannelSpec{Kind: noun.ChannelEmail, Emails: []string{"ann@example.com", "bob@example.com"}}, noun.AlertChannelSecrets{})
	got = service.TryChannel(t.Context(), tenant, team)
	require.True(t, got.Delivered, got.Message)
	mails.WaitMails(t, 2)

	// A product that keeps what it is told open is told that it is over.
	pager := w.channel(t, noun.AlertChannelSpec{Kind: noun.ChannelPagerDuty, BaseURL: sink.URL}, noun.AlertChannelSecrets{Token: "key"})
	sink.Script(testenv.HTTPAnswer{Status: 202}, testenv.HTTPAnswer{Status: 202}, testenv.HTTPAnswer{Status: 202}, testenv.HTTPAnswer{Status: 400, Body: "bad"})
	got = service.TryChannel(t.Context(), tenant, pager)
	require.True(t, got.Delivered, got.Message)
	told := sink.Wait(t, 5)[3:]
	require.Contains(t, string(told[0].Body), `"event_action":"trigger"`)
	require.Contains(t, string(told[1].Body), `"event_action":"resolve"`)
	got = service.TryChannel(t.Context(), tenant, pager)
	require.Contains(t, got.Message, "could not be closed")

	foreign := slack
	foreign.ID++ // its secrets were sealed for another
	got = service.TryChannel(t.Context(), tenant, foreign)
	require.Equal(t, []any{false, false}, []any{got.Delivered, got.Permanent})
	require.Contains(t, got.Message, secret.ErrUnreadable.Error())
}

func TestPreviewChannel(t *testing.T) {
	w := newWorld(t, open(t, "sqlite", t.TempDir()+"/c.db"), "")
	service, err := newService(quick{realStore: w.store}, 0)
	require.NoError(t, err)
	e := w.fail(t)
	e.FireAt = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	of := &notify.AlertContext{Event: domain.AlertEvent{ID: 1, TenantID: w.tenant, Kind: domain.AlertRunFailed, JobID: w.job.ID, ExecutionID: e.ID}, Job: w.job.Job, Execution: &e}
	got, err := service.PreviewChannel(noun.AlertChannelSpec{Name: "x", Kind: noun.ChannelWebhook, Templates: noun.ChannelTemplates{Body: "{{.Links.Run}}", ContentType: "text/plain"}}, "", of)
	require.NoError(t, err)
	require.Equal(t, notify.Rendered{ContentType: "text/plain", Body: "https://c.example.com/runs/" + e.ID.String()}, got)
	got, err = service.PreviewChannel(noun.AlertChannelSpec{Name: "x", Kind: noun.ChannelTeams, Language: "zh"}, domain.AlertNoExecutor, nil)
	require.NoError(t, err)
	require.Contains(t, got.Body, "没有在线的执行器")
	_, err = service.PreviewChannel(noun.AlertChannelSpec{Name: "x", Kind: noun.ChannelEmail, Emails: []string{"a@example.com"}}, domain.AlertTest, nil)
	require.ErrorContains(t, err, "mail is not configured")
}

// judge is a mail server that sends to one address.
type judge string

func (j judge) Check(address string) error {
	if address != string(j) {
		return errors.New("it may not be mailed to")
	}
	return nil
}

// The addresses of a channel are judged where there is a mail server.
func TestAddressesOfAChannelAreJudged(t *testing.T) {
	t.Parallel()
	spec := noun.AlertChannelSpec{Emails: []string{"a@example.com", "b@example.com"}}
	s := notify.New(notify.Options{})
	require.False(t, s.Mails())
	require.NoError(t, s.Check(&spec))
	s = notify.New(notify.Options{Addresses: judge("a@example.com")})
	require.True(t, s.Mails())
	err := s.Check(&spec)
	require.Equal(t, domain.CodeInvalid, domain.CodeOf(err))
	spec.Emails = spec.Emails[:1]
	require.NoError(t, s.Check(&spec))
}
