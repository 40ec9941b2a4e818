package sim

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/executor-sdk/simulate"
)

// TestTheDatabaseIsLikeTheRealOne lets random transactions happen on the
// simulator's database and on SQLite, under one clock, and compares all rows
// after each. SQLite is held against MariaDB by storetest.
func TestTheDatabaseIsLikeTheRealOne(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// A transaction of SQLite's may wait for its turn, and reads the clock
				// when it has it: the played one happens when the real one has ended.
				var ended time.Time
				o := gormstore.Options{
					Driver: "sqlite", DSN: gormtest.SQLite(t),
					NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler), Misfire: someMisfire,
					Observe: func(gormstore.Transaction) { ended = time.Now() },
				}
				s, err := gormstore.Open(t.Context(), o)
				require.NoError(t, err)
				defer func() { require.NoError(t, s.Close()) }()
				p := newPair(t, s, seed, &ended)
				for range 120 {
					time.Sleep(oneOf(p.r, time.Millisecond, 30*time.Millisecond, 400*time.Millisecond, 2500*time.Millisecond, 7*time.Second))
					p.compare(p.step())
				}
			})
		})
	}
}

// pair is the real store with the played one.
type pair struct {
	*storetest.World
	r         *rand.Rand
	db        *database
	jobs      []domain.Job
	runs      []domain.ExecutionID
	instances []domain.InstanceID
	boots     []string
	known     map[domain.ExecutionID]bool
	made      []int64    // ids of parts that the real one has made, and the played one has not
	at        *time.Time // of the transaction
}

// someMisfire is a misfire policy that says everything.
func someMisfire(_ time.Time, e *domain.Execution, _ *domain.JobSpec) (domain.Reason, string) {
	return []domain.Reason{domain.ReasonMisfire, domain.ReasonCoalesced, ""}[e.ID%3], "passed"
}

func newPair(t *testing.T, s store.Store, seed uint64, at *time.Time) *pair {
	p := &pair{World: storetest.NewWorld(t, s), r: rand.New(rand.NewPCG(seed, 1)), at: at}
	p.db = newDatabase(func() time.Time { return p.at.UTC().Truncate(time.Millisecond) })
	p.db.misfire = someMisfire
	for _, b := range []domain.Blocking{domain.BlockSerial, domain.BlockDiscard, domain.BlockCover, domain.BlockParallel} {
		j := p.Job(func(s *domain.JobSpec) {
			s.Blocking, s.Parallelism = b, p.r.IntN(3)
			s.OnLost = oneOf(p.r, domain.OnLostAuto, domain.OnLostFail, domain.OnLostRetry)
			s.Retry = domain.Retry{MaxAttempts: 1 + p.r.IntN(3), Delay: time.Duration(p.r.IntN(5)) * time.Second}
			s.Timeout = oneOf(p.r, 0, 4*time.Second)
			s.DispatchTimeout = oneOf(p.r, 0, 20*time.Second)
		})
		p.jobs = append(p.jobs, j)
		p.db.createJob(j, domain.Never)
	}
	p.db.newID = func() int64 {
		id := p.made[0]
		p.made = p.made[1:]
		return id
	}
	p.known = map[domain.ExecutionID]bool{}
	for _, sharding := range []domain.Sharding{
		{Mode: domain.ShardFixed, Shards: 2, After: "close-day", Timeout: 20 * time.Second},
		{Mode: domain.ShardBroadcast, OnGone: domain.GoneMiss, Before: "close-day"},
		{Mode: domain.ShardBroadcast, OnGone: domain.GoneMove, Before: "close-day", After: "close-day"},
	} {
		j := p.Job(func(s *domain.JobSpec) {
			s.Sharding = sharding
			s.Blocking = oneOf(p.r, domain.BlockSerial, domain.BlockDiscard, domain.BlockCover, domain.BlockParallel)
			s.OnLost = oneOf(p.r, domain.OnLostAuto, domain.OnLostFail, domain.OnLostRetry)
			s.Retry = domain.Retry{MaxAttempts: 1 + p.r.IntN(2), Delay: time.Second}
		})
		p.jobs = append(p.jobs, j)
		p.db.createJob(j, domain.Never)
	}
	for i := range 2 {
		p.boots = append(p.boots, fmt.Sprintf("boot-%d", i))
		p.register(i)
	}
	return p
}

func (p *pair) register(i int) {
	id := p.World.Instance(p.boots[i], 15*time.Second)
	if len(p.instances) <= i {
		p.instances = append(p.instances, id)
	}
	p.db.register(store.RegisterInstanceParams{Instance: domain.Instance{ID: id, TenantID: p.Tenant, Executor: p.Executor, BootID: p.boots[i]}, TTL: 15 * time.Second})
}

// some returns a run, with the fence that it has or a wrong one.
func (p *pair) some() (e domain.Execution, fence int64) {
	e = *p.db.find(p.runs[max(0, len(p.runs)-1-p.r.IntN(12))])
	return e, e.Fence - int64(oneOf(p.r, 0, 0, 0, 0, 0, 1))
}

// learn looks which parts the real store has made.
func (p *pair) learn() {
	for _, id := range p.runs {
		p.known[id] = true
	}
	var fresh []domain.ExecutionID
	for _, id := range p.runs {
		if e := p.db.find(id); e.IsPart() || !p.db.jobs[e.JobID].of(e).Sharding.On() {
			continue
		}
		views, _, err := p.S.ListParts(p.T.Context(), p.Tenant, id, 100)
		require.NoError(p.T, err)
		for _, v := range views {
			if !p.known[v.ID] {
				fresh = append(fresh, v.ID)
			}
		}
	}
	slices.Sort(fresh)
	for _, id := range fresh {
		p.made = append(p.made, int64(id))
	}
	p.runs = append(p.runs, fresh...)
}

// step makes one transaction in both and returns its name.
func (p *pair) step() string {
	ctx, t := p.T.Context(), p.T
	*p.at = time.Now()
	if len(p.runs) == 0 || p.r.IntN(6) == 0 {
		e := p.RunBy(oneOf(p.r, domain.CauseManual, domain.CauseSchedule), oneOf(p.r, p.jobs...), time.Now().UTC().Truncate(time.Millisecond).Add(time.Duration(p.r.IntN(3)-1)*time.Second))
		p.runs = append(p.runs, e.ID)
		p.db.create(e)
		return "create"
	}
	e, fence := p.some()
	instance := oneOf(p.r, p.instances...)
	switch p.r.IntN(14) {
	case 13:
		scope := oneOf(p.r, domain.MaintenanceScope{}, domain.MaintenanceScope{Tenant: p.Tenant}, domain.MaintenanceScope{Tenant: p.Tenant, Executor: p.Executor})
		if p.r.IntN(2) == 0 {
			_, _ = p.S.EndMaintenance(ctx, scope, "") // there may be none
			p.db.endMaintenance(scope)
			return "end maintenance"
		}
		m := domain.Maintenance{MaintenanceScope: scope, Mode: oneOf(p.r, domain.MaintenanceWait, domain.MaintenanceSkip, domain.MaintenanceContinue), EndsAt: time.Now().UTC().Truncate(time.Second).Add(time.Duration(2+p.r.IntN(9)) * time.Second)}
		_, err := p.S.StartMaintenance(ctx, m)
		require.NoError(t, err)
		p.made = append(p.made, 0)
		p.db.startMaintenance(m, 0)
		return "start maintenance"
	case 0, 1, 2:
		if p.db.jobs[e.JobID].of(&e).Sharding.On() {
			s := []store.Spread{{Tenant: p.Tenant, ID: e.ID}}
			real, err := p.S.SpreadExecutions(ctx, s)
			require.NoError(t, err)
			p.learn()
			played := p.db.spread(s)
			require.Equal(t, real[0].Status, played[0].Status, "spread %s", e.ID)
			require.Equal(t, names(real[0].Parts), names(played[0].Parts))
			return "spread"
		}
		o := []store.Offer{{Tenant: p.Tenant, ID: e.ID, Node: 1, Instance: instance, Idempotent: p.r.IntN(2) == 0}}
		if p.r.IntN(3) == 0 {
			o[0].Since = e.FireAt.Add(time.Second)
		}
		o[0].Granted = o[0].Idempotent && p.r.IntN(2) == 0
		real, err := p.S.OfferExecutions(ctx, o)
		require.NoError(t, err)
		played := p.db.offer(&limitsKnown{}, o)
		require.Equal(t, real[0].Status, played[0].Status, "offer %s", e.ID)
		require.Len(t, played[0].Covered, len(real[0].Covered))
		return "offer"
	case 3, 4:
		g := []store.GrantRequest{{Tenant: p.Tenant, ID: e.ID, Fence: fence, Instance: e.Instance}}
		real, err := p.S.GrantOffers(ctx, g)
		require.NoError(t, err)
		require.Equal(t, real[0].Granted, p.db.grant(g)[0].Granted)
		return "grant"
	case 5:
		g := []store.GiveBack{{
			Tenant: p.Tenant, ID: e.ID, Fence: fence, Instance: e.Instance, Reason: domain.ReasonOfferRefused,
			Wait: 200 * time.Millisecond, Refused: p.r.IntN(2) == 0, Busy: p.r.IntN(3) == 0, Unheard: p.r.IntN(4) == 0,
		}}
		real, err := p.S.GiveBackOffers(ctx, g)
		require.NoError(t, err)
		require.Equal(t, real[0].Status, p.db.giveBack(g)[0].Status)
		return "give back"
	case 6:
		w := []store.Wait{{Tenant: p.Tenant, ID: e.ID, Reason: domain.ReasonWaitInstance, For: 3 * time.Second, Full: p.r.IntN(2) == 0}}
		if p.r.IntN(2) == 0 {
			w[0].Since = e.FireAt.Add(time.Second)
		}
		real, err := p.S.RecordWaits(ctx, w)
		require.NoError(t, err)
		require.Len(t, p.db.wait(&limitsKnown{}, w), len(real))
		return "wait"
	case 7, 8, 9:
		r := []store.AttemptReport{p.Report(e, oneOf(p.r, domain.OutcomeSucceeded, domain.OutcomeSucceeded, domain.OutcomeFailed,
			domain.OutcomeTimedOut, domain.OutcomeCancelled, domain.OutcomeNeverStarted, domain.OutcomeUnknown))}
		if p.r.IntN(3) == 0 {
			r[0].Report.ErrorKind = simulate.KindStopping
		}
		r[0].Report.Fence, r[0].Report.StillRunning = fence, p.r.IntN(3) == 0
		real, err := p.S.FinishAttempts(ctx, r)
		require.NoError(t, err)
		p.learn()
		played := p.db.finish(&limitsKnown{}, r)
		require.Equal(t, real[0].Code, played[0].Code, "%s %s, %d", e.ID, e.State, r[0].Report.Outcome)
		require.ElementsMatch(t, names(real[0].Woken), names(played[0].Woken))
		require.Equal(t, names(real[0].Ended), names(played[0].Ended))
		return "finish"
	case 10:
		if p.r.IntN(3) > 0 {
			_, _, err := p.S.RenewInstances(ctx, []store.InstanceRenewal{{ID: instance}}, 15*time.Second)
			require.NoError(t, err)
			p.db.renewInstances([]store.InstanceRenewal{{ID: instance}}, 15*time.Second)
			return "renew"
		}
		if e.OnlyPartsMove() && e.State == domain.Cancelling {
			real, err := p.S.CancelParts(ctx, []domain.Execution{e})
			require.NoError(t, err)
			p.learn()
			played := p.db.cancelParts([]domain.Execution{e})
			require.ElementsMatch(t, names(real.Cancel), names(played.Cancel))
			require.ElementsMatch(t, names(real.Ended), names(played.Ended))
			require.ElementsMatch(t, names(real.Woken), names(played.Woken))
			return "cancel parts"
		}
		_, real := p.S.RequestCancel(ctx, p.Tenant, e.ID, domain.ReasonKilled, "")
		p.learn()
		_, played := p.db.cancel(p.Tenant, e.ID)
		require.Equal(t, domain.CodeOf(real), domain.CodeOf(played))
		return "cancel"
	case 11:
		in := store.SettleInventoryParams{Tenant: p.Tenant, Executor: p.Executor, Instance: instance, Items: []domain.Held{
			{ID: e.ID, Fence: fence, Phase: oneOf(p.r, domain.HeldAccepted, domain.HeldRunning)},
		}}
		real, err := storetest.SettleInventory(ctx, p.S, in)
		require.NoError(t, err)
		played := p.db.settle(in)
		require.Equal(t, real[0].Verdict, played[0].Verdict)
		require.Equal(t, real[0].GivenBack, played[0].GivenBack)
		return "settle"
	default:
		parts := make([]int, domain.Partitions)
		for i := range parts {
			parts[i] = i
		}
		in := store.SweepParams{Partitions: parts, Limit: 500, Hold: 3 * time.Second}
		real, err := p.S.SweepExecutions(ctx, in)
		require.NoError(t, err)
		p.learn()
		played, err := p.db.sweep(in)
		require.NoError(t, err)
		require.ElementsMatch(t, names(real.Dispatch), names(played.Dispatch))
		require.ElementsMatch(t, names(real.Cancel), names(played.Cancel))
		require.ElementsMatch(t, names(real.Ended), names(played.Ended))
		require.Len(t, played.Resend, len(real.Resend))
		return "sweep"
	}
}

func names(list []domain.Execution) []string {
	out := []string{}
	for _, e := range list {
		out = append(out, e.ID.String()+" "+e.State.String())
	}
	return out
}

// compare holds every run of the one against the other's.
func (p *pair) compare(step string) {
	p.T.Helper()
	for _, id := range p.runs {
		real, played := p.Find(id), *p.db.find(id)
		require.Equal(p.T, row(real), row(played), "after %s", step)
	}
}

// row is what decides how a run goes on.
func row(e domain.Execution) string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.UTC().Format("15:04:05.000")
	}
	return fmt.Sprintf("%s by %s %s %q fence %d attempt %d/%d on %d slot %t lingers %t returned %s not before %s wake %s expire %s deadline %s offered %s granted %s started %s finished %s lines %d; %s %d/%d of %s bound %s stage %s",
		e.ID, e.Cause, e.State, e.Reason, e.Fence, e.Attempt, e.MaxAttempts, e.Instance, e.HoldsSlot, e.Lingers, at(e.ReturnedAt),
		at(e.NotBefore), at(e.WakeAt), at(e.ExpireAt), at(e.Deadline), at(e.OfferedAt), at(e.GrantedAt), at(e.StartedAt), at(e.FinishedAt), e.LogLines,
		e.Part, e.Shard, e.Shards, e.Parent, e.Bound, e.Stage)
}
