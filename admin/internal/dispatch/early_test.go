package dispatch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// soon is when the runs of these tests are due: they are handed over at once, as
// the timer does ahead of their time.
const soon = 50 * time.Millisecond

// TestARunThatWasAcceptedStartsWithItsTime: the offer goes out ahead, the grant
// when the time has come.
func TestARunThatWasAcceptedStartsWithItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		i := r.join(4, nil)
		e := r.Run(r.Job(nil), time.Now().Add(soon))
		r.fire(e)
		o := one(t, i.sent())
		require.True(t, o.Execution.OfferedAt.Before(e.NotBefore))
		r.accept(i, o)
		time.Sleep(time.Until(e.NotBefore) - time.Millisecond)
		synctest.Wait()
		require.Empty(t, i.told())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, Grant{ID: e.ID, Fence: 1, Granted: true}, one(t, i.told()))
		require.Equal(t, e.NotBefore, r.Find(e.ID).GrantedAt)
	})
}

// TestADrainedInstanceStartsNothingThatItHadAccepted: its acceptance is void, and
// another instance gets the run without a failed send.
func TestADrainedInstanceStartsNothingThatItHadAccepted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		i := r.join(4, nil)
		e := r.Run(r.Job(nil), time.Now().Add(soon))
		r.fire(e)
		o := one(t, i.sent())
		r.accept(i, o)
		i.mu.Lock()
		i.drained = true
		i.mu.Unlock()
		time.Sleep(time.Until(e.NotBefore) + time.Millisecond)
		synctest.Wait()
		require.Equal(t, Grant{ID: e.ID, Fence: 1}, one(t, i.told()))
		synctest.Wait()
		back := r.Find(e.ID)
		require.Equal(t, []any{domain.Offered, int64(2), 0}, []any{back.State, back.Fence, back.Attempt}, "offered anew: no attempt, no failed send")
	})
}

// TestAnAnswerThatComesAfterTheTimeIsGrantedAtOnce, and only accepted offers are
// granted.
func TestAnAnswerThatComesAfterTheTimeIsGrantedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		i := r.join(4, nil)
		e := r.Run(r.Job(nil), time.Now().Add(soon))
		r.fire(e)
		o := one(t, i.sent())
		time.Sleep(soon + 10*time.Millisecond)
		synctest.Wait()
		require.Empty(t, i.told())
		r.accept(i, o)
		require.True(t, one(t, i.told()).Granted)
		require.Zero(t, r.d.opt.Table.Len())
	})
}

// TestOnlyItsOwnAnswerIsKeptForItsTime: that to an older offer does not take its
// place, nor what another instance or another tenant says of the same id.
func TestOnlyItsOwnAnswerIsKeptForItsTime(t *testing.T) {
	now := time.Now()
	a := newEarlyOffers(new(runtable.Table))
	a.offered(&domain.Execution{ID: 1, TenantID: 7, Instance: 8, Fence: 2, NotBefore: now.Add(30 * time.Millisecond)})
	own := Answer{ID: 1, Tenant: 7, From: &instance{id: 8}, Fence: 2, Accepted: true}
	older, stranger, foreign := own, own, own
	older.Fence, stranger.From, foreign.Tenant = 1, &instance{id: 9}, 6
	others, inTime := a.hold([]Answer{own, older, stranger, foreign})
	require.Equal(t, []Answer{older, stranger, foreign}, others)
	require.Equal(t, 3, inTime)
	answers, _ := a.due(now.Add(time.Second).UnixNano())
	require.Equal(t, []Answer{own}, answers)
}

// TestAnOlderCopyOfARunLeavesItsEarlyOffer: it was read before the offer, and comes
// to this node late. What was given back since is newer.
func TestAnOlderCopyOfARunLeavesItsEarlyOffer(t *testing.T) {
	now := time.Now()
	a := newEarlyOffers(new(runtable.Table))
	q := newDueRuns(a.table)
	e := domain.Execution{ID: 1, TenantID: 7, Instance: 8, Fence: 2, NotBefore: now.Add(30 * time.Millisecond)}
	a.offered(&e)
	older, newer := e, e
	older.Fence--
	count := func(parts [offerWorkers][]*domain.Execution) int { return len(parts[0]) + len(parts[1]) }
	require.Zero(t, count(q.enter([]*domain.Execution{&older}, nil)))
	own := Answer{ID: 1, Tenant: 7, From: &instance{id: 8}, Fence: 2, Accepted: true}
	a.hold([]Answer{own})
	answers, _ := a.due(e.NotBefore.UnixNano())
	require.Equal(t, []Answer{own}, answers)

	a.offered(&e)
	require.Equal(t, 1, count(q.enter([]*domain.Execution{&newer}, nil)))
	_, wait := a.due(e.NotBefore.UnixNano())
	require.Equal(t, longestWait, wait)
	q.begin([]*domain.Execution{&newer}).end()
	require.Zero(t, a.table.Len())
}

// TestWhatIsDecidedAtItsTimeIsNotOfferedAhead: it is offered when it is due.
func TestWhatIsDecidedAtItsTimeIsNotOfferedAhead(t *testing.T) {
	for name, c := range map[string]struct {
		job      func(*domain.JobSpec)
		instance func(*instance)
		before   func(r *rig)
		slots    int
	}{
		"its offer is its grant":        {instance: func(i *instance) { i.idempotent = true }},
		"it would be dropped":           {job: func(s *domain.JobSpec) { s.Blocking = domain.BlockDiscard }},
		"it would end an earlier run":   {job: func(s *domain.JobSpec) { s.Blocking = domain.BlockCover }},
		"half of the instance is taken": {instance: func(i *instance) { i.load.Slots = 501 }},
		"there is a limit": {before: func(r *rig) {
			require.NoError(r.T, r.S.SetLimit(context.Background(), domain.Limit{LimitKey: domain.LimitKey{Tenant: r.Tenant}, Max: 5}))
		}},
		"it is cut into shards":            {job: func(s *domain.JobSpec) { s.Sharding = domain.Sharding{Mode: domain.ShardFixed, Shards: 1} }},
		"no slot is free":                  {slots: -1},
		"the database's clock is far back": {},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				i := r.join(4+5*c.slots, c.instance)
				if c.before != nil {
					c.before(r)
				}
				ahead := soon
				if name == "the database's clock is far back" {
					ahead = time.Hour
				}
				e := r.Run(r.Job(c.job), time.Now().Add(ahead))
				r.fire(e)
				require.Empty(t, i.sent())
				require.Equal(t, domain.Due, r.Find(e.ID).State)
				i.mu.Lock()
				i.slots = 4
				i.mu.Unlock()
				time.Sleep(ahead)
				synctest.Wait()
				require.False(t, one(t, i.sent()).Execution.OfferedAt.Before(e.NotBefore))
				require.Zero(t, r.d.opt.Table.Len())
			})
		})
	}
}

// TestARefusedRunStillWaitsForItsTime: the next instance gets it, and no grant
// comes early.
func TestARefusedRunStillWaitsForItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		i := r.join(4, nil)
		e := r.Run(r.Job(nil), time.Now().Add(soon))
		r.fire(e)
		o := one(t, i.sent())
		r.d.Answered(Answer{Tenant: r.Tenant, From: i, ID: e.ID, Fence: o.Execution.Fence, Code: "leaving"})
		i.Release(e.ID, o.Execution.Fence)
		synctest.Wait()
		require.False(t, r.Find(e.ID).NotBefore.Before(e.NotBefore))
		time.Sleep(time.Second)
		synctest.Wait()
		o = one(t, i.sent())
		require.EqualValues(t, 2, o.Execution.Fence)
		r.accept(i, o)
		require.Equal(t, Grant{ID: e.ID, Fence: 2, Granted: true}, one(t, i.told()))
		require.False(t, r.Find(e.ID).GrantedAt.Before(e.NotBefore))
	})
}

// TestWhatWasOfferedAheadIsTakenBackByAnEdit: its row is gone, its slot is free,
// and its instance is told.
func TestWhatWasOfferedAheadIsTakenBackByAnEdit(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		i := r.join(4, nil)
		at := time.Now().Add(time.Second)
		job := r.JobFiring(at, func(s *domain.JobSpec) { s.Blocking = domain.BlockSerial })
		planned := r.Run(job, at)
		planned.ID, planned.Cause, planned.OccurrenceKey = domain.ExecutionID(storetest.NewID()), domain.CauseSchedule, "planned"
		e, _, err := r.S.CreateExecution(t.Context(), planned)
		require.NoError(t, err)
		time.Sleep(time.Second - soon)
		r.fire(e)
		r.accept(i, one(t, i.sent()))
		_, err = r.S.UpdateJob(t.Context(), store.UpdateJobParams{
			Tenant: r.Tenant, ID: job.ID, Spec: job.Spec, Next: func(time.Time, *domain.JobSpec) time.Time { return domain.Never },
		})
		require.NoError(t, err)
		time.Sleep(soon)
		synctest.Wait()
		require.Equal(t, Grant{ID: e.ID, Fence: 1}, one(t, i.told()))
		_, err = r.S.FindExecution(t.Context(), r.Tenant, e.ID)
		require.Equal(t, domain.CodeNotFound, domain.CodeOf(err))
		next := r.Run(job, time.Now())
		r.fire(next)
		r.accept(i, one(t, i.sent()))
		require.True(t, one(t, i.told()).Granted, "the slot is free")
	})
}
