package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDatabase = errors.New("the database is down")

// faulty is the real store behind a switch. before is asked at each call and
// can keep it from the database; after can lose the answer to one that was
// carried out.
type faulty struct {
	Store
	mu     sync.Mutex
	before func(method string) error // guarded by mu
	after  func(method string) error // guarded by mu
	// cost is what a transaction with this many rows takes; nil = nothing. Set
	// before it is used.
	cost func(rows int) time.Duration
	// listed answers the questions of ListWaiting; nil = nothing. Set before it is used.
	listed func(store.ListWaitingParams) []domain.Execution
}

func (f *faulty) spend(rows int) {
	if f.cost != nil {
		time.Sleep(f.cost(rows))
	}
}

func (f *faulty) fail(before, after func(method string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

func (f *faulty) heal() { f.fail(nil, nil) }

// only is a fault of one method, any of them when method is empty.
func only(method string) func(string) error {
	return func(called string) error {
		if method == "" || called == method {
			return errDatabase
		}
		return nil
	}
}

func through[R any](f *faulty, method string, call func() (R, error)) (R, error) {
	f.mu.Lock()
	before, after := f.before, f.after
	f.mu.Unlock()
	var none R
	if before != nil {
		if err := before(method); err != nil {
			return none, err
		}
	}
	r, err := call()
	if after != nil && err == nil {
		if err := after(method); err != nil {
			return none, err
		}
	}
	return r, err
}

func (f *faulty) JobSpec(ctx context.Context, tenant domain.TenantID, id domain.JobID, revision int64) (*domain.JobSpec, error) {
	return through(f, "JobSpec", func() (*domain.JobSpec, error) { return f.Store.JobSpec(ctx, tenant, id, revision) })
}

func (f *faulty) OfferExecutions(ctx context.Context, offers []store.Offer) ([]store.OfferResult, error) {
	f.spend(len(offers))
	return through(f, "OfferExecutions", func() ([]store.OfferResult, error) { return f.Store.OfferExecutions(ctx, offers) })
}

func (f *faulty) SpreadExecutions(ctx context.Context, spreads []store.Spread) ([]store.SpreadResult, error) {
	return through(f, "SpreadExecutions", func() ([]store.SpreadResult, error) { return f.Store.SpreadExecutions(ctx, spreads) })
}

func (f *faulty) CancelParts(ctx context.Context, parents []domain.Execution) (store.CancelledParts, error) {
	return through(f, "CancelParts", func() (store.CancelledParts, error) { return f.Store.CancelParts(ctx, parents) })
}

func (f *faulty) GrantOffers(ctx context.Context, grants []store.GrantRequest) ([]store.GrantResult, error) {
	f.spend(len(grants))
	return through(f, "GrantOffers", func() ([]store.GrantResult, error) { return f.Store.GrantOffers(ctx, grants) })
}

func (f *faulty) GiveBackOffers(ctx context.Context, items []store.GiveBack) ([]store.OfferResult, error) {
	return through(f, "GiveBackOffers", func() ([]store.OfferResult, error) { return f.Store.GiveBackOffers(ctx, items) })
}

func (f *faulty) RecordWaits(ctx context.Context, waits []store.Wait) ([]domain.Execution, error) {
	return through(f, "RecordWaits", func() ([]domain.Execution, error) { return f.Store.RecordWaits(ctx, waits) })
}

func (f *faulty) ListWaiting(ctx context.Context, p store.ListWaitingParams) ([]domain.Execution, error) {
	return through(f, "ListWaiting", func() ([]domain.Execution, error) {
		if f.listed != nil {
			return f.listed(p), nil
		}
		return f.Store.ListWaiting(ctx, p)
	})
}

func (f *faulty) RecentInstances(ctx context.Context, p store.RecentInstancesParams) (map[domain.JobID][]domain.InstanceID, error) {
	return through(f, "RecentInstances", func() (map[domain.JobID][]domain.InstanceID, error) { return f.Store.RecentInstances(ctx, p) })
}

func (f *faulty) CountOnline(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (int, error) {
	return through(f, "CountOnline", func() (int, error) { return f.Store.CountOnline(ctx, tenant, executor) })
}

// instance is a Target in memory. Its fields are set before it is used.
type instance struct {
	id         domain.InstanceID
	slots      int
	weights    map[string]int // by handler; 1 unless told
	idempotent bool
	executor   domain.ExecutorID // 0 = all
	handler    string            // "" = all
	traits     Traits
	load       Load
	// onOffers and onGrants are called with what is sent, in order.
	onOffers func([]store.OfferResult)
	onGrants func([]Grant)

	mu            sync.Mutex
	taken         map[attempt]int     // guarded by mu
	line          int                 // guarded by mu: how many bytes of inputs are taken until relieve; 0 = any
	loading       int                 // guarded by mu: bytes of inputs that were taken since
	sendQueueFull bool                // guarded by mu
	drained       bool                // guarded by mu
	offers        []store.OfferResult // guarded by mu
	grants        []Grant             // guarded by mu
	cancels       []domain.Execution  // guarded by mu
}

type attempt struct {
	id    domain.ExecutionID
	fence int64
}

func (i *instance) InstanceID() domain.InstanceID { return i.id }
func (i *instance) Traits() Traits                { return i.traits }
func (i *instance) Load() Load                    { return i.load }
func (i *instance) Idempotent(string) bool        { return i.idempotent }

func (i *instance) Free() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.sendQueueFull {
		return 0
	}
	return i.slots - i.used()
}

func (i *instance) SendQueueFull() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.sendQueueFull
}

func (i *instance) Spare() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.line == 0 {
		return 1 << 30
	}
	return max(0, i.line-i.loading)
}

// relieve is the event that everything has been sent.
func (i *instance) relieve() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sendQueueFull, i.loading = false, 0
}

// used is called with mu held.
func (i *instance) used() (n int) {
	for _, w := range i.taken {
		n += w
	}
	return n
}

func (i *instance) Weight(handler string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return max(1, min(i.weights[handler], i.slots))
}

func (i *instance) Reserve(id domain.ExecutionID, fence int64, weight, input int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.used()+weight > i.slots {
		return false
	}
	if i.line > 0 && i.loading+input > i.line {
		i.sendQueueFull = true
		return false
	}
	i.loading += input
	if i.taken == nil {
		i.taken = map[attempt]int{}
	}
	i.taken[attempt{id, fence}] = weight
	return true
}

func (i *instance) Holds(id domain.ExecutionID, fence int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.taken[attempt{id, fence}] > 0
}

func (i *instance) Release(id domain.ExecutionID, fence int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.taken, attempt{id, fence})
}

func (i *instance) SendOffers(offers []store.OfferResult) {
	i.mu.Lock()
	i.offers = append(i.offers, offers...)
	i.mu.Unlock()
	if i.onOffers != nil {
		i.onOffers(offers)
	}
}

func (i *instance) Drained() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.drained
}

func (i *instance) SendGrants(grants []Grant) {
	i.mu.Lock()
	i.grants = append(i.grants, grants...)
	for _, g := range grants {
		if !g.Granted { // as the session does
			delete(i.taken, attempt{g.ID, g.Fence})
		}
	}
	i.mu.Unlock()
	if i.onGrants != nil {
		i.onGrants(grants)
	}
}

func (i *instance) SendCancel(e domain.Execution) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.cancels = append(i.cancels, e)
}

// sent takes what was offered since the last call.
func (i *instance) sent() []store.OfferResult {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := i.offers
	i.offers = nil
	return out
}

// told takes the grants since the last call.
func (i *instance) told() []Grant {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := i.grants
	i.grants = nil
	return out
}

// sessions is a Fleet in memory.
type sessions struct {
	mu   sync.Mutex
	here []*instance // guarded by mu
}

func (s *sessions) join(i *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.here = append(s.here, i)
}

func (s *sessions) leave(i *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, other := range s.here {
		if other == i {
			s.here = append(s.here[:at:at], s.here[at+1:]...)
			return
		}
	}
}

func (s *sessions) Targets(_ domain.TenantID, executor domain.ExecutorID, handler string) []Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Target
	for _, i := range s.here {
		if (i.handler == "" || i.handler == handler) && (i.executor == 0 || i.executor == executor) {
			out = append(out, i)
		}
	}
	return out
}

func (s *sessions) Room(domain.TenantID, domain.ExecutorID) (free, slots int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.here {
		free, slots = free+max(0, i.Free()), slots+max(i.slots, 1)
	}
	return free, slots
}

func (s *sessions) TargetOf(id domain.InstanceID) Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.here {
		if i.id == id {
			return i
		}
	}
	return nil
}

// rig is a running Dispatcher on a real database in virtual time. What it
// hands to Later comes back at its NotBefore, as from the timer.
type rig struct {
	*storetest.World
	d     *Dispatcher
	store *faulty
	fleet *sessions

	log lines

	mu    sync.Mutex
	later []domain.Execution // guarded by mu
	ended []domain.Execution // guarded by mu
}

// lines keeps what is logged.
type lines struct {
	mu   sync.Mutex
	text []string // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(p))
	return len(p), nil
}

// read takes what was logged since the last call.
func (l *lines) read() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.text
	l.text = nil
	return out
}

// inBubble runs a test with a rig. The database's clock is the bubble's.
func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.d.Run(ctx); close(done) }()
		defer func() { cancel(); <-done }()
		test(t, r)
	})
}

func newRig(t *testing.T) *rig {
	o := gormstore.Options{
		Driver: "sqlite", DSN: gormtest.SQLite(t),
		NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler),
	}
	s, err := gormstore.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := &rig{World: storetest.NewWorld(t, s), store: &faulty{Store: s}, fleet: &sessions{}}
	r.d = New(Options{
		Node: 7, Store: r.store, Fleet: r.fleet, Later: r.takeLater, OnTime: r.takeLater, Now: time.Now, NewID: storetest.NewID,
		Logger: slog.New(slog.NewTextHandler(&r.log, nil)), Ended: func(e []domain.Execution) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.ended = append(r.ended, e...)
		},
	})
	return r
}

func (r *rig) takeLater(executions ...domain.Execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range executions {
		r.later = append(r.later, e)
		time.AfterFunc(time.Until(e.NotBefore), func() { r.d.fire([]domain.Execution{e}) })
	}
}

// postponed takes what was handed to Later since the last call.
func (r *rig) postponed() []domain.Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.later
	r.later = nil
	return out
}

// join adds an instance with room for slots attempts.
func (r *rig) join(slots int, change func(*instance)) *instance {
	i := &instance{id: r.Instance("boot-"+domain.InstanceID(storetest.NewID()).String(), time.Hour), slots: slots}
	if change != nil {
		change(i)
	}
	r.fleet.join(i)
	return i
}

// fire hands runs to the dispatcher and waits until it has nothing to do.
func (r *rig) fire(runs ...domain.Execution) {
	r.d.fire(runs)
	synctest.Wait()
}

// settle lets the rows of what waits say so.
func (r *rig) settle() {
	time.Sleep(recordAfter + 10*time.Millisecond)
	r.look()
}

// look is one look after what waits.
func (r *rig) look() {
	require.NoError(r.T, r.d.LookAfterWaiting(context.Background()))
	synctest.Wait()
}

// accept answers an offer.
func (r *rig) accept(from *instance, o store.OfferResult) {
	r.d.Answered(Answer{Tenant: r.Tenant, From: from, ID: o.Execution.ID, Fence: o.Execution.Fence, Accepted: true})
	synctest.Wait()
}

// finish stores a success, and passes on what it woke.
func (r *rig) finish(from *instance, e domain.Execution) { r.finishFor(r.World, from, e) }

func (r *rig) finishFor(w *storetest.World, from *instance, e domain.Execution) {
	results, err := r.S.FinishAttempts(context.Background(), []store.AttemptReport{w.Report(e, domain.OutcomeSucceeded)})
	require.NoError(r.T, err)
	require.Equal(r.T, store.FinishStored, results[0].Code)
	from.Release(e.ID, e.Fence)
	r.takeLater(results[0].Woken...)
	r.d.Freed([]domain.Execution{results[0].Execution})
	r.d.SlotsFreed(w.Executor, 0, from.Free())
}

func one[E any](t *testing.T, list []E) E {
	t.Helper()
	require.Len(t, list, 1)
	return list[0]
}
