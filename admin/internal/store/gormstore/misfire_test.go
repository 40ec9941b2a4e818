package gormstore_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// TestMisfireIsAskedAgain: a run that was planned in time, and that nobody could
// start within the misfire threshold, goes by the misfire policy when it is
// offered, found waiting or granted.
func TestMisfireIsAskedAgain(t *testing.T) {
	for name, o := range map[string]gormstore.Options{
		"sqlite": {Driver: "sqlite", DSN: gormtest.SQLite(t)},
		"mysql":  {Driver: "mysql", DSN: testenv.Database(t)},
	} {
		t.Run(name, func(t *testing.T) {
			plans, err := timing.NewCache(8)
			require.NoError(t, err)
			o.NewID, o.Logger, o.Misfire = storetest.NewID, slog.New(slog.DiscardHandler), scheduler.Misfire(plans.Plan)
			require.NoError(t, gormstore.Migrate(t.Context(), o))
			s, err := gormstore.Open(t.Context(), o)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			testMisfire(t, storetest.NewWorld(t, s))
		})
	}
}

func testMisfire(t *testing.T, w *storetest.World) {
	instance := w.Instance("boot", time.Minute)
	run := func(policy domain.MisfirePolicy, late, threshold time.Duration) domain.Execution {
		now, err := w.S.Now(t.Context())
		require.NoError(t, err)
		at := now.Add(-late)
		j := w.Job(func(s *domain.JobSpec) {
			s.Schedule = domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: 20 * time.Second, Anchor: at}
			s.Misfire = domain.Misfire{Policy: policy, Threshold: threshold}
			s.Blocking = domain.BlockSerial
		})
		return w.RunBy(domain.CauseSchedule, j, at)
	}
	offer := func(e domain.Execution, since time.Time) store.OfferResult {
		r, err := w.S.OfferExecutions(t.Context(), []store.Offer{{Tenant: w.Tenant, ID: e.ID, Node: 1, Instance: instance, Since: since}})
		require.NoError(t, err)
		return r[0]
	}
	t.Run("skip", func(t *testing.T) {
		r := offer(run(domain.MisfireSkip, 59*time.Second, 5*time.Second), time.Time{})
		require.Equal(t, store.OfferDiscarded, r.Status)
		require.Equal(t, domain.Missed, r.Execution.State)
		require.Equal(t, domain.ReasonMisfire, r.Execution.Reason)
		require.Contains(t, r.Execution.Message, "passed while nobody could start its run")
	})
	t.Run("within the threshold", func(t *testing.T) {
		require.Equal(t, store.OfferMade, offer(run(domain.MisfireSkip, 4*time.Second, 5*time.Second), time.Time{}).Status)
	})
	t.Run("all makes it up", func(t *testing.T) {
		r := offer(run(domain.MisfireAll, 59*time.Second, 0), time.Time{})
		require.Equal(t, store.OfferMade, r.Status)
		require.Equal(t, domain.CauseMisfire, w.Find(r.Execution.ID).Cause)
	})
	t.Run("once now leaves it to a later fire time", func(t *testing.T) {
		r := offer(run(domain.MisfireOnceNow, 59*time.Second, 0), time.Time{})
		require.Equal(t, domain.ReasonCoalesced, r.Execution.Reason)
	})
	t.Run("once now runs the last one", func(t *testing.T) {
		r := offer(run(domain.MisfireOnceNow, 15*time.Second, 0), time.Time{})
		require.Equal(t, store.OfferMade, r.Status)
		require.Equal(t, domain.CauseMisfire, r.Execution.Cause)
	})
	t.Run("what waited for an instance", func(t *testing.T) {
		e := run(domain.MisfireSkip, 59*time.Second, 0)
		r := offer(e, e.FireAt.Add(time.Second))
		require.Equal(t, store.OfferMade, r.Status)
		require.Equal(t, domain.CauseSchedule, r.Execution.Cause)
		require.Equal(t, domain.ReasonWaitInstance, r.Execution.Delays[0].Reason)
	})
	t.Run("a wait that is noted too late", func(t *testing.T) {
		e := run(domain.MisfireSkip, 59*time.Second, 0)
		wait := store.Wait{Tenant: w.Tenant, ID: e.ID, Reason: domain.ReasonWaitInstance, Message: "full"}
		ended, err := w.S.RecordWaits(t.Context(), []store.Wait{wait})
		require.NoError(t, err)
		require.Len(t, ended, 1)
		require.Equal(t, domain.Missed, w.Find(e.ID).State)
		e = run(domain.MisfireSkip, 59*time.Second, 0)
		wait.ID, wait.Since = e.ID, e.FireAt.Add(time.Second)
		ended, err = w.S.RecordWaits(t.Context(), []store.Wait{wait})
		require.NoError(t, err)
		require.Empty(t, ended)
		require.Equal(t, domain.Due, w.Find(e.ID).State)
	})
	// misfired is a run that was offered within its threshold, which is over now.
	misfired := func(t *testing.T) domain.Execution {
		const threshold = 20 * time.Millisecond
		var e domain.Execution
		for e.State != domain.Offered { // a slow machine takes longer than that to offer one at times
			e = offer(run(domain.MisfireSkip, 0, threshold), time.Time{}).Execution
		}
		for now := e.FireAt; !now.After(e.FireAt.Add(threshold)); {
			var err error
			now, err = w.S.Now(t.Context())
			require.NoError(t, err)
		}
		return e
	}
	t.Run("a grant", func(t *testing.T) {
		e := misfired(t)
		g, err := w.S.GrantOffers(t.Context(), []store.GrantRequest{{Tenant: w.Tenant, ID: e.ID, Fence: e.Fence, Instance: instance}})
		require.NoError(t, err)
		require.False(t, g[0].Granted)
		require.Equal(t, domain.Due, g[0].Execution.State)
		require.Zero(t, g[0].Execution.Sends().Failed())
		require.Equal(t, domain.Missed, offer(e, time.Time{}).Execution.State)
	})
	t.Run("an inventory", func(t *testing.T) {
		e := misfired(t)
		out, err := storetest.SettleInventory(t.Context(), w.S, store.SettleInventoryParams{Tenant: w.Tenant, Executor: w.Executor, Instance: instance, Items: []domain.Held{
			{ID: e.ID, Fence: e.Fence, Phase: domain.HeldAccepted},
		}})
		require.NoError(t, err)
		require.Equal(t, domain.VerdictDrop, out[0].Verdict)
		require.True(t, out[0].GivenBack)
	})
}
