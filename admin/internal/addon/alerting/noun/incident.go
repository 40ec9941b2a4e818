package noun

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// IncidentState says whether somebody has to do something.
//
//	events ─▶ open ── acknowledge ─▶ acknowledged
//	           ▲ └───── recovery ──┬──────┘
//	           └── event soon ── resolved ── time ─▶ closed (Live is false)
type IncidentState uint8

const (
	IncidentOpen         IncidentState = 1
	IncidentAcknowledged IncidentState = 2 // somebody is at it: nothing is told until it is over
	IncidentResolved     IncidentState = 3
)

// IncidentStates are all of them.
var IncidentStates = []IncidentState{IncidentOpen, IncidentAcknowledged, IncidentResolved}

func (s IncidentState) String() string {
	switch s {
	case IncidentOpen:
		return "open"
	case IncidentAcknowledged:
		return "acknowledged"
	default:
		return "resolved"
	}
}

// Bounds of an incident.
const (
	// MaxIncidentJobs is how many jobs it lists; MaxIncidentNames of them by name.
	MaxIncidentJobs  = 1000
	MaxIncidentNames = 20
	// MaxIncidentEvents is how many of its events keep a row.
	MaxIncidentEvents = 1000
)

// Incident is what is told as one thing: the events of one kind of one job, of an
// executor when many of its jobs are concerned, or of the platform (ADR 0081).
type Incident struct {
	ID       domain.IncidentID
	TenantID domain.TenantID
	// Key is the same for all events that belong together. At most one incident
	// of a key is live.
	Key      string
	Live     bool // events can still join it
	Kind     domain.AlertKind
	Rule     domain.AlertRuleID // that it was opened by; 0 = none
	Severity Severity
	Executor domain.ExecutorID // 0: the platform's
	Job      domain.JobID      // 0: it is about more than one job
	// Parent is the one that it became a part of, without having been told.
	Parent domain.IncidentID
	State  IncidentState

	OpenedAt, LastAt           time.Time // of its first and its newest event
	ResolvedAt, AcknowledgedAt time.Time
	ResolvedBy, AcknowledgedBy string // a user; empty: it recovered
	EscalatedAt                time.Time

	// Events is how many there were, Kept how many of them have a row, Reopened
	// how often it came back soon after it was over.
	Events, Kept, Reopened int64
	FirstEvent, LastEvent  int64
	Jobs                   []IncidentJob // newest last
	Detail                 string        // of the newest event that has one

	// Told is how many messages there were, each to all receivers, ToldAt when
	// the last one was; ToldEvents, ToldState and ToldEvent are what it said.
	Told       int64
	ToldAt     time.Time
	ToldEvents int64
	ToldState  IncidentState
	ToldEvent  int64
	// Undelivered is how many messages to single receivers were given up. Only reads fill it.
	Undelivered int64
	// WakeAt is when it is to be looked at.
	WakeAt time.Time
}

// IncidentJob is a job that an incident is about.
type IncidentJob struct {
	ID     domain.JobID `json:"id"`
	Name   string       `json:"name,omitempty"` // of the first MaxIncidentNames
	Events int64        `json:"events"`
}

// IncidentKey names the incident of what belongs together.
type IncidentKey struct {
	Tenant domain.TenantID
	Key    string
}

// Receiver is who is told of an incident.
type Receiver struct {
	Channel string // kind of the channel
	Target  string // address or URL; the channel's name
	// ChannelID is the tenant's alert channel; 0: an address of the job or of the operators.
	ChannelID domain.ChannelID
	Job       domain.JobID // whose settings name it; 0 = no job's
	Told      bool         // by at least one message
}

// Key is the same for what reaches the same place by the same means.
func (r *Receiver) Key() string {
	at := r.Channel + "\x00" + r.Target
	if r.ChannelID != 0 { // whatever its name and its addresses are now
		at = "channel " + r.ChannelID.String()
	}
	sum := sha256.Sum256([]byte(at))
	return hex.EncodeToString(sum[:16])
}

// TellPolicy says how often an incident is told.
type TellPolicy struct {
	// Gather is how long the first message waits for further events.
	Gather time.Duration
	// Throttle is the least time between the first two messages. It is four times
	// as long after each further one, up to Repeat.
	Throttle time.Duration
	// Repeat is when an outage is told again although nothing new has happened.
	Repeat time.Duration
	// Reopen is how long after its end an incident goes on with the next event.
	Reopen time.Duration
	// Forget ends an incident that heard of nothing for so long, without a word.
	Forget time.Duration
}

// DefaultTellPolicy is how incidents are told that nobody has set anything for.
var DefaultTellPolicy = TellPolicy{
	Gather: time.Second, Throttle: 5 * time.Minute, Repeat: 4 * time.Hour, Reopen: 10 * time.Minute, Forget: 7 * 24 * time.Hour,
}

// pause is the least time between the last message and the next one.
func (p *TellPolicy) pause(told int64) time.Duration {
	wait := p.Throttle
	for ; told > 1 && wait < p.Repeat; told-- {
		wait *= 4
	}
	return min(wait, max(p.Repeat, p.Throttle))
}

// Lasting reports whether what has happened goes on until it is over, and is not
// told by further events: nobody counts the seconds of an outage.
func (i *Incident) Lasting() bool {
	return i.Kind == domain.AlertNoExecutor || i.Kind == domain.AlertJobAbsent
}

// Momentary reports whether nothing has to come to an end: it is over, without a
// word, when it was told. Only products that keep it open hear when it closes.
// The delay of a scheduler is known when it has caught up. A lost instance does not come
// back.
func (i *Incident) Momentary() bool {
	return i.Kind == domain.AlertRunSucceeded || i.Kind == domain.AlertSchedulerBehind || i.Kind == domain.AlertInstanceGone
}

// Add counts an event. missed runs count as many.
func (i *Incident) Add(e *domain.AlertEvent, jobName string, now time.Time) {
	if i.State == IncidentResolved && i.Events > 0 {
		i.Reopened++
		i.ResolvedAt, i.ResolvedBy, i.AcknowledgedAt, i.AcknowledgedBy = time.Time{}, "", time.Time{}, ""
	}
	if i.State != IncidentAcknowledged {
		i.State = IncidentOpen
	}
	if i.FirstEvent == 0 {
		i.FirstEvent, i.OpenedAt = e.ID, now
	}
	n := int64(max(1, e.Missed))
	i.Events += n
	i.LastEvent, i.LastAt = e.ID, now
	if e.Detail != "" {
		i.Detail = e.Detail
	}
	if e.JobID != 0 {
		i.addJob(IncidentJob{e.JobID, jobName, n})
	}
}

func (i *Incident) addJob(j IncidentJob) {
	if at := slices.IndexFunc(i.Jobs, func(o IncidentJob) bool { return o.ID == j.ID }); at >= 0 {
		i.Jobs[at].Events += j.Events
		return
	}
	if len(i.Jobs) >= MaxIncidentJobs {
		return
	}
	if len(i.Jobs) >= MaxIncidentNames {
		j.Name = ""
	}
	i.Jobs = append(i.Jobs, j)
}

// Absorb makes an incident that nobody was told of a part of this one.
func (i *Incident) Absorb(part *Incident, now time.Time) {
	if i.FirstEvent == 0 || part.OpenedAt.Before(i.OpenedAt) {
		i.FirstEvent, i.OpenedAt = part.FirstEvent, part.OpenedAt
	}
	if part.LastAt.After(i.LastAt) {
		i.LastAt, i.LastEvent = part.LastAt, part.LastEvent
	}
	i.Events += part.Events
	for _, j := range part.Jobs {
		i.addJob(j)
	}
	part.Parent, part.State, part.ResolvedAt = i.ID, IncidentResolved, now
	part.ToldEvents, part.ToldState = part.Events, IncidentResolved
	part.close()
}

// close lets no further event join it.
func (i *Incident) close() {
	if i.Live {
		i.Live, i.Key = false, i.Key+"/"+strconv.FormatInt(int64(i.ID), 10)
	}
	i.WakeAt = time.Time{}
}

// Resolve ends it. by is a user, or empty when it has recovered.
func (i *Incident) Resolve(at time.Time, by string) {
	i.State, i.ResolvedAt, i.ResolvedBy = IncidentResolved, at, by
}

// Acknowledge notes that somebody is at it.
func (i *Incident) Acknowledge(now time.Time, by string) error {
	if i.State == IncidentResolved {
		return domain.Errorf(domain.CodeConflict, "incident %s is over since %s: there is nothing to acknowledge", i.ID, i.ResolvedAt.UTC().Format(time.RFC3339))
	}
	if i.State == IncidentOpen {
		i.State, i.AcknowledgedAt, i.AcknowledgedBy = IncidentAcknowledged, now, by
	}
	return nil
}

// ResolveBy ends it by the word of a user.
func (i *Incident) ResolveBy(now time.Time, by string) error {
	if i.State != IncidentResolved {
		i.Resolve(now, by)
		if i.Live {
			i.WakeAt = now // it is to be told
		}
	}
	return nil
}

// Forgive notes that what happened need not be told.
func (i *Incident) Forgive() { i.ToldEvents, i.ToldState = i.Events, i.State }

// forget ends it without a word.
func (i *Incident) forget(now time.Time) {
	if i.State != IncidentResolved {
		i.Resolve(now, "")
	}
	i.ToldEvents, i.ToldState = i.Events, IncidentResolved
	i.close()
}

// NextTell is when all receivers are to be told next, Never if there is nothing to
// tell. An end is told at once to those who know of the beginning; everything else
// is told so late that it never is a flood, and nothing that happened stays untold.
func (i *Incident) NextTell(p *TellPolicy) time.Time {
	switch {
	case i.Told == 0 && i.Events > i.ToldEvents:
		return i.OpenedAt.Add(p.Gather)
	case i.State == IncidentAcknowledged:
		return domain.Never
	case i.State == IncidentResolved && i.ToldState != IncidentResolved:
		return i.ResolvedAt
	case i.Events > i.ToldEvents:
		return i.ToldAt.Add(p.pause(i.Told))
	case i.State == IncidentOpen && i.Lasting():
		return i.ToldAt.Add(p.Repeat)
	}
	return domain.Never
}

// Tell notes that all receivers are told now how it stands.
func (i *Incident) Tell(now time.Time) {
	i.Told++
	i.ToldAt, i.ToldEvents, i.ToldState, i.ToldEvent = now, i.Events, i.State, i.LastEvent
}

// closesAt is when a resolved incident closes: one that comes and goes stays what
// it is, so that it is told ever less often.
func (i *Incident) closesAt(p *TellPolicy) time.Time {
	at := i.ResolvedAt.Add(p.Reopen)
	if told := i.ToldAt.Add(p.pause(i.Told)); told.After(at) {
		return told
	}
	return at
}

// Bounds of the time between two looks whether an incident is over.
const (
	checkSoonest = 2 * time.Second
	checkLatest  = time.Minute
)

// Wishes are what decides beside the incident when it is to be looked at.
type Wishes struct {
	Fresh      bool      // some receivers were not told yet
	Hold       time.Time // nothing is told before; zero: nothing keeps it back
	EscalateAt time.Time // when others are to be told; zero: never
	Unsent     bool      // it does not close: what follows must not overtake a message that is on its way
}

// Schedule says when it is to be looked at next; it closes what is over.
func (i *Incident) Schedule(now time.Time, p *TellPolicy, w Wishes) {
	if !i.Live {
		i.WakeAt = time.Time{}
		return
	}
	next := i.NextTell(p)
	if w.Fresh && i.State == IncidentOpen {
		next = earliest(next, now.Add(p.Gather))
	}
	if !w.EscalateAt.IsZero() && i.State == IncidentOpen {
		next = earliest(next, w.EscalateAt)
	}
	if w.Hold.After(next) && next.Before(domain.Never) {
		next = earliest(w.Hold, now.Add(checkLatest)) // a silence may be ended before its time
	}
	if i.State == IncidentResolved {
		if next.Equal(domain.Never) {
			next = i.closesAt(p)
			if !next.After(now) {
				if !w.Unsent {
					i.close()
					return
				}
				next = now.Add(checkLatest)
			}
		}
	} else {
		if now.Sub(i.LastAt) >= p.Forget {
			i.forget(now)
			return
		}
		next = earliest(next, now.Add(min(max(now.Sub(i.LastAt)/50, checkSoonest), checkLatest)))
	}
	i.WakeAt = next
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Names are those of its jobs that it knows, and how many more jobs there are.
func (i *Incident) Names() (names []string, more int) {
	for _, j := range i.Jobs {
		if j.Name != "" {
			names = append(names, j.Name)
		}
	}
	return names, len(i.Jobs) - len(names)
}

// AlertClass is what kinds of one executor have in common: the same cause.
type AlertClass string

const (
	ClassUnavailable AlertClass = "unavailable" // no instance runs what is due, or it died
	ClassFailed      AlertClass = "failed"
	ClassTimedOut    AlertClass = "timed_out"
)

// ClassOf is empty for what is not about runs.
func ClassOf(e *domain.AlertEvent) AlertClass {
	switch e.Kind {
	case domain.AlertNoExecutor, domain.AlertRunLost, domain.AlertRunMissed:
		return ClassUnavailable
	case domain.AlertRunFailed:
		if e.Reason == domain.ReasonSendFailed {
			return ClassUnavailable
		}
		return ClassFailed
	case domain.AlertRunTimedOut:
		return ClassTimedOut
	case domain.AlertRunLate, domain.AlertRunLong, domain.AlertJobAbsent, domain.AlertRunsPileUp, domain.AlertRunSucceeded:
		return AlertClass(e.Kind)
	}
	return ""
}

// AlertCause is what lies behind the events of many jobs. Each cause has one incident,
// which collects the events as its parts. An error of a handler has none.
type AlertCause string

const (
	// ByExecutorDown: no instance of the executor is online, if that is so.
	ByExecutorDown AlertCause = "executor_down"
	// BySchedulerBehind: no admin node did in time what was to be done.
	BySchedulerBehind AlertCause = "scheduler_behind"
)

// CauseOf is empty for an event without a cause outside of its job.
func CauseOf(e *domain.AlertEvent) AlertCause {
	switch e.Kind {
	case domain.AlertNoExecutor, domain.AlertRunLate, domain.AlertJobAbsent:
		return ByExecutorDown
	case domain.AlertRunMissed:
		switch e.Reason {
		case domain.ReasonMisfire, domain.ReasonMisfireWindow, domain.ReasonMisfireCap, domain.ReasonCoalesced:
			return BySchedulerBehind
		}
		return ByExecutorDown
	case domain.AlertRunLost:
		switch e.Reason {
		case domain.ReasonLeaseLost:
			return BySchedulerBehind
		case domain.ReasonRollback:
			return ""
		}
		return ByExecutorDown
	case domain.AlertRunFailed:
		if e.Reason == domain.ReasonSendFailed {
			return ByExecutorDown
		}
	}
	return ""
}

// Shows reports whether the event shows by itself that the executor is down, if no
// instance is online: work was lost, or could not start.
func Shows(e *domain.AlertEvent) bool {
	switch e.Kind {
	case domain.AlertRunMissed:
		return e.Reason == domain.ReasonNoExecutor
	case domain.AlertRunLost, domain.AlertRunFailed:
		return CauseOf(e) == ByExecutorDown
	}
	return false
}

// SchedulerIncidentKey names what a tenant's runs suffer from a late scheduler.
const SchedulerIncidentKey = "scheduler/behind"

// JobIncidentKey names what happens to one job.
func JobIncidentKey(job domain.JobID, kind domain.AlertKind) string {
	return "job/" + job.String() + "/" + string(kind)
}

// ExecutorIncidentKey names what happens to an executor.
func ExecutorIncidentKey(executor domain.ExecutorID, class AlertClass) string {
	return "executor/" + executor.String() + "/" + string(class)
}

// PlatformIncidentKey names what the operators are told.
func PlatformIncidentKey(e *domain.AlertEvent) string {
	return strings.Join([]string{"platform", string(e.Kind), e.Executor.String(), e.JobID.String()}, "/")
}
