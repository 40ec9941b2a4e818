package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Child runs instead of the tests in a process that a test starts to kill it.
var Child func()

// ChildVariable is set in the environment of such a process.
const ChildVariable = "CARILLON_TEST_ALERTING_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(ChildVariable) != "" {
		Child()
		return
	}
	goleak.VerifyTestMain(m)
}

// outbox is an Alerts store in memory, with faults by switch. It keeps the
// contract of Alerts; its clock is the test's.
type outbox struct {
	Alerts // nil: what is not overridden must not be called

	log []string // fixed: of every run

	mu         sync.Mutex
	events     []AlertContext                             // guarded by mu: not expanded yet
	contexts   map[int64]AlertContext                     // guarded by mu
	deliveries map[int64]*noun.Delivery                   // guarded by mu
	down       error                                      // guarded by mu: every call fails with it
	finishFunc func(id int64, s noun.DeliveryState) error // guarded by mu: may refuse a FinishDelivery
	claims     int                                        // guarded by mu
	claimedBy  map[int64]string                           // guarded by mu: boots
}

func newOutbox() *outbox {
	return &outbox{contexts: map[int64]AlertContext{}, deliveries: map[int64]*noun.Delivery{}, claimedBy: map[int64]string{}}
}

// write adds an event about a failed run of a job with this owner and URL.
func (o *outbox) write(id int64, owner, url string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, failedRun(id, owner, url))
}

func failedRun(id int64, owner, url string) AlertContext {
	return AlertContext{
		Event: domain.AlertEvent{ID: id, TenantID: 1, Kind: domain.AlertRunFailed, JobID: 5, Revision: 2, ExecutionID: domain.ExecutionID(1000 + id),
			DedupeKey: fmt.Sprintf("run_failed:%d:1", 1000+id), CreatedAt: time.Now()},
		Tenant:    domain.Tenant{ID: 1, Name: "shop"},
		Executor:  domain.Executor{ID: 9, Name: "billing"},
		Execution: &domain.Execution{ID: domain.ExecutionID(1000 + id), State: domain.Failed, Attempt: 3, MaxAttempts: 3, Instance: 77, Error: "no route"},
		Job: domain.Job{ID: 5, Revision: 2, Spec: domain.JobSpec{
			Name: "close-day", Handler: "close-day", Owner: domain.Owner{Email: owner},
			Alert: domain.Alert{OnFailure: true, WebhookURL: url},
		}},
	}
}

// ExpandAlertEvents makes deliveries of each event at once: how events are grouped is
// not what the tests are about that use this store.
func (o *outbox) ExpandAlertEvents(_ context.Context, limit int, _ func(*AlertBatch)) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down != nil {
		return 0, o.down
	}
	n := min(limit, len(o.events))
	for _, c := range o.events[:n] {
		receivers, _ := Operators{}.receivers(&GroupedEvent{AlertContext: c}, TenantAlerts{})
		for _, r := range receivers {
			id := int64(len(o.deliveries) + 1)
			o.deliveries[id] = &noun.Delivery{
				ID: id, TenantID: c.Event.TenantID, EventID: c.Event.ID, Channel: r.Channel, Target: r.Target, State: noun.DeliveryPending,
				CreatedAt: time.Now(), NextAt: time.Now(),
			}
		}
		o.contexts[c.Event.ID] = c
	}
	o.events = o.events[n:]
	return n, nil
}

func (o *outbox) EvaluateAlertRules(context.Context) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return false, o.down
}

func (o *outbox) TellIncidents(context.Context, int, func(time.Time, []*DueIncident)) (int, time.Duration, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return 0, 0, o.down
}

func (o *outbox) ReleaseDeliveries(_ context.Context, boot string, ids []int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down != nil {
		return o.down
	}
	for _, id := range ids {
		if o.claimedBy[id] == boot {
			o.deliveries[id].NextAt, o.claimedBy[id] = time.Now(), ""
		}
	}
	return nil
}

func (o *outbox) ClaimDueDeliveries(_ context.Context, p ClaimDeliveriesParams) ([]DueDelivery, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down != nil {
		return nil, o.down
	}
	var due []*noun.Delivery
	now := time.Now()
	for id, d := range o.deliveries {
		if boot := o.claimedBy[id]; boot != "" && len(p.Living) > 0 && !slices.Contains(p.Living, boot) {
			d.NextAt, o.claimedBy[id] = now, ""
		}
		if d.State == noun.DeliveryPending && !d.NextAt.After(now) {
			due = append(due, d)
		}
	}
	sort.Slice(due, func(i, j int) bool {
		if !due[i].NextAt.Equal(due[j].NextAt) {
			return due[i].NextAt.Before(due[j].NextAt)
		}
		return due[i].ID < due[j].ID
	})
	due = due[:min(p.Limit, len(due))]
	out := make([]DueDelivery, len(due))
	for i, d := range due {
		d.Attempts++
		d.NextAt, o.claimedBy[d.ID] = now.Add(p.Hold), p.Boot
		out[i] = DueDelivery{Delivery: *d, Context: o.contexts[d.EventID]}
	}
	o.claims++
	return out, nil
}

func (o *outbox) FinishDelivery(_ context.Context, id int64, state noun.DeliveryState, retryIn time.Duration, lastError string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down != nil {
		return o.down
	}
	if o.finishFunc != nil {
		if err := o.finishFunc(id, state); err != nil {
			return err
		}
	}
	d := o.deliveries[id]
	if d.State != noun.DeliveryPending {
		return nil
	}
	d.State, d.LastError, o.claimedBy[id] = state, lastError, ""
	switch state {
	case noun.DeliveryPending:
		d.NextAt = time.Now().Add(retryIn)
	case noun.DeliveryDelivered:
		d.DeliveredAt = time.Now()
	}
	return nil
}

func (o *outbox) FindInstance(context.Context, domain.TenantID, domain.InstanceID) (domain.Instance, error) {
	return domain.Instance{}, errors.New("not in this store")
}

func (o *outbox) LogEnd(context.Context, domain.TenantID, domain.ExecutionID) (int, int64, error) {
	return 1, int64(len(o.log)), nil
}

// ReadLog gives the newest first, as the store does when it looks backwards.
func (o *outbox) ReadLog(_ context.Context, p store.ReadLogParams) (page store.LogPage, err error) {
	for at := p.Before - 1; at > 0 && len(page.Lines) < p.Limit; at-- {
		page.Lines = append(page.Lines, domain.LogLine{Number: at, Attempt: p.Attempt, Message: o.log[at-1]})
	}
	return page, nil
}

func (o *outbox) setDown(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = err
}

func (o *outbox) setFinish(f func(int64, noun.DeliveryState) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finishFunc = f
}

// all returns copies, by id.
func (o *outbox) all() []noun.Delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]noun.Delivery, len(o.deliveries))
	for id, d := range o.deliveries {
		out[id-1] = *d
	}
	return out
}

func (o *outbox) count(s noun.DeliveryState) (n int) {
	for _, d := range o.all() {
		if d.State == s {
			n++
		}
	}
	return n
}

// channel is a Sender whose answer a test decides.
type channel struct {
	name    string
	timeout time.Duration
	answer  func(ctx context.Context, n *Notice) error

	mu   sync.Mutex
	told []told         // guarded by mu
	now  map[string]int // guarded by mu: under way, by lane
	most map[string]int // guarded by mu: the highest number under way, by lane
}

type told struct {
	target, key string
	try         int
	at          time.Time
}

func newChannel(name string, answer func(context.Context, *Notice) error) *channel {
	return &channel{name: name, timeout: 5 * time.Second, answer: answer, now: map[string]int{}, most: map[string]int{}}
}

func (c *channel) Channel() string        { return c.name }
func (c *channel) Timeout() time.Duration { return c.timeout }
func (c *channel) Lane(n *Notice) string  { return n.Target }

func (c *channel) Render(n *Notice) (Rendered, error) {
	return Rendered{Title: n.Title(English)}, nil
}

func (c *channel) Send(ctx context.Context, n *Notice) error {
	c.mu.Lock()
	c.told = append(c.told, told{n.Target, n.DedupeKey, n.Try, time.Now()})
	c.now[n.Target]++
	c.most[n.Target] = max(c.most[n.Target], c.now[n.Target])
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.now[n.Target]--
		c.mu.Unlock()
	}()
	return c.answer(ctx, n)
}

func (c *channel) tellings(target string) (out []told) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.told {
		if target == "" || x.target == target {
			out = append(out, x)
		}
	}
	return out
}

func hang(ctx context.Context, _ *Notice) error {
	<-ctx.Done()
	return ctx.Err()
}

// start runs a service until the returned function is called, which waits for
// its end.
func start(t *testing.T, o *outbox, senders ...Sender) (*Service, func()) {
	t.Helper()
	return run(t, Options{Store: o, Senders: senders, MailsPerHour: 1_000_000_000})
}

func run(t *testing.T, opt Options) (*Service, func()) {
	t.Helper()
	opt.BaseURL, opt.Logger = "https://c.example.com/", slog.New(slog.DiscardHandler)
	s := New(opt)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return s, stop
}

func (c *channel) mostAtOnce(target string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most[target]
}
