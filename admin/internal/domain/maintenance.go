package domain

import (
	"cmp"
	"slices"
	"time"
)

// MaintenanceMode says what becomes of what is due while maintenance is on. The
// values are stored.
type MaintenanceMode string

const (
	// MaintenanceWait: nothing starts. What falls due starts when it is over.
	MaintenanceWait MaintenanceMode = "wait"
	// MaintenanceSkip: nothing starts. Fire times of schedules are excluded, and
	// what somebody asked for waits.
	MaintenanceSkip MaintenanceMode = "skip"
	// MaintenanceContinue: it is announced, and everything goes on.
	MaintenanceContinue MaintenanceMode = "continue"
)

// Valid reports whether m is one of the modes.
func (m MaintenanceMode) Valid() bool {
	return m == MaintenanceWait || m == MaintenanceSkip || m == MaintenanceContinue
}

// MaintenanceScope is what is under maintenance.
type MaintenanceScope struct {
	Tenant   TenantID   // 0 = the whole cluster
	Executor ExecutorID // 0 = all of the tenant
}

// Kind names the scope in words: cluster, tenant or executor.
func (s MaintenanceScope) Kind() string {
	switch {
	case s.Tenant == 0:
		return "cluster"
	case s.Executor == 0:
		return "tenant"
	}
	return "executor"
}

// Maintenance is a time in which a scope is under maintenance (docs/adr/0077).
type Maintenance struct {
	ID int64
	MaintenanceScope
	Mode   MaintenanceMode
	Reason string
	By     string // who switched it on
	Since  time.Time
	// EndsAt is when it is over, or was; Never: it is to be switched off.
	EndsAt  time.Time
	EndedBy string // who switched it off; empty: nobody, or not yet
}

// MaxMaintenanceReason bounds Reason, in characters.
const MaxMaintenanceReason = 500

// At reports whether the instant lies in it.
func (m *Maintenance) At(at time.Time) bool { return !at.Before(m.Since) && at.Before(m.EndsAt) }

// Message says in a row why a run waits, or what excluded it.
func (m *Maintenance) Message() string {
	text := "maintenance of the " + m.Kind()
	if m.Reason != "" {
		text += ": " + m.Reason
	}
	return text
}

// admits reports whether a run may start all the same: a person asked for it when
// the maintenance was on.
func (m *Maintenance) admits(e *Execution) bool {
	return (e.Cause == CauseManual || e.Cause == CauseRetry) && !e.PlannedAt.Before(m.Since)
}

// MaintenanceKept is how long maintenance that is over is remembered where runs are
// planned and started: fire times that fell into it may not have been planned yet.
const MaintenanceKept = 24 * time.Hour

// Maintenances are those that are on, and those that were a short time ago.
type Maintenances map[MaintenanceScope][]Maintenance

// on calls yield with each one that an executor of a tenant is under, or was: its
// own, its tenant's, the cluster's.
func (m Maintenances) on(tenant TenantID, executor ExecutorID, yield func(*Maintenance) (more bool)) {
	if len(m) == 0 {
		return
	}
	for _, scope := range []MaintenanceScope{{tenant, executor}, {Tenant: tenant}, {}} {
		list := m[scope]
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}

// Holds returns the maintenance for which a run must not start now; nil: it may.
// Of several it is the one that lasts longest.
func (m Maintenances) Holds(now time.Time, e *Execution) (longest *Maintenance) {
	m.on(e.TenantID, e.Executor, func(x *Maintenance) bool {
		if x.Mode != MaintenanceContinue && x.At(now) && !x.admits(e) && (longest == nil || x.EndsAt.After(longest.EndsAt)) {
			longest = x
		}
		return true
	})
	return longest
}

// Covers returns the maintenance of that mode in which a fire time of an executor
// lies; nil: none.
func (m Maintenances) Covers(mode MaintenanceMode, tenant TenantID, executor ExecutorID, fireAt time.Time) (found *Maintenance) {
	m.on(tenant, executor, func(x *Maintenance) bool {
		if x.Mode == mode && x.At(fireAt) {
			found = x
		}
		return found == nil
	})
	return found
}

// Skips returns the maintenance that excludes a run of a schedule which has not
// begun; nil: none.
func (m Maintenances) Skips(e *Execution) *Maintenance {
	if len(m) == 0 || e.Cause != CauseSchedule && e.Cause != CauseMisfire || e.State != Due || e.begun() || e.IsPart() {
		return nil
	}
	return m.Covers(MaintenanceSkip, e.TenantID, e.Executor, e.FireAt)
}

// Waited is how much of the time between two instants an executor was under
// maintenance for which fire times wait, as far as it is known: from the first to
// the last instant of it.
func (m Maintenances) Waited(tenant TenantID, executor ExecutorID, from, to time.Time) time.Duration {
	var first, last time.Time
	m.on(tenant, executor, func(x *Maintenance) bool {
		since, end := x.Since, x.EndsAt
		if since.Before(from) {
			since = from
		}
		if end.After(to) {
			end = to
		}
		if x.Mode == MaintenanceWait && since.Before(end) {
			if first.IsZero() || since.Before(first) {
				first = since
			}
			if end.After(last) {
				last = end
			}
		}
		return true
	})
	return last.Sub(first)
}

// HeldScopes are those whose schedules and timers are not planned, because what is
// due waits for the end of maintenance.
type HeldScopes struct {
	All       bool
	Tenants   []TenantID
	Executors []ExecutorID // of other tenants
}

// Held returns the scopes of which nothing is to be planned now, in order.
func (m Maintenances) Held(now time.Time) (out HeldScopes) {
	for scope, list := range m {
		if !slices.ContainsFunc(list, func(x Maintenance) bool { return x.Mode == MaintenanceWait && x.At(now) }) {
			continue
		}
		switch {
		case scope.Tenant == 0:
			out.All = true
		case scope.Executor == 0:
			out.Tenants = append(out.Tenants, scope.Tenant)
		default:
			out.Executors = append(out.Executors, scope.Executor)
		}
	}
	slices.Sort(out.Tenants)
	slices.Sort(out.Executors)
	return out
}

// Stopping returns the scopes of which nothing starts now.
func (m Maintenances) Stopping(now time.Time) (out []MaintenanceScope) {
	for scope, list := range m {
		if slices.ContainsFunc(list, func(x Maintenance) bool { return x.Mode != MaintenanceContinue && x.At(now) }) {
			out = append(out, scope)
		}
	}
	slices.SortFunc(out, func(a, b MaintenanceScope) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Executor, b.Executor))
	})
	return out
}

// Ended is when the last one ended that kept runs from starting; zero: none has.
func (m Maintenances) Ended(now time.Time) (at time.Time) {
	for _, list := range m {
		for _, x := range list {
			if x.Mode != MaintenanceContinue && x.EndsAt.After(at) && !x.EndsAt.After(now) {
				at = x.EndsAt
			}
		}
	}
	return at
}

// Hold takes the offer of an execution back before its grant, because nothing is
// to start for the reason. That is no failed send.
func Hold(e *Execution, now time.Time, reason Reason, message string) error {
	err := e.GiveBack(now, e.Fence, reason, message, 0)
	if err == nil {
		e.Sends().ToFull()
	}
	return err
}

// Exclude ends an execution of a schedule that was never to run: its fire time
// lies in a maintenance that skips such.
func Exclude(e *Execution, now time.Time, message string) (Effects, error) {
	if e.State != Due || e.begun() {
		return Effects{}, e.illegal("exclude it")
	}
	return e.end(now, Excluded, ReasonMaintenance, message), nil
}
