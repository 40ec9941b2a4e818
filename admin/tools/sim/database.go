package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// database is the tables, with the meaning of package store and by the same
// moves as gormstore. Each method is one transaction: it happens at one
// instant, all of it or nothing.
type database struct {
	clock func() time.Time // in milliseconds
	newID func() int64
	rules rules
	// changed is called for every execution that a transaction changed, with
	// what it was before, once the transaction is over.
	changed func(before *domain.Execution, after *domain.Execution)
	claimed func(p store.ClaimDueTriggersParams)
	misfire store.MisfireFunc // nil: never asked

	jobs       map[domain.JobID]*jobRow
	jobOrder   []domain.JobID
	executions map[domain.ExecutionID]*domain.Execution
	order      []domain.ExecutionID // of insertion
	alive      []domain.ExecutionID // those that may still move, and some that do not; by id
	byFire     map[occurrence]domain.ExecutionID
	places     map[domain.ExecutionID]place // of runs that wait for a start
	timers     []domain.Timer               // pending ones
	timersSet  []domain.Timer               // all but those that were replaced while they were pending
	tookBack   []domain.ExecutionID         // runs of timers that were moved, replaced or cancelled before they started
	attempts   map[attemptKey]*domain.Attempt
	signs      domain.SignsOfLife
	alerts     map[string]bool // by key
	alertOrder []string
	limits     []*limitRow // executors' first
	// maintenance, in order; caller is the node whose transaction it is.
	maintenance []*maintenanceRow
	caller      *nodeStore

	instances map[domain.InstanceID]*domain.Instance
	boots     map[string]domain.InstanceID
	lapses    map[domain.InstanceID]int // see noteLapse

	leases    [domain.Partitions]domain.PartitionLease
	clockHold time.Duration // the cluster value clock_hold
	heldAt    time.Time     // the cluster value clock_held_at
	confirmed time.Time     // when an operator said that the clock is right
	nodes     []*nodeRow    // in order of their ids
}

type occurrence struct {
	job  domain.JobID
	fire int64
	key  string
}

type attemptKey struct {
	id    domain.ExecutionID
	fence int64
}

type jobRow struct {
	id      domain.JobID
	state   domain.JobState
	specs   []*domain.JobSpec // by revision, from 1
	trigger domain.Trigger
	awaits  domain.ExecutionID // whose end sets the trigger (a fixed delay)
	periods []period
	// For the checks:
	stopped time.Duration      // when its pause or deletion was acknowledged; 0 = it is enabled
	lastRun domain.ExecutionID // that its fixed delay has planned
	lastEnd time.Time          // of that run, by the database's clock
	revived bool               // a run went on after its end
	holders int
	waiters []domain.ExecutionID // by fire time
}

// spec is the present revision's.
func (j *jobRow) spec() *domain.JobSpec { return j.specs[len(j.specs)-1] }

// of is the spec that an execution follows.
func (j *jobRow) of(e *domain.Execution) *domain.JobSpec { return j.specs[e.Revision-1].For(e.Part) }

type nodeRow struct {
	status    domain.NodeStatus
	connected func() bool
	sessions  func() int
}

// rules are broken on purpose by tests of the checks: a true one is not kept.
type rules struct {
	skipFence       bool // an older fence may finish
	skipOfferEnd    bool // a grant counts after the offer has ended
	grantEarly      bool // nodes grant before the execution's time, and that counts
	keepSlot        bool // a finished run keeps its slot
	skipTerm        bool // a claim needs no valid term
	skipUnique      bool // a fire time may have two rows
	skipSlot        bool // a slot is never full
	ackUnstored     bool // a result is acknowledged before it is stored
	retryLost       bool // what was lost is repeated, whoever forbade it
	stopFree        bool // what a stop has interrupted goes on, whoever forbade it
	skipLease       bool // nobody looks after leases of instances
	skipTrigger     bool // a fire is passed over without a row
	planTwice       bool // a trigger is not moved on at times
	keepPlanned     bool // a pause, edit or delete leaves what was planned
	startStopped    bool // what comes back from an instance is offered again, whatever became of its job
	skipLimit       bool // a limit is never full
	dropAlert       bool // some failures write no alert
	standStill      bool // the end of a run does not set a fixed delay
	believeAll      bool // nodes believe any leap of the clock
	outlive         bool // executors do not stop what their lease has left
	trustEnd        bool // executors take the end of a journal for whole, whatever became of the machine
	takeLease       bool // a renewal may leave less of a lease than an earlier one promised
	freeLingering   bool // the slot is free although the handler still runs
	dropShard       bool // the first shard is not made
	endEarly        bool // a parent ends before its last part has
	forgetParent    bool // the end of their parts does not move some parents
	startOld        bool // executors start one-step offers however old they are
	skipMisfire     bool // the misfire policy is not asked again
	keepTimer       bool // a timer that is claimed stays
	dropTimer       bool // some timers are claimed without a run
	dropMoved       bool // a pending timer that is moved is gone
	skipMaintenance bool // nodes do not look at maintenance
	keepMoved       bool // the run of a timer that is moved stays
	skipQueueBound  bool // any number of fires waits for a slot
	skipWaiting     bool // nodes load nothing that waits in the database
}

func newDatabase(clock func() time.Time) *database {
	d := &database{
		clock: clock, changed: func(*domain.Execution, *domain.Execution) {}, claimed: func(store.ClaimDueTriggersParams) {},
		jobs: map[domain.JobID]*jobRow{}, executions: map[domain.ExecutionID]*domain.Execution{}, byFire: map[occurrence]domain.ExecutionID{}, places: map[domain.ExecutionID]place{},
		attempts: map[attemptKey]*domain.Attempt{}, alerts: map[string]bool{}, instances: map[domain.InstanceID]*domain.Instance{}, boots: map[string]domain.InstanceID{},
		lapses: map[domain.InstanceID]int{},
	}
	for p := range d.leases {
		d.leases[p].Partition = p
	}
	return d
}

func (d *database) createJob(j domain.Job, next time.Time) {
	d.jobs[j.ID] = &jobRow{id: j.ID, state: domain.JobEnabled, specs: []*domain.JobSpec{&j.Spec}, periods: []period{{revision: 1, from: d.clock()}}, trigger: domain.Trigger{
		JobID: j.ID, TenantID: j.TenantID, Partition: j.Partition, Executor: j.Executor, Revision: 1, NextFireAt: next,
	}}
	d.jobOrder = append(d.jobOrder, j.ID)
	slices.Sort(d.jobOrder)
}

// insert enters an execution; false: its occurrence has a row.
func (d *database) insert(e domain.Execution) bool {
	o := occurrence{e.JobID, e.FireAt.UnixMilli(), e.OccurrenceKey}
	if _, taken := d.byFire[o]; taken && !d.rules.skipUnique {
		return false
	}
	d.byFire[o] = e.ID
	row := e
	d.executions[e.ID] = &row
	d.order = append(d.order, e.ID)
	d.alive = append(d.alive, e.ID)
	if domain.MissedUntold(&row) {
		d.alert(alertKey(domain.AlertRunMissed, &row))
	}
	d.changed(nil, &row)
	return true
}

// create enters a run that somebody asked for.
func (d *database) create(e domain.Execution) (domain.Execution, bool) {
	if !d.insert(e) {
		return *d.executions[d.byFire[occurrence{e.JobID, e.FireAt.UnixMilli(), e.OccurrenceKey}]], false
	}
	return e, true
}

// claim is ClaimDueTriggers.
func (d *database) claim(p store.ClaimDueTriggersParams) (store.ClaimedTriggers, error) {
	now := d.clock()
	out := store.ClaimedTriggers{Now: now, NextFireAt: domain.Never}
	if err := checkClock(now, p.Latest); err != nil {
		return out, err
	}
	var due []*jobRow
	for _, id := range d.jobOrder {
		j := d.jobs[id]
		if !slices.ContainsFunc(p.Partitions, func(h domain.PartitionTerm) bool { return h.Partition == j.trigger.Partition }) {
			continue
		}
		if slices.Contains(p.Except, j.trigger.TenantID) || slices.Contains(p.ExceptExecutors, j.trigger.Executor) {
			continue
		}
		if j.trigger.NextFireAt.After(now.Add(p.Horizon)) {
			if j.trigger.NextFireAt.Before(out.NextFireAt) {
				out.NextFireAt = j.trigger.NextFireAt
			}
			continue
		}
		due = append(due, j)
	}
	for _, j := range due {
		if !d.holds(p.Partitions, j.trigger.Partition, now) && !d.rules.skipTerm {
			return store.ClaimedTriggers{Now: now}, domain.Errorf(domain.CodeStaleTerm, "partition %d is not held any more", j.trigger.Partition)
		}
	}
	for _, j := range due {
		out.Executions = append(out.Executions, d.planOne(now, j, p.Plan)...)
		if j.trigger.NextFireAt.Before(out.NextFireAt) {
			out.NextFireAt = j.trigger.NextFireAt
		}
	}
	out.Triggers = len(due)
	if len(due) > 0 {
		p.Partitions = slices.DeleteFunc(slices.Clone(p.Partitions), func(h domain.PartitionTerm) bool {
			return !slices.ContainsFunc(due, func(j *jobRow) bool { return j.trigger.Partition == h.Partition })
		})
		d.claimed(p)
	}
	return out, nil
}

// planOne plans a trigger, and returns what was inserted.
func (d *database) planOne(now time.Time, j *jobRow, plan store.PlanFunc) (inserted []domain.Execution) {
	planned := plan(now, j.trigger, j.spec())
	var taken *domain.Execution // the awaited run, when its fire time has a row
	for i, e := range planned.Executions {
		if d.rules.skipTrigger && i == 0 && e.FireAt.UnixMilli()%7 == 0 {
			continue
		}
		e.TenantID, e.JobID, e.Partition = j.trigger.TenantID, j.id, j.trigger.Partition
		if d.insert(e) {
			inserted = append(inserted, e)
		} else if e.ID == planned.Awaits {
			taken = &e
		}
	}
	if d.rules.planTwice && now.UnixMilli()%5 == 0 {
		return inserted
	}
	if planned.Awaits != 0 {
		j.awaits = planned.Awaits
	}
	j.trigger.NextFireAt, j.trigger.LastFireAt = planned.NextFireAt, planned.LastFireAt
	if taken != nil { // as passTaken of gormstore/engine
		if taken.FireAt.After(now) {
			now = taken.FireAt
		}
		d.rearm(now, j)
	}
	return inserted
}

func (d *database) holds(held []domain.PartitionTerm, partition int, now time.Time) bool {
	for _, h := range held {
		if h.Partition == partition {
			l := &d.leases[partition]
			return l.Term == h.Term && l.Until.After(now)
		}
	}
	return false
}

// find returns an execution's row, which the caller may read only.
func (d *database) find(id domain.ExecutionID) *domain.Execution { return d.executions[id] }

// toStored cuts instants as the database keeps them.
func toStored(e *domain.Execution) {
	for _, t := range []*time.Time{&e.NotBefore, &e.WakeAt, &e.ExpireAt, &e.Deadline, &e.OfferedAt, &e.GrantedAt, &e.StartedAt, &e.FinishedAt, &e.ReturnedAt} {
		*t = t.Truncate(time.Millisecond)
	}
}

// living returns what may still move, oldest first, and forgets the rest.
func (d *database) living() []domain.ExecutionID {
	d.alive = slices.DeleteFunc(d.alive, func(id domain.ExecutionID) bool { return !mayMove(d.executions[id]) })
	return d.alive
}

// checkClock refuses to decide at a time that the caller does not believe.
func checkClock(now time.Time, latest func() time.Time) error {
	if latest != nil && now.After(latest()) {
		return domain.Errorf(domain.CodeClockJump, "it is later than is believed")
	}
	return nil
}

func alertKey(kind domain.AlertKind, e *domain.Execution) string {
	return string(kind) + ":" + e.ID.String() + ":" + strconv.FormatInt(e.Fence, 10)
}

// alert writes an event, unless its key is there.
func (d *database) alert(key string) {
	if !d.alerts[key] {
		d.alerts[key], d.alertOrder = true, append(d.alertOrder, key)
	}
}

func (d *database) recordAlerts(events []domain.AlertEvent) {
	for _, e := range events {
		d.alerts[e.DedupeKey] = true
	}
}

// mayMove reports whether more than a late result can move an execution.
func mayMove(e *domain.Execution) bool { return !e.State.Terminal() || e.Lingers }
