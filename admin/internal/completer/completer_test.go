package completer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
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

// watched is a store whose calls can be counted and broken: a nil function
// passes the call on.
type watched struct {
	store.Executions
	finish func(context.Context, []store.AttemptReport) error
	starts func([]store.Start) error
}

func (w *watched) FinishAttempts(ctx context.Context, reports []store.AttemptReport) ([]store.FinishResult, error) {
	if w.finish != nil {
		if err := w.finish(ctx, reports); err != nil {
			return nil, err
		}
	}
	return w.Executions.FinishAttempts(ctx, reports)
}

func (w *watched) RecordStarts(ctx context.Context, starts []store.Start) error {
	if w.starts != nil {
		if err := w.starts(starts); err != nil {
			return err
		}
	}
	return w.Executions.RecordStarts(ctx, starts)
}

// session is an Acker in memory.
type session struct {
	mu     sync.Mutex
	acks   []Ack // guarded by mu
	closed bool  // guarded by mu
	onAcks func([]Ack)
}

func (s *session) SendAcks(acks []Ack) {
	if s.onAcks != nil {
		s.onAcks(acks)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acks = append(s.acks, acks...)
}

func (s *session) Unacked(int) {}

func (s *session) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// got takes the acknowledgements since the last call.
func (s *session) got() []Ack {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.acks
	s.acks = nil
	return out
}

// rig is a running Completer on a real database in virtual time.
type rig struct {
	*storetest.World
	c             *Completer
	store         *watched
	progressStore *progressStore
	instance      domain.InstanceID
	stop          func() // ends Run and waits for it

	mu           sync.Mutex
	later, ended []domain.Execution // guarded by mu
	returned     []domain.Execution // guarded by mu
}

func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		o := gormstore.Options{
			Driver: "sqlite", DSN: gormtest.SQLite(t),
			NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler),
		}
		s, err := gormstore.Open(t.Context(), o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		r := &rig{World: storetest.NewWorld(t, s), store: &watched{Executions: s}, progressStore: &progressStore{Progress: s}}
		r.instance = r.Instance("boot", time.Hour)
		r.c = New(Options{
			Store: r.store, Runs: s, Progress: r.progressStore, Logger: slog.New(slog.DiscardHandler),
			Later: func(e ...domain.Execution) { r.mu.Lock(); defer r.mu.Unlock(); r.later = append(r.later, e...) },
			Ended: func(e []domain.Execution) { r.mu.Lock(); defer r.mu.Unlock(); r.ended = append(r.ended, e...) },
			Returned: func(e []domain.Execution) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.returned = append(r.returned, e...)
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.c.Run(ctx); close(done) }()
		r.stop = func() { cancel(); <-done }
		defer r.stop()
		test(t, r)
	})
}

// running makes a run of the job that is running.
func (r *rig) running(j domain.Job) domain.Execution {
	return r.Start(r.instance, r.Run(j, time.Now()))[0]
}

func (r *rig) report(from *session, e domain.Execution, outcome domain.Outcome) {
	r.c.Finished(Result{r.Report(e, outcome), from})
}

// settle waits until what was reported is stored: results do not follow each
// other faster than their pace.
func settle() {
	time.Sleep(resultPace)
	synctest.Wait()
}

func (r *rig) laters() []domain.Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.later
	r.later = nil
	return out
}

func TestResultsAreAcknowledgedAfterTheirCommit(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		e := r.running(r.Job(nil))
		var seen domain.Execution
		from := &session{onAcks: func([]Ack) { seen = r.Find(e.ID) }}
		r.report(from, e, domain.OutcomeSucceeded)
		settle()
		require.Equal(t, []Ack{{e.ID, e.Fence, store.FinishStored, false}}, from.got())
		require.Equal(t, domain.Succeeded, seen.State, "as another connection saw it while the acknowledgement went out")
		require.Equal(t, []domain.Execution{seen}, r.ended)
	})
}

func TestEveryResultIsAcknowledged(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		from := &session{}
		done := r.running(r.Job(nil))
		r.report(from, done, domain.OutcomeSucceeded)
		settle()
		from.got()
		r.ended = nil

		stale := r.running(r.Job(nil))
		stale.Fence--
		unknown := stale
		unknown.ID = 1
		foreign := r.running(r.Job(nil))
		report := r.Report(foreign, domain.OutcomeSucceeded)
		report.Executor++
		r.report(from, done, domain.OutcomeFailed)
		r.report(from, stale, domain.OutcomeSucceeded)
		r.report(from, unknown, domain.OutcomeSucceeded)
		r.c.Finished(Result{report, from})
		settle()
		require.ElementsMatch(t, []Ack{
			{done.ID, done.Fence, store.FinishDuplicate, false}, {stale.ID, stale.Fence, store.FinishStale, false},
			{unknown.ID, unknown.Fence, store.FinishNotFound, false}, {foreign.ID, foreign.Fence, store.FinishNotFound, false},
		}, from.got())
		require.Empty(t, r.ended)
		require.Equal(t, domain.Succeeded, r.Find(done.ID).State)
		require.Equal(t, domain.Running, r.Find(foreign.ID).State, "another executor has no say")
	})
}

// TestAHandlerThatReturnsLater: the run ends once, and the next one goes when
// the handler has returned.
func TestAHandlerThatReturnsLater(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		from := &session{}
		job := r.Job(func(s *domain.JobSpec) { s.Blocking = domain.BlockSerial })
		e := r.running(job)
		next := r.Run(job, time.Now())
		blocked, err := r.S.OfferExecutions(t.Context(), []store.Offer{{Tenant: r.Tenant, ID: next.ID, Node: 1, Instance: r.instance}})
		require.NoError(t, err)
		require.Equal(t, store.OfferBlocked, blocked[0].Status)
		still := r.Report(e, domain.OutcomeTimedOut)
		still.Report.StillRunning = true
		r.c.Finished(Result{still, from})
		settle()
		require.Equal(t, []Ack{{e.ID, e.Fence, store.FinishStored, true}}, from.got())
		require.Equal(t, []domain.Execution{r.Find(e.ID)}, r.ended)
		require.Empty(t, r.laters())
		require.Empty(t, r.returned)

		r.report(from, e, domain.OutcomeTimedOut)
		settle()
		require.Equal(t, []Ack{{e.ID, e.Fence, store.FinishReturned, false}}, from.got())
		require.Equal(t, []domain.Execution{r.Find(next.ID)}, r.laters())
		require.Equal(t, []domain.Execution{r.Find(e.ID)}, r.returned, "there may be room under limits")
		require.Len(t, r.ended, 1, "not once more")
	})
}

func TestAcknowledgementsGoWhereTheResultCameFrom(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a, b := &session{}, &session{}
		job := r.Job(nil)
		first, second := r.running(job), r.running(job)
		r.c.Finished(Result{r.Report(first, domain.OutcomeSucceeded), a}, Result{r.Report(second, domain.OutcomeFailed), b})
		settle()
		require.Equal(t, []Ack{{first.ID, first.Fence, store.FinishStored, false}}, a.got())
		require.Equal(t, []Ack{{second.ID, second.Fence, store.FinishStored, false}}, b.got())
	})
}

func TestResultsAreTriedAgainWhileTheirSessionLives(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var calls atomic.Int32
		var down atomic.Bool
		down.Store(true)
		r.store.finish = func(context.Context, []store.AttemptReport) error {
			calls.Add(1)
			if down.Load() {
				return errDatabase
			}
			return nil
		}
		alive, dead := &session{}, &session{}
		job := r.Job(nil)
		first, second := r.running(job), r.running(job)
		r.c.Finished(Result{r.Report(first, domain.OutcomeSucceeded), alive}, Result{r.Report(second, domain.OutcomeSucceeded), dead})
		settle()
		require.EqualValues(t, 1, calls.Load())
		dead.close()
		time.Sleep(10*retryAfter + time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 11, calls.Load())
		require.Empty(t, alive.got())
		down.Store(false)
		time.Sleep(retryAfter)
		synctest.Wait()
		require.Equal(t, []Ack{{first.ID, first.Fence, store.FinishStored, false}}, alive.got())
		require.Equal(t, domain.Running, r.Find(second.ID).State, "its executor sends it again, to any node")
		require.Empty(t, dead.got())

		// That of the dead session is not tried any more.
		down.Store(true)
		r.report(alive, second, domain.OutcomeSucceeded)
		settle()
		alive.close()
		calls.Store(0)
		time.Sleep(time.Minute)
		require.LessOrEqual(t, calls.Load(), int32(1), "dropped with its session")
	})
}

func TestRetriesAndWokenWaitersGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		from := &session{}
		retried := r.running(r.Job(func(s *domain.JobSpec) { s.Retry = domain.Retry{MaxAttempts: 2, Delay: 3 * time.Second} }))
		r.report(from, retried, domain.OutcomeFailed)
		settle()
		require.Equal(t, []domain.Execution{r.Find(retried.ID)}, r.laters())
		require.Equal(t, domain.RetryWait, r.Find(retried.ID).State)

		job := r.Job(func(s *domain.JobSpec) { s.Blocking = domain.BlockSerial })
		first := r.running(job)
		second := r.Run(job, time.Now())
		blocked, err := r.S.OfferExecutions(t.Context(), []store.Offer{{Tenant: r.Tenant, ID: second.ID, Node: 1, Instance: r.instance}})
		require.NoError(t, err)
		require.Equal(t, store.OfferBlocked, blocked[0].Status)
		r.report(from, first, domain.OutcomeSucceeded)
		settle()
		require.Equal(t, []domain.Execution{r.Find(second.ID)}, r.laters())

		back := r.running(r.Job(nil))
		r.report(from, back, domain.OutcomeNeverStarted)
		settle()
		require.Equal(t, []domain.Execution{r.Find(back.ID)}, r.laters(), "offered again at once")
		require.Equal(t, domain.Due, r.Find(back.ID).State)
	})
}

// TestStoppingStoresWhatIsQueued, also the batch that is under way.
func TestStoppingStoresWhatIsQueued(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		from := &session{}
		job := r.Job(nil)
		first, second := r.running(job), r.running(job)
		entered, gate := make(chan struct{}), make(chan struct{})
		var once sync.Once
		r.store.finish = func(context.Context, []store.AttemptReport) error {
			once.Do(func() { close(entered); <-gate })
			return nil
		}
		r.report(from, first, domain.OutcomeSucceeded)
		<-entered
		stopped := make(chan struct{})
		go func() { r.stop(); close(stopped) }()
		synctest.Wait()
		r.report(from, second, domain.OutcomeSucceeded)
		close(gate)
		<-stopped
		require.Len(t, from.got(), 2)
		require.Equal(t, domain.Succeeded, r.Find(first.ID).State)
		require.Equal(t, domain.Succeeded, r.Find(second.ID).State)
		r.report(from, second, domain.OutcomeSucceeded)
		settle()
		require.Empty(t, from.got(), "the executor sends it to another node")
	})
}
