package run

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

const (
	// MaintenanceFor is how long a node trusts what it read of maintenance: so late
	// it may start something under one that was switched on.
	MaintenanceFor = 500 * time.Millisecond
	// MaintenanceCheck is how long a run that waits for the end of maintenance is
	// left alone by the sweep; every node looks for what waited when one has ended.
	MaintenanceCheck = 5 * time.Minute
)

// maintained keeps a run from starting while its executor is under maintenance: it
// waits, or is excluded (ended). It comes before all other reasons not to start, so
// that none of them counts what has passed meanwhile. An attempt that was granted
// before is running, and goes on.
func (t turn) maintained() (stays, ended bool, err error) {
	if t.e.State != domain.Due && t.e.State != domain.RetryWait {
		return false, false, nil
	}
	known, err := t.b.Source.Maintenances()
	if err != nil {
		return false, false, err
	}
	if x := known.Skips(t.e); x != nil {
		return true, true, t.apply(domain.Exclude(t.e, t.b.Now, x.Message()))
	}
	if x := known.Holds(t.b.Now, t.e); x != nil {
		return true, false, t.waitForMaintenance(x)
	}
	if t.e.Reason == domain.ReasonMaintenance {
		err = t.e.Wake(t.b.Now, Patience(t.spec))
	}
	return false, false, err
}

// waitForMaintenance lets a run wait until maintenance is over. It takes its place
// in the queue for its job's slot, so that no later run of the job overtakes it.
func (t turn) waitForMaintenance(x *domain.Maintenance) error {
	t.b.Limits.leave(t.e, nil)
	if s := t.slotToTake(); s != nil && !s.FromCache {
		s.enqueue(t.e)
	}
	until := t.b.Now.Add(MaintenanceCheck)
	if x.EndsAt.Before(until) {
		until = x.EndsAt
	}
	return t.e.Wait(t.b.Now, domain.ReasonMaintenance, x.Message(), until)
}

// withdrawOffer takes the offer of an execution back that must not become a grant any
// more, because of maintenance or of a misfire.
func (t turn) withdrawOffer() error {
	if err := t.maintainedOffer(); err != nil {
		return err
	}
	return t.lapseOffered()
}

// maintainedOffer takes the offer of an execution back that must not be granted;
// the next one, or the sweep, decides what becomes of it.
func (t turn) maintainedOffer() error {
	if t.e.State != domain.Offered {
		return nil
	}
	known, err := t.b.Source.Maintenances()
	if err != nil {
		return err
	}
	if x := known.Holds(t.b.Now, t.e); x != nil {
		return domain.Hold(t.e, t.b.Now, domain.ReasonMaintenance, x.Message())
	}
	return nil
}

// mayStart reports whether no maintenance keeps a run from starting.
func (t turn) mayStart() (bool, error) {
	known, err := t.b.Source.Maintenances()
	return known.Holds(t.b.Now, t.e) == nil && known.Skips(t.e) == nil, err
}
