// Package storetest answers: do all databases mean the same?
//
// Run holds a store against the contract of package store: one test per method
// and per rule. Each implementation calls it on the real database. Tests share
// one database and tell their rows apart by tenant, as customers do; what
// serves all tenants (claims, sweeps, outboxes) is read through filters.
package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Store is a store under test.
type Store interface {
	store.Store
	// Age makes everything planned for the execution (wake, not before, expiry,
	// end of the offer, deadline) come sooner by d, and its end be d ago if it has
	// ended: tests do not wait for the database's clock.
	Age(ctx context.Context, id domain.ExecutionID, d time.Duration) error
	// AgeInstance makes an instance have gone, and been heard, d earlier.
	AgeInstance(ctx context.Context, id domain.InstanceID, d time.Duration) error
	// AgeHandlers makes the handlers of an executor have been seen d earlier.
	AgeHandlers(ctx context.Context, executor domain.ExecutorID, d time.Duration) error
	// AgeJoinTokenBoots makes a token have let in its boots d earlier.
	AgeJoinTokenBoots(ctx context.Context, token int64, d time.Duration) error
	// AgeAlerts makes a tenant's events that are put off come sooner by d.
	AgeAlerts(ctx context.Context, tenant domain.TenantID, d time.Duration) error
	// AgeOutbox makes all rows of the outbox d older.
	AgeOutbox(ctx context.Context, d time.Duration) error
	// AgeDeleted makes a job, a script or an executor have been deleted d earlier.
	AgeDeleted(ctx context.Context, d time.Duration, id int64) error
	// RowsOf counts what is stored of a job, a script or an executor, without its runs.
	RowsOf(ctx context.Context, id int64) (int, error)
	// ForgetHolders makes a limit forget who counts, as if a node had offered
	// runs without knowing of it.
	ForgetHolders(ctx context.Context, k domain.LimitKey) error
	// Unlist takes a run out of the waiting runs, and leaves its row as it is.
	Unlist(ctx context.Context, id domain.ExecutionID) error
}

// suiteTest is a test that has a tenant of its own.
type suiteTest struct {
	name string
	run  func(*testing.T, *fixture)
}

// addOnTests are those of add-ons.
var addOnTests []suiteTest

// Run runs the suite. open returns a store on an empty, migrated database; it
// is called several times, and cleans up after its test.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Run("FirstUser", func(t *testing.T) { testFirstUser(t, open(t)) })
	t.Run("Authorities", func(t *testing.T) { testAuthorities(t, open(t)) })
	// These look at all partitions, so each has them for itself.
	t.Run("PartitionLeases", func(t *testing.T) { testPartitionLeases(t, open(t)) })
	t.Run("PartitionNodes", func(t *testing.T) { testPartitionNodes(t, open(t)) })
	t.Run("PartitionRace", func(t *testing.T) { testPartitionRace(t, open(t)) })
	t.Run("ClaimFence", func(t *testing.T) { testClaimFence(t, newFixture(t, open(t))) })
	// It counts the tenants of the database.
	t.Run("QuotaAlone", func(t *testing.T) { testQuotaAlone(t, newFixture(t, open(t))) })
	// It deletes runs that a moment ago its store has moved, which looks for them.
	t.Run("RetentionOfFamilies", func(t *testing.T) { testRetentionOfFamilies(t, newFixture(t, open(t))) })
	s := open(t)
	tests := []suiteTest{
		{"Cluster", testCluster}, {"NodeNumbers", testNodeNumbers}, {"NodeTakenOver", testNodeTakenOver},
		{"Tenants", testTenants}, {"Users", testUsers}, {"Invitations", testInvitations}, {"AccountsOfSeveralTenants", testAccountsOfSeveralTenants}, {"RefreshTokens", testRefreshTokens},
		{"APIKeys", testAPIKeys}, {"KeysOfMembers", testKeysOfMembers}, {"JoinTokens", testJoinTokens}, {"JoinTokensTogether", testJoinTokensTogether}, {"Denials", testDenials}, {"DeniedInstances", testDeniedInstances}, {"ParkedInstances", testParkedInstances}, {"RefusingInstances", testRefusingInstances},
		{"Executors", testExecutors}, {"ExecutorRename", testExecutorRename}, {"ExecutorDelete", testExecutorDelete}, {"JobRestore", testJobRestore}, {"RestoreKeepsQuotas", testRestoreKeepsQuotas}, {"RestoreOfDeclared", testRestoreOfDeclared}, {"ExecutorRestore", testExecutorRestore}, {"ExecutorDeleteRace", testExecutorDeleteRace}, {"ExecutorDisable", testExecutorDisable}, {"BusyBoots", testBusyBoots}, {"Instances", testInstances}, {"Heard", testHeard}, {"InstancesTogether", testInstancesTogether}, {"Leases", testLeases}, {"Held", testHeld}, {"Supersede", testSupersede}, {"SupersedeProven", testSupersedeProven},
		{"Builds", testBuilds}, {"BuildsFlap", testBuildsFlap}, {"BuildsAreBounded", testBuildsAreBounded}, {"BuildNamesAreBounded", testBuildNamesAreBounded}, {"HandlersAreBounded", testHandlersAreBounded}, {"HandlersRace", testHandlersRace}, {"HandlerPages", testHandlerPages}, {"LargestRequests", testLargestRequests}, {"Declared", testDeclared}, {"Proposals", testProposals}, {"CatalogueWall", testCatalogueWall},
		{"JobLifecycle", testJobLifecycle}, {"JobNames", testJobNames}, {"Pauses", testPauses}, {"JobLists", testJobLists}, {"JobSpecRoundTrip", testJobSpecRoundTrip},
		{"Claim", testClaim}, {"ClaimHorizonAndLimit", testClaimHorizonAndLimit}, {"ClaimExcept", testClaimExcept}, {"ClaimRace", testClaimRace}, {"ClaimUnique", testClaimUnique}, {"ListPlanned", testListPlanned}, {"DoubtedClock", testDoubtedClock},
		{"CreateExecution", testCreateExecution}, {"RequestKeyRace", testRequestKeyRace},
		{"OfferGrantFinish", testOfferGrantFinish}, {"ShorterTimeout", testShorterTimeout}, {"OneStepOffer", testOneStepOffer}, {"OneStepRefused", testOneStepRefused}, {"SendsSpent", testSendsSpent}, {"BusyIsNoFailedSend", testBusyIsNoFailedSend}, {"SendsSpentSwept", testSendsSpentSwept}, {"RecentInstances", testRecentInstances}, {"Choice", testChoice}, {"OfferRace", testOfferRace}, {"OfferNotDueYet", testOfferNotDueYet}, {"OfferAhead", testOfferAhead},
		{"GrantGuards", testGrantGuards}, {"GiveBack", testGiveBack}, {"WaitsAndStarts", testWaitsAndStarts}, {"Inventory", testInventory}, {"InventoriesTogether", testInventoriesTogether}, {"InstancesLeave", testInstancesLeave}, {"EndOrphans", testEndOrphans}, {"EndOrphansRace", testEndOrphansRace},
		{"FinishCodes", testFinishCodes}, {"Retry", testRetry}, {"LateResult", testLateResult}, {"LargeResults", testLargeResults},
		{"Cancel", testCancel}, {"MixedBatch", testMixedBatch},
		{"SlotSerial", testSlotSerial}, {"SlotFreedWithoutAResult", testSlotFreedWithoutAResult}, {"SlotOrder", testSlotOrder}, {"SlotWaitKeepsOrder", testSlotWaitKeepsOrder}, {"DeadlineIsKept", testDeadlineIsKept}, {"Waiting", testWaiting}, {"SlotDiscard", testSlotDiscard}, {"SlotQueueFull", testSlotQueueFull}, {"SlotPilesUp", testSlotPilesUp}, {"SlotParallel", testSlotParallel},
		{"Cover", testCover}, {"CoverForced", testCoverForced}, {"CoverWaiting", testCoverWaiting}, {"CoverRetry", testCoverRetry}, {"CoverBatch", testCoverBatch}, {"CoverRace", testCoverRace},
		{"Limit", testLimit}, {"LimitBoth", testLimitBoth}, {"LimitPrecedence", testLimitPrecedence}, {"LimitSlot", testLimitSlot},
		{"LimitAdopts", testLimitAdopts}, {"LimitChanges", testLimitChanges}, {"LimitLeavesNoPlace", testLimitLeavesNoPlace}, {"LimitPatience", testLimitPatience}, {"LimitCrash", testLimitCrash}, {"LimitRace", testLimitRace},
		{"SlotCancelWaiter", testSlotCancelWaiter}, {"SlotRace", testSlotRace}, {"SlotGiveBackKeeps", testSlotGiveBackKeeps},
		{"SweepOffer", testSweepOffer}, {"SweepOverdue", testSweepOverdue}, {"SweepUnattended", testSweepUnattended}, {"SweepReported", testSweepReported}, {"OneStepUnheard", testOneStepUnheard}, {"SweepLost", testSweepLost}, {"SweepOneStep", testSweepOneStep}, {"SweepOneStepStopped", testSweepOneStepStopped}, {"GrantAgainStopped", testGrantAgainStopped}, {"StoppedMeanwhile", testStoppedMeanwhile}, {"SweepRetry", testSweepRetry}, {"SweepExpire", testSweepExpire},
		{"LingerKeepsTheSlot", testLingerKeepsTheSlot}, {"LingerCancelled", testLingerCancelled}, {"LingerOneBatch", testLingerOneBatch}, {"LingerLease", testLingerLease},
		{"LingerDeadline", testLingerDeadline}, {"LingerSuperseded", testLingerSuperseded}, {"LingerLimit", testLingerLimit}, {"LingerLateLimit", testLingerLateLimit}, {"LingerRetention", testLingerRetention},
		{"ShardsFixed", testShardsFixed}, {"ShardsBroadcast", testShardsBroadcast}, {"ShardsFail", testShardsFail}, {"ShardHooks", testShardHooks}, {"ShardsCancelled", testShardsCancelled},
		{"ShardsTimeout", testShardsTimeout}, {"ShardInstanceGone", testShardInstanceGone}, {"ShardRetryGone", testShardRetryGone}, {"ShardsRace", testShardsRace}, {"ShardsStopped", testShardsStopped}, {"ShardsCovered", testShardsCovered},
		{"ShardsSwept", testShardsSwept}, {"ShardsLinger", testShardsLinger}, {"ShardsListed", testShardsListed}, {"ShardsLimited", testShardsLimited}, {"ShardsMany", testShardsMany},
		{"SweepDeadline", testSweepDeadline}, {"SweepBlocked", testSweepBlocked}, {"SweepCancelling", testSweepCancelling}, {"SweepRace", testSweepRace},
		{"PauseTakesBack", testPauseTakesBack}, {"DeleteEndsAll", testDeleteEndsAll}, {"EditReplans", testEditReplans}, {"EditSettles", testEditSettles},
		{"PauseRace", testPauseRace},
		{"DelayWaits", testDelayWaits}, {"DelayEnds", testDelayEnds}, {"DelayEdits", testDelayEdits}, {"DelayNet", testDelayNet}, {"DelayTaken", testDelayTaken}, {"DelayRace", testDelayRace},
		{"Calendars", testCalendars}, {"WholeJobs", testWholeJobs}, {"Schedules", testSchedules}, {"Totals", testTotals}, {"DocumentSets", testDocumentSets}, {"JobCalendars", testJobCalendars}, {"CalendarWall", testCalendarWall},
		{"Scripts", testScripts}, {"JobScripts", testJobScripts}, {"ScriptPolicies", testScriptPolicies}, {"CallbackPolicies", testCallbackPolicies}, {"ScriptRace", testScriptRace}, {"ScriptWall", testScriptWall},
		{"Backfill", testBackfill}, {"BackfillEnds", testBackfillEnds}, {"BackfillRace", testBackfillRace},
		{"Timer", testTimer}, {"TimerDefaults", testTimerDefaults}, {"TimerPolicies", testTimerPolicies}, {"TimerRequests", testTimerRequests}, {"TimerBatch", testTimerBatch}, {"TimerHeld", testTimerHeld},
		{"TimerClaimRace", testTimerClaimRace}, {"TimerKeyRace", testTimerKeyRace}, {"TimerKeysOfMany", testTimerKeysOfMany}, {"TimerFence", testTimerFence}, {"TimerJobDeleted", testTimerJobDeleted}, {"TimerWall", testTimerWall},
		{"TimerCancel", testTimerCancel}, {"TimerReschedule", testTimerReschedule}, {"TimerMovedAway", testTimerMovedAway}, {"TimerEditRace", testTimerEditRace}, {"TimerLists", testTimerLists}, {"Statistics", testStatistics}, {"Import", testImport}, {"LateEndCounted", testLateEndCounted}, {"Overdue", testOverdue}, {"RecentRuns", testRecentRuns}, {"RecentRunsMeasured", testRecentRunsMeasured}, {"TimerPhases", testTimerPhases},
		{"TimerCancelMany", testTimerCancelMany}, {"TimerCancelLater", testTimerCancelLater}, {"TimerJobDeletedDriven", testTimerJobDeletedDriven}, {"TimerRetention", testTimerRetention}, {"HotTimers", testHotTimers}, {"LargeTimers", testLargeTimers}, {"LargeTimersCancelled", testLargeTimersCancelled}, {"LargeTimersCancelledInSteps", testLargeTimersCancelledInSteps},
		{"LargeRunsCancelledInSteps", testLargeRunsCancelledInSteps}, {"LargeTimersKept", testLargeTimersKept}, {"PendingTimers", testPendingTimers}, {"QuotaOfTimers", testQuotaOfTimers},
		{"ListExecutions", testListExecutions}, {"CountExecutions", testCountExecutions},
		{"Logs", testLogs}, {"LogSearch", testLogSearch}, {"LargePages", testLargePages}, {"LogGrowth", testLogGrowth}, {"LogRetention", testLogRetention}, {"RunRetention", testRunRetention}, {"RetentionRules", testRetentionRules}, {"RetentionByDays", testRetentionByDays}, {"RetentionByCount", testRetentionByCount}, {"RetentionOfLogs", testRetentionOfLogs}, {"RunPurges", testRunPurges}, {"AlertRetention", testAlertRetention}, {"InstanceRetention", testInstanceRetention}, {"HandlerRetention", testHandlerRetention}, {"JoinTokenBootRetention", testJoinTokenBootRetention}, {"JobRetention", testJobRetention}, {"CreateJobs", testCreateJobs}, {"ChangeJobs", testChangeJobs}, {"Quotas", testQuotas}, {"QuotaOfFires", testQuotaOfFires}, {"QuotaOfOthers", testQuotaOfOthers}, {"QuotaOfJobsForCalls", testQuotaOfJobsForCalls}, {"QuotaOfInstances", testQuotaOfInstances}, {"QuotaRace", testQuotaRace}, {"StoredBytes", testStoredBytes}, {"QuotaOfStoredBytes", testQuotaOfStoredBytes}, {"Histories", testHistories}, {"CountBounds", testCountBounds}, {"ScriptRetention", testScriptRetention}, {"TokenRetention", testTokenRetention}, {"Refusals", testRefusals},
		{"Steps", testSteps}, {"StepLimits", testStepLimits}, {"StepRace", testStepRace}, {"Progress", testProgress}, {"Callbacks", testCallbacks}, {"StepRetention", testStepRetention}, {"EndedAmong", testEndedAmong},

		{"LedgerJobs", testLedgerJobs}, {"JobChanges", testJobChanges}, {"PlanEndsAtOneInstant", testPlanEndsAtOneInstant}, {"LedgerExecutions", testLedgerExecutions},
		{"Maintenance", testMaintenance}, {"MaintenanceHolds", testMaintenanceHolds}, {"MaintenanceSkips", testMaintenanceSkips}, {"Drains", testDrains}, {"LostInstances", testLostInstances},
		{"TenantWall", testTenantWall},
	}
	held := HoldAll(t, s)
	for _, test := range append(tests, addOnTests...) {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, s)
			f.held = held
			test.run(t, f)
		})
	}
}

// ids names what the tests create.
var ids = domain.NewIDSource(1000, time.Now)

// NewID is an id source for stores under test, apart from that of the tests.
var NewID = domain.NewIDSource(1001, time.Now).Next

// NextFire plans fixed delays in stores under test: Every after the end.
func NextFire(ended time.Time, spec *domain.JobSpec) time.Time { return ended.Add(spec.Schedule.Every) }

// FiresPerMinute rates fixed rates in stores under test; nothing else has a rate.
func FiresPerMinute(_ time.Time, spec *domain.JobSpec) int {
	if spec.Schedule.Kind != domain.ScheduleFixedRate {
		return 0
	}
	return int(time.Minute / spec.Schedule.Every)
}

// allPartitions is what one node owns while it is alone.
var allPartitions = func() []int {
	all := make([]int, domain.Partitions)
	for i := range all {
		all[i] = i
	}
	return all
}()

// HoldAll takes all partitions for the rest of the day, whoever held them, and
// returns them with their terms.
func HoldAll(t testing.TB, s store.Store) []domain.PartitionTerm {
	t.Helper()
	table, err := s.ReadPartitions(t.Context())
	require.NoError(t, err)
	seen := make([]domain.PartitionTerm, len(table.Leases))
	for i, l := range table.Leases {
		seen[i] = l.PartitionTerm
		if !l.Until.IsZero() {
			_, err := s.ReleasePartitions(t.Context(), store.ReleasePartitionsParams{BootID: l.BootID, Held: seen[i : i+1]})
			require.NoError(t, err)
		}
	}
	got, err := s.AcquirePartitions(t.Context(), store.AcquirePartitionsParams{
		Node: 1000, BootID: "storetest", Want: seen, TTL: 24 * time.Hour,
	})
	require.NoError(t, err)
	require.Len(t, got, len(seen))
	return TermsOf(got)
}

// TermsOf returns the terms of leases.
func TermsOf(leases []domain.PartitionLease) []domain.PartitionTerm {
	out := make([]domain.PartitionTerm, len(leases))
	for i, l := range leases {
		out[i] = l.PartitionTerm
	}
	return out
}

// fixture is a tenant of its own with an executor and a living instance.
type fixture struct {
	t        *testing.T
	ctx      context.Context
	s        Store
	tenant   domain.TenantID
	executor domain.ExecutorID
	instance domain.InstanceID
	held     []domain.PartitionTerm // all partitions
	called   []domain.Callback      // what callbacks has taken
}

func newFixture(t *testing.T, s Store) *fixture {
	t.Helper()
	f := &fixture{t: t, ctx: t.Context(), s: s, tenant: domain.TenantID(ids.Next()), executor: domain.ExecutorID(ids.Next())}
	f.ok(s.CreateTenant(f.ctx, domain.Tenant{ID: f.tenant, Name: "tenant " + f.tenant.String(), CreatedAt: time.Now()}))
	f.ok(s.CreateExecutor(f.ctx, domain.Executor{ID: f.executor, TenantID: f.tenant, Name: "shop"}))
	f.instance = f.register("boot-1", time.Minute).ID
	return f
}

func (f *fixture) ok(err error) {
	f.t.Helper()
	require.NoError(f.t, err)
}

func (f *fixture) code(want domain.Code, err error) {
	f.t.Helper()
	require.Equal(f.t, want, domain.CodeOf(err), "%v", err)
}

// expire ends all leases that ran out, also those that other tests have left, and returns
// the instances of its tenant.
func (f *fixture) expire(latest func() time.Time) (mine []domain.InstanceID) {
	f.t.Helper()
	const most = 1000
	for {
		gone, err := f.s.ExpireInstances(f.ctx, most, latest)
		f.ok(err)
		for _, i := range gone {
			if i.TenantID == f.tenant {
				mine = append(mine, i.ID)
			}
		}
		if len(gone) < most {
			return mine
		}
	}
}

func (f *fixture) register(boot string, ttl time.Duration, handlers ...domain.Handler) domain.Instance {
	f.t.Helper()
	i, err := RegisterInstance(f.ctx, f.s, store.RegisterInstanceParams{
		Instance: domain.Instance{
			ID: domain.InstanceID(ids.Next()), TenantID: f.tenant, Executor: f.executor, BootID: boot, Name: boot + " name", Host: "host",
			PID: 7, AppVersion: "1.0", Client: "sdk 1", Labels: map[string]string{"zone": "a"}, Handlers: []string{"close-day"}, Slots: 10,
			StartedAt: time.Now(),
		},
		Handlers: handlers, TTL: ttl,
	})
	f.ok(err)
	return i
}

func (f *fixture) now() time.Time {
	f.t.Helper()
	now, err := f.s.Now(f.ctx)
	f.ok(err)
	return now
}

// tick returns in another millisecond of the database's clock.
func (f *fixture) tick() {
	f.t.Helper()
	for began := f.now(); !f.now().After(began); {
	}
}

var jobNumber atomic.Int64

// job creates a job that never fires by itself; change may alter its spec.
func (f *fixture) job(change func(*domain.JobSpec)) store.JobView {
	f.t.Helper()
	return f.jobFiring(domain.Never, change)
}

func (f *fixture) jobFiring(at time.Time, change func(*domain.JobSpec)) store.JobView {
	f.t.Helper()
	spec := domain.JobSpec{
		Name: fmt.Sprintf("job %06d", jobNumber.Add(1)), Handler: "close-day", Blocking: domain.BlockParallel,
		Schedule: domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: time.Minute}, OnLost: domain.OnLostFail,
		Retry: domain.Retry{MaxAttempts: 1},
	}
	if change != nil {
		change(&spec)
	}
	view, err := f.s.CreateJob(f.ctx, domain.Job{
		ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: f.executor, State: domain.JobEnabled, Source: domain.SourceConsole,
		Spec: spec, CreatedBy: "anna",
	}, func(time.Time, *domain.JobSpec) time.Time { return at })
	f.ok(err)
	return view
}

// planned makes an execution as a planner does.
func planned(j *domain.Job, fireAt, now time.Time) domain.Execution {
	wait, from := domain.DefaultDispatchTimeout, fireAt
	if j.Spec.DispatchTimeout > 0 {
		wait = j.Spec.DispatchTimeout
	}
	if from.Before(now) {
		from = now
	}
	return domain.Execution{
		ID: domain.ExecutionID(ids.Next()), TenantID: j.TenantID, JobID: j.ID, Revision: j.Revision, Executor: j.Executor,
		Partition: j.Partition, Cause: domain.CauseSchedule, FireAt: fireAt, State: domain.Due,
		MaxAttempts: max(j.Spec.Retry.MaxAttempts, 1), NotBefore: fireAt, WakeAt: fireAt.Add(domain.PickupGrace),
		ExpireAt: from.Add(wait), PlannedAt: now, LogLines: -1,
	}
}

// run creates a run that is due now, as run now does.
func (f *fixture) run(j store.JobView) domain.Execution { return f.runAt(j, f.now()) }

func (f *fixture) runAt(j store.JobView, at time.Time) domain.Execution {
	f.t.Helper()
	e := planned(&j.Job, at, f.now())
	e.Cause, e.OccurrenceKey = domain.CauseManual, "key "+e.ID.String()
	run, created, err := f.s.CreateExecution(f.ctx, e)
	f.ok(err)
	require.True(f.t, created)
	return run
}

// fire plans one scheduled execution through a claim. fireAt must have come.
func (f *fixture) fire(j store.JobView, fireAts ...time.Time) []domain.Execution {
	f.t.Helper()
	f.setNext(j, f.now().Add(-time.Second))
	got := f.claim(func(now time.Time, t domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
		if t.JobID != j.ID {
			return store.TriggerPlan{NextFireAt: domain.Never, LastFireAt: t.LastFireAt}
		}
		p := store.TriggerPlan{NextFireAt: domain.Never, LastFireAt: fireAts[len(fireAts)-1]}
		for _, at := range fireAts {
			p.Executions = append(p.Executions, planned(&j.Job, at, now))
		}
		return p
	})
	require.Len(f.t, got, len(fireAts))
	return got
}

// setNext moves a job's trigger by a pause and a resume.
func (f *fixture) setNext(j store.JobView, at time.Time) {
	f.t.Helper()
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobPaused})
	f.ok(err)
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{
		Tenant: f.tenant, ID: j.ID, State: domain.JobEnabled, Next: func(time.Time, *domain.JobSpec) time.Time { return at },
	})
	f.ok(err)
}

// claim claims everything due and returns this tenant's executions.
func (f *fixture) claim(plan store.PlanFunc) []domain.Execution {
	f.t.Helper()
	got, err := f.s.ClaimDueTriggers(f.ctx, store.ClaimDueTriggersParams{Partitions: f.held, Limit: 1000, Plan: plan})
	f.ok(err)
	return f.mine(got.Executions)
}

func (f *fixture) mine(all []domain.Execution) []domain.Execution {
	var out []domain.Execution
	for _, e := range all {
		if e.TenantID == f.tenant {
			out = append(out, e)
		}
	}
	return out
}

func (f *fixture) offerTo(instance domain.InstanceID, es ...domain.Execution) []store.OfferResult {
	f.t.Helper()
	var offers []store.Offer
	for _, e := range es {
		offers = append(offers, store.Offer{Tenant: f.tenant, ID: e.ID, Node: 1, Instance: instance})
	}
	got, err := f.s.OfferExecutions(f.ctx, offers)
	f.ok(err)
	require.Len(f.t, got, len(es))
	return got
}

// offer offers one execution and expects a status.
func (f *fixture) offer(want store.OfferStatus, e domain.Execution) domain.Execution {
	f.t.Helper()
	got := f.offerTo(f.instance, e)[0]
	require.Equal(f.t, want, got.Status, "state %s, reason %q", got.Execution.State, got.Execution.Reason)
	return got.Execution
}

// wait records waits and returns what they covered.
func (f *fixture) wait(waits []store.Wait) []domain.Execution {
	f.t.Helper()
	covered, err := f.s.RecordWaits(f.ctx, waits)
	f.ok(err)
	return covered
}

func (f *fixture) grant(e domain.Execution) domain.Execution {
	f.t.Helper()
	got, err := f.s.GrantOffers(f.ctx, []store.GrantRequest{{Tenant: f.tenant, ID: e.ID, Fence: e.Fence, Instance: e.Instance}})
	f.ok(err)
	require.True(f.t, got[0].Granted)
	return got[0].Execution
}

// start brings an execution to running.
func (f *fixture) start(e domain.Execution) domain.Execution {
	f.t.Helper()
	return f.grant(f.offer(store.OfferMade, e))
}

func (f *fixture) report(e domain.Execution, outcome domain.Outcome) store.AttemptReport {
	return store.AttemptReport{Tenant: f.tenant, Executor: f.executor, Report: domain.Report{
		ExecutionID: e.ID, Fence: e.Fence, Outcome: outcome, StartedAt: e.GrantedAt, LogLines: 3,
	}}
}

func (f *fixture) finish(e domain.Execution, outcome domain.Outcome) store.FinishResult {
	f.t.Helper()
	got, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{f.report(e, outcome)})
	f.ok(err)
	require.Len(f.t, got, 1)
	return got[0]
}

func (f *fixture) find(e domain.Execution) domain.Execution {
	f.t.Helper()
	view, err := f.s.FindExecution(f.ctx, f.tenant, e.ID)
	f.ok(err)
	return view.Execution
}

func (f *fixture) age(e domain.Execution, d time.Duration) {
	f.t.Helper()
	f.ok(f.s.Age(f.ctx, e.ID, d))
}

// sweep sweeps all partitions and keeps this tenant's executions.
func (f *fixture) sweep() store.Swept {
	f.t.Helper()
	got, err := f.s.SweepExecutions(f.ctx, store.SweepParams{Partitions: allPartitions, Limit: 1000, Hold: 2 * time.Second})
	f.ok(err)
	got.Dispatch, got.Cancel, got.Ended = f.mine(got.Dispatch), f.mine(got.Cancel), f.mine(got.Ended)
	got.Resend = slices.DeleteFunc(got.Resend, func(r store.OfferResult) bool { return r.Execution.TenantID != f.tenant })
	return got
}

// race runs fn in n goroutines that begin together.
func race(n int, fn func(i int)) {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-gate
			fn(i)
		})
	}
	close(gate)
	wg.Wait()
}

func identify(es []domain.Execution) []domain.ExecutionID {
	out := make([]domain.ExecutionID, len(es))
	for i, e := range es {
		out[i] = e.ID
	}
	return out
}
