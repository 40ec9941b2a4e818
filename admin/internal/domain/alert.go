package domain

import "time"

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
	AlertTest       AlertKind = "test"
	// These are about the platform and not about a job: TenantID and JobID are
	// 0, and the operators are told.
	AlertClockJump AlertKind = "clock_jump"
	AlertRollback  AlertKind = "db_rollback"
	// AlertFlapping is about an executor: the operators are told, and its
	// tenant sees the delivery.
	AlertFlapping AlertKind = "executor_flapping"
	// AlertSetAside is about rows that cannot be read, decided or planned: the
	// operators are told once an hour and job.
	AlertSetAside AlertKind = "row_set_aside"
)

// Missed runs of a job are told together: an outage of an hour may have thousands.
const (
	MissedGather = 10 * time.Second
	MissedRepeat = time.Hour
)

// toldAsMissed reports whether somebody has to know that a run was missed for
// this reason: not where he stopped the job himself.
func toldAsMissed(reason Reason) bool {
	switch reason {
	case ReasonPaused, ReasonDeleted:
		return false
	}
	return true
}

// MissedUntold reports whether the execution, which is new, was missed and has
// to be told: no move will tell of it.
func (e *Execution) MissedUntold() bool {
	return e.State == Missed && !e.IsPart() && toldAsMissed(e.Reason)
}

// Platform reports whether an event is one for the operators.
func (k AlertKind) Platform() bool {
	return k == AlertClockJump || k == AlertRollback || k == AlertFlapping || k == AlertSetAside
}

// AlertEvent is one thing to tell, written in the same transaction as the
// change it tells about. Alerting turns it into deliveries.
type AlertEvent struct {
	ID       int64
	TenantID TenantID
	Kind     AlertKind
	JobID    JobID
	Revision int64
	// ExecutionID is 0 for events that are not about one run.
	ExecutionID ExecutionID
	// DedupeKey makes the event unique: a second insert with the same key is
	// ignored. For a run it is kind, execution and fence.
	DedupeKey string
	// Detail says what happened, in English, where the kind does not tell all.
	Detail string
	// Missed is how many runs an AlertRunMissed stands for, of which
	// ExecutionID is the last one; 0 for all others.
	Missed    int
	CreatedAt time.Time
}

// Delivery is one telling of one event on one channel to one target.
type Delivery struct {
	ID       int64
	TenantID TenantID
	EventID  int64
	Event    AlertEvent
	Channel  string // "email", "webhook"
	Target   string // address or URL
	State    DeliveryState
	Attempts int
	// NextAt is when it is tried (again).
	NextAt      time.Time
	LastError   string
	CreatedAt   time.Time
	DeliveredAt time.Time
}

type DeliveryState uint8

const (
	DeliveryPending   DeliveryState = 1
	DeliveryDelivered DeliveryState = 2
	DeliveryFailed    DeliveryState = 3 // given up
)

func (s DeliveryState) String() string {
	switch s {
	case DeliveryPending:
		return "pending"
	case DeliveryDelivered:
		return "delivered"
	default:
		return "failed"
	}
}
