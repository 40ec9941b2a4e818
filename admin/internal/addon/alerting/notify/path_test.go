package notify_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/alertsql"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/chat"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/mail"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/post"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/webhook"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// The whole way of an alert: a run fails in a real database, a real mail
// server and a real web server hear of it.

func init() { notify.Child = child }

// realStore is a real database with the tables of alerting.
type realStore struct {
	*gormstore.Store
	notify.Tables
}

// quick is the real store with waits that a test can bear.
type quick struct {
	realStore
	settled chan noun.DeliveryState // gets what FinishDelivery wrote; nil = nobody listens
	stuck   bool                    // a delivery is never written down as done
}

func (q quick) ClaimDueDeliveries(ctx context.Context, p notify.ClaimDeliveriesParams) ([]notify.DueDelivery, error) {
	p.Hold = 2 * time.Second
	return q.Tables.ClaimDueDeliveries(ctx, p)
}

func (q quick) FinishDelivery(ctx context.Context, id int64, state noun.DeliveryState, retryIn time.Duration, lastError string) error {
	if q.stuck && state == noun.DeliveryDelivered {
		select {}
	}
	err := q.Tables.FinishDelivery(ctx, id, state, retryIn/100, lastError)
	if err == nil && q.settled != nil {
		q.settled <- state
	}
	return err
}

var ids = domain.NewIDSource(1, time.Now)

func open(tb testing.TB, driver, dsn string) *gormstore.Store {
	tb.Helper()
	options := gormstore.Options{Driver: driver, DSN: dsn, NewID: domain.NewIDSource(2, time.Now).Next, Successes: alertsql.ReadSuccesses, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(tb, gormstore.Migrate(tb.Context(), options))
	s, err := gormstore.Open(tb.Context(), options)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

// box seals with a key that the child process knows, too.
func box() *secret.Box {
	b, err := secret.New([]byte(strings.Repeat("k", secret.KeySize)))
	if err != nil {
		panic(err)
	}
	return b
}

// world is a tenant with a job, and an instance that its runs fail on.
type world struct {
	store    realStore
	tenant   domain.TenantID
	job      store.JobView
	instance domain.InstanceID
}

func newWorld(t *testing.T, s *gormstore.Store, webhookURL string) world {
	t.Helper()
	ctx := t.Context()
	w := world{store: realStore{s, alertsql.New(s.Engine)}, tenant: domain.TenantID(ids.Next())}
	executor := domain.ExecutorID(ids.Next())
	require.NoError(t, s.CreateTenant(ctx, domain.Tenant{ID: w.tenant, Name: "shop " + w.tenant.String(), CreatedAt: time.Now()}))
	require.NoError(t, s.CreateExecutor(ctx, domain.Executor{ID: executor, TenantID: w.tenant, Name: "billing"}))
	instance, err := storetest.RegisterInstance(ctx, s, store.RegisterInstanceParams{TTL: time.Hour, Instance: domain.Instance{
		ID: domain.InstanceID(ids.Next()), TenantID: w.tenant, Executor: executor, BootID: "boot " + w.tenant.String(), Name: "web-1", Slots: 10, StartedAt: time.Now()}})
	require.NoError(t, err)
	w.instance = instance.ID
	id := domain.JobID(ids.Next())
	sealed, err := box().Seal(w.tenant, secret.PurposeJobWebhook, int64(id), []byte("s3cret"))
	require.NoError(t, err)
	w.job, err = s.CreateJob(ctx, domain.Job{ID: id, TenantID: w.tenant, Executor: executor, State: domain.JobEnabled, Source: domain.SourceConsole,
		Spec: domain.JobSpec{Name: "close-day", Handler: "CloseDay", Blocking: domain.BlockParallel, Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone},
			Owner: domain.Owner{Email: "ann@example.com"},
			Alert: domain.Alert{OnFailure: true, IncludeNoExecutor: true, Emails: []string{"team@example.com"}, WebhookURL: webhookURL, WebhookSecret: sealed},
		}}, func(time.Time, *domain.JobSpec) time.Time { return domain.Never })
	require.NoError(t, err)
	return w
}

// fail brings a run of the job to its bad end, which writes the event.
func (w world) fail(t *testing.T) domain.Execution {
	t.Helper()
	ctx := t.Context()
	now, err := w.store.Now(ctx)
	require.NoError(t, err)
	e := domain.Execution{ID: domain.ExecutionID(ids.Next()), TenantID: w.tenant, JobID: w.job.ID, Revision: 1, Executor: w.job.Executor,
		Partition: w.job.Partition, Cause: domain.CauseManual, FireAt: now, State: domain.Due, MaxAttempts: 1, NotBefore: now, WakeAt: now, PlannedAt: now, LogLines: -1}
	e.OccurrenceKey = e.ID.String()
	_, _, err = w.store.CreateExecution(ctx, e)
	require.NoError(t, err)
	offers, err := w.store.OfferExecutions(ctx, []store.Offer{{Tenant: w.tenant, ID: e.ID, Node: 1, Instance: w.instance, Idempotent: true, Granted: true}})
	require.NoError(t, err)
	require.Equal(t, store.OfferMade, offers[0].Status)
	results, err := w.store.FinishAttempts(ctx, []store.AttemptReport{{Tenant: w.tenant, Executor: w.job.Executor, Report: domain.Report{
		ExecutionID: e.ID, Fence: 1, Outcome: domain.OutcomeFailed, ErrorKind: "error", Error: "no route to host"}}})
	require.NoError(t, err)
	require.Equal(t, store.FinishStored, results[0].Code)
	return results[0].Execution
}

// run runs a service on the store until the test ends.
func run(t *testing.T, s quick, mailPort int, change ...func(*notify.Options)) *notify.Service {
	t.Helper()
	service, err := newService(s, mailPort, change...)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- service.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return service
}

func newService(s quick, mailPort int, change ...func(*notify.Options)) (*notify.Service, error) {
	client := post.New(post.Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	senders := append(chat.New(chat.Options{Client: client}), webhook.New(webhook.Options{Opener: box(), Client: client}))
	if mailPort != 0 {
		m, err := mail.New(mail.Config{Host: "127.0.0.1", Port: mailPort, From: "carillon@example.com", TLS: mail.TLSNone})
		if err != nil {
			return nil, err
		}
		senders = append(senders, m)
	}
	opt := notify.Options{Store: s, Senders: senders, Opener: box(), BaseURL: "https://c.example.com",
		PollInterval: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&opt)
	}
	return notify.New(opt), nil
}

// settle waits until n deliveries were written down, and counts them by state.
func (q quick) settle(t *testing.T, n int) map[noun.DeliveryState]int {
	t.Helper()
	got := map[noun.DeliveryState]int{}
	deadline := time.NewTimer(testenv.WaitLimit)
	defer deadline.Stop()
	for range n {
		select {
		case state := <-q.settled:
			got[state]++
		case <-deadline.C:
			t.Fatalf("%d deliveries settled, wanted %d", len(got), n)
		}
	}
	return got
}

func TestAFailedRunIsTold(t *testing.T) {
	for _, row := range []struct{ driver, dsn string }{
		{"sqlite", filepath.Join(t.TempDir(), "carillon.db")},
		{"mysql", testenv.Database(t)},
	} {
		t.Run(row.driver, func(t *testing.T) {
			smtp, sink := testenv.SMTP(t), testenv.HTTPSink(t)
			smtp.Script(testenv.SMTPReply{Command: "RCPT", Code: 451, Text: "greylisted"}) // one of the two mails, once
			sink.Script(testenv.HTTPAnswer{Status: 500})
			w := newWorld(t, open(t, row.driver, row.dsn), sink.URL+"/hook")
			q := quick{realStore: w.store, settled: make(chan noun.DeliveryState, 100)}
			service := run(t, q, smtp.Port())
			e := w.fail(t)
			service.Nudge()

			require.Equal(t, map[noun.DeliveryState]int{noun.DeliveryPending: 2, noun.DeliveryDelivered: 3}, q.settle(t, 5))
			mails := smtp.WaitMails(t, 2)
			to := []string{mails[0].To[0], mails[1].To[0]}
			slices.Sort(to)
			require.Equal(t, []string{"ann@example.com", "team@example.com"}, to)
			require.Contains(t, mails[0].Data, "Instance: web-1")
			require.Contains(t, mails[0].Data, "/runs/"+e.ID.String())

			posts := sink.Wait(t, 2)
			require.Equal(t, posts[0].Header.Get("Carillon-Dedupe-Key"), posts[1].Header.Get("Carillon-Dedupe-Key"))
			require.Equal(t, []string{"1", "2"}, []string{posts[0].Header.Get("Carillon-Delivery-Attempt"), posts[1].Header.Get("Carillon-Delivery-Attempt")})
			var body notify.Payload
			require.NoError(t, json.Unmarshal(posts[1].Body, &body))
			require.Equal(t, e.ID.String(), body.Run.ID)
			require.Equal(t, "no route to host", body.Run.Error)
			require.Equal(t, "web-1", body.Run.Instance.Name)

			log, err := w.store.ListDeliveries(t.Context(), notify.ListDeliveriesParams{Tenant: w.tenant, Limit: 10})
			require.NoError(t, err)
			require.Len(t, log, 3)
			for _, d := range log {
				require.Equal(t, noun.DeliveryDelivered, d.State)
				require.False(t, d.DeliveredAt.IsZero())
			}
		})
	}
}

func TestRefusalsEndInTheDeliveryLog(t *testing.T) {
	smtp, sink := testenv.SMTP(t), testenv.HTTPSink(t)
	smtp.Script(testenv.SMTPReply{Command: "RCPT", Code: 550, Text: "no such user"}, testenv.SMTPReply{Command: "RCPT", Code: 550, Text: "no such user"})
	w := newWorld(t, open(t, "sqlite", filepath.Join(t.TempDir(), "carillon.db")), "http://10.0.0.1/"+strings.TrimPrefix(sink.URL, "http://"))
	q := quick{realStore: w.store, settled: make(chan noun.DeliveryState, 100)}
	service := run(t, q, smtp.Port())
	// The way of dispatch: nothing runs, and nobody is there to run it.
	event := domain.AlertEvent{TenantID: w.tenant, Kind: domain.AlertNoExecutor, JobID: w.job.ID, Revision: 1, DedupeKey: "no_executor/1"}
	require.NoError(t, w.store.RecordAlerts(t.Context(), []domain.AlertEvent{event, event}))
	service.Nudge()
	require.Equal(t, map[noun.DeliveryState]int{noun.DeliveryFailed: 3}, q.settle(t, 3))
	log, err := w.store.ListDeliveries(t.Context(), notify.ListDeliveriesParams{Tenant: w.tenant, Limit: 10})
	require.NoError(t, err)
	require.Len(t, log, 3, "the second event had the same key")
	for _, d := range log {
		require.Equal(t, 1, d.Attempts)
		if d.Channel == notify.ChannelEmail {
			require.Contains(t, d.LastError, "no such user")
		} else {
			require.Contains(t, d.LastError, "may not be reached (--webhook-allow)")
		}
	}
}

// child is a node that is killed after the receiver has answered and before
// that is written down. Its variable holds the path of the database.
func child() {
	ctx := context.Background()
	s, err := gormstore.Open(ctx, gormstore.Options{Driver: "sqlite", DSN: os.Getenv(notify.ChildVariable), NewID: domain.NewIDSource(3, time.Now).Next})
	if err != nil {
		panic(err)
	}
	service, err := newService(quick{realStore: realStore{s, alertsql.New(s.Engine)}, stuck: true}, 0)
	if err != nil {
		panic(err)
	}
	_ = service.Run(ctx) // ends with the process
}

func TestKilledBetweenSendAndRecord(t *testing.T) {
	sink := testenv.HTTPSink(t)
	path := filepath.Join(t.TempDir(), "carillon.db")
	w := newWorld(t, open(t, "sqlite", path), sink.URL)
	e := w.fail(t)

	self, err := os.Executable()
	require.NoError(t, err)
	victim := exec.CommandContext(t.Context(), self)
	victim.Env = append(os.Environ(), notify.ChildVariable+"="+path)
	victim.Stderr = os.Stderr
	require.NoError(t, victim.Start())
	first := sink.Wait(t, 1)[0]
	require.NoError(t, victim.Process.Kill())
	require.Error(t, victim.Wait(), "it was killed")

	q := quick{realStore: w.store, settled: make(chan noun.DeliveryState, 100)}
	run(t, q, 0) // the node that is left
	require.Equal(t, map[noun.DeliveryState]int{noun.DeliveryDelivered: 1}, q.settle(t, 1))
	posts := sink.Requests()
	require.Len(t, posts, 2)
	require.Equal(t, first.Header.Get("Carillon-Dedupe-Key"), posts[1].Header.Get("Carillon-Dedupe-Key"))
	require.Equal(t, "2", posts[1].Header.Get("Carillon-Delivery-Attempt"))
	require.Contains(t, string(posts[1].Body), e.ID.String())
}
