package domain

import (
	"fmt"
	"time"
)

// AlertKind is what happened that somebody has to know.
type AlertKind string

const (
	AlertRunFailed   AlertKind = "run_failed"
	AlertRunTimedOut AlertKind = "run_timed_out"
	AlertRunLost     AlertKind = "run_lost"
	// AlertRunMissed is told once for all runs of a job that never started
	// within MissedGather, and then at most once in MissedRepeat.
	AlertRunMissed  AlertKind = "run_missed"
	AlertNoExecutor AlertKind = "no_executor"
	// AlertRunSucceeded is written only for runs that a rule wants to hear of
	// (AlertRuleSpec.WantsSuccess).
	AlertRunSucceeded AlertKind = "run_succeeded"
	AlertTest         AlertKind = "test"
	// AlertRecovered is what a message says of an incident that is over; no event
	// has it.
	AlertRecovered AlertKind = "recovered"
	// These are found by a tenant's rules.
	AlertRunLate   AlertKind = "run_late"   // it has not started, a while after its time
	AlertRunLong   AlertKind = "run_long"   // it runs for longer than it should
	AlertJobAbsent AlertKind = "job_absent" // no run of the job has succeeded for a while
	// AlertRunsPileUp is written once an hour and job: its runs take longer than its
	// interval, and wait for each other. Its incident is over when no run waits.
	AlertRunsPileUp AlertKind = "runs_pile_up"
	// AlertSchedulerBehind is a kind of incidents and not of events. Such an incident
	// collects a tenant's runs that were planned too late, or lost a lease that no node
	// renewed.
	AlertSchedulerBehind AlertKind = "scheduler_behind"
	// These are about the platform and not about a job: TenantID and JobID are
	// 0, and the operators are told.
	AlertClockJump AlertKind = "clock_jump"
	AlertRollback  AlertKind = "db_rollback"
	// AlertFlapping is about an executor: the operators are told, and its
	// tenant sees the delivery.
	AlertFlapping AlertKind = "executor_flapping"
	// AlertInstanceGone is about instances of an executor whose leases ran out without a new
	// process of their names. Operators and tenant get it.
	AlertInstanceGone AlertKind = "instance_gone"
	// AlertSetAside is about rows that cannot be read, decided or planned: the
	// operators are told once an hour and job.
	AlertSetAside AlertKind = "row_set_aside"
	// AlertOverload is about a node that is late because more is due than it can
	// send out: the operators are told once an hour.
	AlertOverload AlertKind = "overload"
	// AlertStalled is about a run that does not start although an instance has room for it,
	// which is a fault of Carillon: the operators are told once an hour.
	AlertStalled AlertKind = "stalled"
)

// Missed runs of a job are told together: an outage of an hour may have thousands.
// Incidents gather as well, for a second, and tell of more after MissedRepeat at the
// earliest.
const (
	MissedGather = 500 * time.Millisecond
	MissedRepeat = 5 * time.Minute
)

// An alert of a lost instance waits for LostFor for a process of its name. LostWindow later
// the instance is too old for an alert.
const (
	LostFor    = time.Minute
	LostWindow = 10 * time.Minute
)

// toldAsMissed reports whether somebody has to know that a run was missed for
// this reason: not where a maintenance was announced.
func toldAsMissed(reason Reason) bool { return reason != ReasonMaintenance }

// MissedUntold reports whether the execution, which is new, was missed and has
// to be told: no move will tell of it.
func MissedUntold(e *Execution) bool {
	return e.State == Missed && !e.IsPart() && toldAsMissed(e.Reason)
}

// Flapping is an instance name whose processes come and go.
type Flapping struct {
	Tenant   TenantID
	Executor ExecutorID
	Name     string // of the executor
	Instance string
	Strikes  int           // so many short lives
	Within   time.Duration // in so much time
}

// Platform reports whether an event is one for the operators.
func (k AlertKind) Platform() bool {
	return k == AlertClockJump || k == AlertRollback || k == AlertFlapping || k == AlertInstanceGone || k == AlertSetAside || k == AlertOverload || k == AlertStalled
}

const (
	pileMessage    = "runs take longer than the interval, %d wait"
	discardMessage = "%d runs wait for earlier ones, as many as may: further fires are discarded"
)

// PileMessage is the detail of an AlertRunsPileUp: so many runs wait. full: the queue is
// at its bound.
func PileMessage(waiting int64, full bool) string {
	if full {
		return fmt.Sprintf(discardMessage, waiting)
	}
	return fmt.Sprintf(pileMessage, waiting)
}

// ReadPileMessage reads a text of PileMessage. ok is false for any other text.
func ReadPileMessage(message string) (waiting int64, full, ok bool) {
	for _, full := range []bool{false, true} {
		format := pileMessage
		if full {
			format = discardMessage
		}
		if _, err := fmt.Sscanf(message, format, &waiting); err == nil && message == PileMessage(waiting, full) {
			return waiting, full, true
		}
	}
	return 0, false, false
}

// PileKey is the dedupe key of an AlertRunsPileUp: one for each job and hour.
func PileKey(job JobID, now time.Time) string {
	return fmt.Sprintf("%s:%s:%d", AlertRunsPileUp, job, now.Unix()/3600)
}

// AlertEvent is one thing to tell, written in the same transaction as the
// change it tells about. Alerting counts it in an Incident, which is told.
type AlertEvent struct {
	ID       int64     `json:"id,omitzero"`
	TenantID TenantID  `json:"tenant,omitzero"`
	Kind     AlertKind `json:"kind"`
	JobID    JobID     `json:"job,omitzero"`
	Revision int64     `json:"revision,omitzero"`
	// ExecutionID is 0 for events that are not about one run.
	ExecutionID ExecutionID `json:"run,omitzero"`
	// DedupeKey makes the event unique: a reader of the outbox ignores a second one with
	// the same key. For a run it is kind, execution and fence. An AlertRunMissed has none in
	// the outbox: a reader adds up those of one job.
	DedupeKey string `json:"key,omitzero"`
	// Reason is that of the run's end; empty for events that are not about one.
	Reason Reason `json:"reason,omitzero"`
	// Executor is whom it is about, where the job does not tell.
	Executor ExecutorID `json:"executor,omitzero"`
	// Rule is the one that found it; 0 = none did.
	Rule AlertRuleID `json:"rule,omitzero"`
	// Incident is what it was counted in; 0 = none, or not yet.
	Incident IncidentID `json:"incident,omitzero"`
	// Detail says what happened, in English, where the kind does not tell all.
	Detail string `json:"detail,omitzero"`
	// Missed is how many runs an AlertRunMissed or AlertRunSucceeded stands for, of
	// which ExecutionID is the last one; 0: for one.
	Missed    int       `json:"missed,omitzero"`
	CreatedAt time.Time `json:"at"`
}

// SuccessWish says how those runs of a job that have succeeded are told.
type SuccessWish uint8

// The wishes. The greatest one decides.
const (
	SuccessUnwanted SuccessWish = iota
	SuccessCounted              // those of one transaction are one event
	SuccessEach                 // each one is an event: a rule reads what it says
)
