package run_test

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// world is a few jobs and runs, moved by random transactions. Whatever is asked,
// and in whatever order: slots and limits count right, and nobody overtakes.
type world struct {
	t     *testing.T
	now   time.Time
	jobs  map[domain.JobID]*domain.JobSpec
	state run.JobStates
	rows  map[domain.ExecutionID]domain.Execution
	next  domain.ExecutionID

	holders map[domain.JobID]int64
	queues  map[domain.JobID][]run.Waiter
	under   map[domain.LimitKey]*run.Limit

	alerts   map[string]bool
	archived map[run.AttemptKey]domain.Attempt
	// maintenance changes now and then.
	maintenance domain.Maintenances
}

const (
	tenant   domain.TenantID   = 7
	executor domain.ExecutorID = 3
)

func newWorld(t *testing.T, pick func(int) int) *world {
	w := &world{
		t: t, now: time.UnixMilli(1_800_000_000_000).UTC(), jobs: map[domain.JobID]*domain.JobSpec{}, state: run.JobStates{}, rows: map[domain.ExecutionID]domain.Execution{},
		holders: map[domain.JobID]int64{}, queues: map[domain.JobID][]run.Waiter{}, under: map[domain.LimitKey]*run.Limit{}, alerts: map[string]bool{},
		archived: map[run.AttemptKey]domain.Attempt{},
	}
	for i, blocking := range []domain.Blocking{domain.BlockSerial, domain.BlockDiscard, domain.BlockCover, domain.BlockParallel} {
		w.jobs[domain.JobID(i+1)] = &domain.JobSpec{
			Handler: "h", Blocking: blocking, Parallelism: pick(4), OnLost: []domain.OnLost{domain.OnLostAuto, domain.OnLostFail, domain.OnLostRetry}[pick(3)],
			Retry:           domain.Retry{MaxAttempts: 1 + pick(3), Delay: time.Duration(pick(3)) * time.Second},
			DispatchTimeout: []time.Duration{0, 10 * time.Second}[pick(2)], MaxWaiting: pick(4),
		}
	}
	for _, key := range []domain.LimitKey{{Tenant: tenant}, {Tenant: tenant, Executor: executor}} {
		if n := pick(6); n > 0 {
			l := run.NewLimit(key)
			l.Capacity = int64(n)
			w.under[key] = l
		}
	}
	return w
}

// batch loads everything, as it stands.
func (w *world) batch() *run.Batch {
	b := &run.Batch{
		Kind: run.Ends, Now: w.now, Moves: map[domain.ExecutionID]*run.Move{}, Slots: map[domain.JobID]*run.Slot{}, Limits: map[domain.LimitKey]*run.Limit{},
		Parents: map[domain.ExecutionID]bool{}, Source: w,
	}
	for id, e := range w.rows {
		m := run.NewMove(e, w.jobs[e.JobID])
		b.Moves[id] = &m
	}
	for id, spec := range w.jobs {
		if spec.SlotLimit() == 0 {
			continue
		}
		b.Slots[id] = run.LoadedSlot(id, tenant, w.holders[id], int64(len(w.queues[id])))
		for _, waiter := range w.queues[id] {
			b.Slots[id].InQueue(waiter, true)
		}
	}
	for key, row := range w.under {
		l := run.NewLimit(key)
		l.Capacity, l.Queue = row.Capacity, slices.Clone(row.Queue)
		for _, p := range l.Queue {
			l.Waiting[p.ID] = p
		}
		for id := range row.Holders {
			e := w.rows[id]
			l.Count(id, e.OccupiesInstance())
		}
		b.Limits[key] = l
	}
	return b
}

// save keeps what a batch has made, and checks what must hold after each.
func (w *world) save(b *run.Batch) {
	for id, m := range b.Moves {
		w.rows[id] = m.E
	}
	for id, s := range b.Slots {
		w.holders[id], w.queues[id] = s.Holders, s.Queue
		require.EqualValues(w.t, len(s.Queue), s.Waiters, "the count of those who wait for job %d", id)
		require.Len(w.t, s.Waiting, len(s.Queue))
	}
	for key, l := range b.Limits {
		for _, id := range l.Gone {
			delete(l.Holders, id)
		}
		w.under[key] = l
	}
	for _, a := range b.Alerts {
		require.False(w.t, w.alerts[a.DedupeKey] && a.Kind != domain.AlertRunsPileUp, "told twice: %s", a.DedupeKey)
		w.alerts[a.DedupeKey] = true
	}
	for _, key := range b.Unarchive {
		delete(w.archived, key)
	}
	for _, a := range b.Archived {
		w.archived[run.AttemptKey{Tenant: a.TenantID, ID: a.ExecutionID, Fence: a.Fence}] = *a
	}
	for id := range b.Moves {
		w.checkAttempts(id)
	}
	w.check()
}

// checkAttempts: no two attempts of a run have one number.
func (w *world) checkAttempts(id domain.ExecutionID) {
	e := w.rows[id]
	var archived []domain.Attempt
	for fence := range e.Fence + 1 {
		if a, ok := w.archived[run.AttemptKey{Tenant: tenant, ID: id, Fence: fence}]; ok {
			archived = append(archived, a)
		}
	}
	list := domain.Attempts(&e, archived)
	for n := 1; n < len(list); n++ {
		require.Less(w.t, list[n-1].Number, list[n].Number, "attempts with the fences %d and %d of run %s", list[n-1].Fence, list[n].Fence, id)
	}
	if e.State == domain.Running && !e.OnlyPartsMove() {
		require.Equal(w.t, e.Fence, list[len(list)-1].Fence, "the attempt that runs is listed")
	}
}

func (w *world) check() {
	for id, spec := range w.jobs {
		holders := int64(0)
		for _, e := range w.rows {
			if e.JobID == id && e.HoldsSlot {
				holders++
			}
		}
		limit := int64(spec.SlotLimit())
		require.Equal(w.t, w.holders[id], holders, "holders of job %d", id)
		require.LessOrEqual(w.t, holders, max(limit, 0), "job %d", id)
		require.True(w.t, slices.IsSortedFunc(w.queues[id], run.CompareWaiters))
		for _, waiter := range w.queues[id] {
			e := w.rows[waiter.ID]
			require.False(w.t, e.State.Terminal(), "%s waits and has ended", e.ID)
			require.False(w.t, e.HoldsSlot, "%s waits for what it has", e.ID)
		}
	}
	for key, l := range w.under {
		on := int64(0)
		for _, e := range w.rows {
			if e.OccupiesInstance() && (key.Executor == 0 || key.Executor == e.Executor) {
				if e.State.OnInstance() { // a handler that lingers may have come back beside others
					on++
				}
				require.True(w.t, l.Holders[e.ID], "%s is on an instance and not among the holders", e.ID)
			}
		}
		require.LessOrEqual(w.t, on, l.Capacity)
		for _, p := range l.Queue {
			e := w.rows[p.ID]
			require.Contains(w.t, []domain.State{domain.Due, domain.RetryWait}, e.State, "%s waits for room", p.ID)
		}
	}
	for _, e := range w.rows {
		if e.State.OnInstance() && w.jobs[e.JobID].SlotLimit() > 0 { // a handler that lingers may have lost it
			require.True(w.t, e.HoldsSlot, "%s is on an instance without its slot", e.ID)
		}
		if e.State.Terminal() && !e.Lingers {
			require.False(w.t, e.HoldsSlot, "%s has ended with its slot", e.ID)
		}
	}
}

func (w *world) Maintenances() (domain.Maintenances, error) { return w.maintenance, nil }

func (w *world) SuccessWish(m *run.Move) domain.SuccessWish {
	return []domain.SuccessWish{domain.SuccessUnwanted, domain.SuccessCounted, domain.SuccessEach}[m.E.JobID%3]
}

// checkSuccesses: who wants to hear of successes hears of each once, by one event or by
// as many.
func (w *world) checkSuccesses(b *run.Batch) {
	want, told := map[domain.JobID]int{}, map[domain.JobID]int{}
	events := map[domain.JobID]int{}
	for _, m := range b.Moves {
		if m.E.State == domain.Succeeded && m.Was() != domain.Succeeded && w.SuccessWish(m) != domain.SuccessUnwanted {
			want[m.E.JobID]++
		}
	}
	for _, a := range b.Alerts {
		if a.Kind == domain.AlertRunSucceeded {
			told[a.JobID] += max(1, a.Missed)
			events[a.JobID]++
		}
	}
	require.Equal(w.t, want, told)
	for job, n := range events {
		if job%3 == 1 {
			require.Equal(w.t, 1, n, "those of job %d are counted together", job)
		} else {
			require.Equal(w.t, want[job], n)
		}
	}
}

func (w *world) Stopped([]domain.JobID) (run.JobStates, error) { return w.state, nil }

func (w *world) TriggerRevision(domain.JobID) (int64, error) { return 1, nil }

func (w *world) Leases([]domain.InstanceID) (map[domain.InstanceID]time.Time, error) {
	return map[domain.InstanceID]time.Time{1: w.now.Add(time.Minute), 2: w.now.Add(-time.Minute)}, nil
}

func (w *world) Serving(*run.Move) ([]domain.InstanceID, error) { return nil, nil }

func (w *world) Family(*run.Move) (domain.Family, error) {
	return domain.Family{}, errors.New("there are no parents")
}

func (w *world) Results(*run.Move, domain.Family) ([]byte, error) { return nil, nil }

func (w *world) HeldSince(job domain.JobID, before time.Time) (since time.Time, err error) {
	for _, e := range w.rows {
		if e.JobID == job && e.HoldsSlot && e.FireAt.Before(before) && e.GrantedAt.After(since) {
			since = e.GrantedAt
		}
	}
	return since, nil
}

func (w *world) Known(domain.ExecutionID) bool { return false }

func (w *world) NewID() (domain.ExecutionID, error) { w.next++; return w.next, nil }

// some picks runs, of those that live as a rule.
func (w *world) some(pick func(int) int) (ids []domain.ExecutionID) {
	var alive []domain.ExecutionID
	for id, e := range w.rows {
		if !e.State.Terminal() || e.Lingers || id%7 == 0 {
			alive = append(alive, id)
		}
	}
	slices.Sort(alive)
	for range 1 + pick(4) {
		if len(alive) > 0 {
			at := pick(len(alive))
			ids = append(ids, alive[at])
			alive = slices.Delete(alive, at, at+1)
		}
	}
	return ids
}

// step is one transaction.
func (w *world) step(pick func(int) int) {
	w.now = w.now.Add([]time.Duration{0, time.Millisecond, 400 * time.Millisecond, 3 * time.Second, 20 * time.Second}[pick(5)])
	ids := w.some(pick)
	w.maintain(pick)
	b := w.batch()
	var err error
	switch pick(10) {
	case 0, 1:
		w.plan(pick)
		return
	case 2, 3:
		var offers []store.Offer
		for _, id := range ids {
			offers = append(offers, store.Offer{Tenant: tenant, ID: id, Node: 1, Instance: domain.InstanceID(1 + pick(2)), Idempotent: pick(2) == 0, Granted: pick(2) == 0})
		}
		var results []store.OfferResult
		results, err = b.Offer(offers)
		w.overtaken(b, results)
		w.keptFromStarting(b, ids)
	case 4:
		var waits []store.Wait
		for _, id := range ids {
			waits = append(waits, store.Wait{Tenant: tenant, ID: id, Reason: domain.ReasonWaitInstance, Full: pick(2) == 0})
		}
		_, err = b.Wait(waits)
	case 5:
		var grants []store.GrantRequest
		for _, id := range ids {
			grants = append(grants, store.GrantRequest{Tenant: tenant, ID: id, Fence: w.rows[id].Fence, Instance: w.rows[id].Instance})
		}
		_, err = b.Grant(grants)
		w.keptFromStarting(b, ids)
	case 6:
		var reports []store.AttemptReport
		for _, id := range ids {
			e := w.rows[id]
			reports = append(reports, store.AttemptReport{Tenant: tenant, Executor: executor, Report: domain.Report{
				ExecutionID: id, Fence: e.Fence - int64(pick(8)/7), StillRunning: pick(6) == 0,
				Outcome: []domain.Outcome{domain.OutcomeSucceeded, domain.OutcomeFailed, domain.OutcomeTimedOut, domain.OutcomeCancelled, domain.OutcomeNeverStarted, domain.OutcomeUnknown}[pick(6)],
			}})
		}
		_, err = b.Finish(reports)
	case 7:
		for _, id := range ids[:min(1, len(ids))] {
			_, _ = b.RequestCancel(tenant, id, domain.ReasonKilled, "") // one that has ended is refused
		}
	case 8:
		var items []store.GiveBack
		for _, id := range ids {
			e := w.rows[id]
			items = append(items, store.GiveBack{Tenant: tenant, ID: id, Fence: e.Fence, Instance: e.Instance, Reason: domain.ReasonOfferRefused, Refused: pick(2) == 0, Busy: pick(2) == 0})
		}
		_, err = b.GiveBack(items)
	default:
		_, err = b.Sweep(ids, 5*time.Second)
	}
	require.NoError(w.t, err)
	require.NoError(w.t, b.Conclude())
	for job, list := range b.Woken {
		require.LessOrEqual(w.t, len(list), w.jobs[job].SlotLimit()-int(b.Slots[job].Holders), "more of job %d are woken than there are places", job)
	}
	for _, l := range b.Limits {
		l.Queue = l.Queue[:min(int64(len(l.Queue)), l.Free())] // as AdmitWaiting loads it
		rest := slices.Clone(w.under[l.Key].Queue)
		_, _, err = b.Admit(l)
		require.NoError(w.t, err)
		l.Queue = l.Queue[:0]
		for _, p := range append(rest, l.Enter...) {
			if _, waits := l.Waiting[p.ID]; waits && !slices.Contains(l.Queue, p) {
				l.Queue = append(l.Queue, p)
			}
		}
		slices.SortFunc(l.Queue, run.ComparePlaces)
	}
	w.checkSuccesses(b)
	w.save(b)
	b.Stored()
}

// maintain switches maintenance on or off at times.
func (w *world) maintain(pick func(int) int) {
	switch pick(12) {
	case 0:
		scope := []domain.MaintenanceScope{{}, {Tenant: tenant}, {Tenant: tenant, Executor: executor}, {Tenant: tenant + 1}}[pick(4)]
		mode := []domain.MaintenanceMode{domain.MaintenanceWait, domain.MaintenanceSkip, domain.MaintenanceContinue}[pick(3)]
		w.maintenance = domain.Maintenances{scope: {{MaintenanceScope: scope, Mode: mode, Since: w.now, EndsAt: w.now.Add(time.Duration(pick(60)) * time.Second)}}}
	case 1:
		w.maintenance = nil
	}
}

// keptFromStarting: nothing is offered or granted in maintenance, and what a schedule
// fires in one that skips is excluded, and nothing else is.
func (w *world) keptFromStarting(b *run.Batch, ids []domain.ExecutionID) {
	for _, id := range ids {
		was, is := w.rows[id], b.Moves[id].E
		stopped := w.maintenance.Holds(w.now, &was)
		if moved := was.State != is.State && (is.State == domain.Offered || is.State == domain.Running); moved {
			require.Nil(w.t, stopped, "%s went from %s to %s", id, was.State, is.State)
		}
		if was.State != domain.Excluded && is.State == domain.Excluded {
			require.NotNil(w.t, w.maintenance.Skips(&was), "%s is excluded", id)
		}
	}
}

// plan adds a run.
func (w *world) plan(pick func(int) int) {
	id, _ := w.NewID()
	job := domain.JobID(1 + pick(4))
	spec := w.jobs[job]
	at := w.now.Add(-time.Duration(pick(5)) * time.Second)
	w.rows[id] = domain.Execution{
		ID: id, TenantID: tenant, JobID: job, Executor: executor, Revision: 1, State: domain.Due, FireAt: at, NotBefore: at, PlannedAt: w.now,
		WakeAt: at, ExpireAt: at.Add(run.Patience(spec)), Cause: domain.CauseSchedule, MaxAttempts: max(1, spec.Retry.MaxAttempts), Priority: pick(3),
	}
}

// overtaken: no run has started that is later than one of its job that waits for
// the slot, unless its job covers.
func (w *world) overtaken(b *run.Batch, results []store.OfferResult) {
	for _, r := range results {
		if r.Status != store.OfferMade || w.rows[r.Execution.ID].HoldsSlot {
			continue
		}
		m := b.Moves[r.Execution.ID]
		s := b.Slots[m.E.JobID]
		if s == nil || m.Spec.Blocking == domain.BlockCover {
			continue
		}
		earlier := 0
		for _, waiter := range s.Queue {
			if run.CompareWaiters(waiter, run.WaiterOf(&m.E)) < 0 {
				earlier++
			}
		}
		free := m.Spec.SlotLimit() - int(s.Holders)
		require.LessOrEqual(w.t, earlier, max(free, 0), "%s was given the place of one that waits for it", m.E.ID)
	}
}

func TestRandomTransactions(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, r.IntN)
		for range 300 {
			w.step(r.IntN)
		}
	}
}

func FuzzTransactions(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 200, 100, 50})
	f.Fuzz(func(t *testing.T, program []byte) {
		pick := func(n int) int {
			if len(program) == 0 {
				return 0
			}
			v := int(program[0]) % n
			program = program[1:]
			return v
		}
		w := newWorld(t, pick)
		for len(program) > 0 {
			w.step(pick)
		}
	})
}

// Offers of one job are decided by fire time, of several by precedence.
func TestOrderOfOffers(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	w := newWorld(t, r.IntN)
	clear(w.under)
	for i, job := range []domain.JobID{1, 1, 1} {
		id, _ := w.NewID()
		at := w.now.Add(-time.Duration(i) * time.Second)
		w.rows[id] = domain.Execution{ID: id, TenantID: tenant, JobID: job, Executor: executor, State: domain.Due, FireAt: at, NotBefore: at, MaxAttempts: 1, Priority: 100 * (2 - i)}
	}
	b := w.batch()
	results, err := b.Offer([]store.Offer{{Tenant: tenant, ID: 1, Instance: 1}, {Tenant: tenant, ID: 2, Instance: 1}, {Tenant: tenant, ID: 3, Instance: 1}})
	require.NoError(t, err)
	require.Equal(t, []store.OfferStatus{store.OfferBlocked, store.OfferBlocked, store.OfferMade}, []store.OfferStatus{results[0].Status, results[1].Status, results[2].Status},
		"the earliest has the slot, whatever the others' priority")
	require.Equal(t, 2, len(b.Slots[1].Queue))
	require.Negative(t, cmp.Compare(b.Slots[1].Queue[0].FireAt, b.Slots[1].Queue[1].FireAt))
}

// An attempt is given up and turns out not to have begun, by two reports that come
// together: the next attempt has its number.
func TestTwoReportsOfOneAttempt(t *testing.T) {
	w := newWorld(t, func(int) int { return 0 })
	*w.jobs[4] = domain.JobSpec{Handler: "h", Blocking: domain.BlockParallel, OnLost: domain.OnLostRetry, Retry: domain.Retry{MaxAttempts: 3}}
	w.rows[1] = domain.Execution{ID: 1, TenantID: tenant, JobID: 4, Executor: executor, State: domain.Running, Attempt: 1, MaxAttempts: 3, Fence: 1, Instance: 5, GrantedAt: w.now, LogLines: -1}
	b := w.batch()
	var reports []store.AttemptReport
	for _, outcome := range []domain.Outcome{domain.OutcomeUnknown, domain.OutcomeNeverStarted} {
		reports = append(reports, store.AttemptReport{Tenant: tenant, Executor: executor, Report: domain.Report{ExecutionID: 1, Fence: 1, Outcome: outcome}})
	}
	_, err := b.Finish(reports)
	require.NoError(t, err)
	w.save(b)
	require.Equal(t, domain.Due, w.rows[1].State)
	require.Zero(t, w.rows[1].Attempt)
	require.Empty(t, w.archived)
}
