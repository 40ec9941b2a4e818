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
func (b *Batch) maintained(m *Move) (stays, ended bool, err error) {
	if m.E.State != domain.Due && m.E.State != domain.RetryWait {
		return false, false, nil
	}
	known, err := b.Source.Maintenances()
	if err != nil {
		return false, false, err
	}
	if x := known.Skips(&m.E); x != nil {
		fx, err := m.E.Exclude(b.Now, x.Message())
		if err == nil {
			b.apply(m, fx)
		}
		return true, true, err
	}
	if x := known.Holds(b.Now, &m.E); x != nil {
		return true, false, b.waitForMaintenance(m, x)
	}
	if m.E.Reason == domain.ReasonMaintenance {
		err = m.E.Wake(b.Now, Patience(m.Spec))
	}
	return false, false, err
}

// waitForMaintenance lets a run wait until maintenance is over. It takes its place
// in the queue for its job's slot, so that no later run of the job overtakes it.
func (b *Batch) waitForMaintenance(m *Move, x *domain.Maintenance) error {
	b.leaveQueues(&m.E, nil)
	if s := b.slotToTake(m); s != nil && !s.FromCache {
		s.enqueue(&m.E)
	}
	until := b.Now.Add(MaintenanceCheck)
	if x.EndsAt.Before(until) {
		until = x.EndsAt
	}
	return m.E.Wait(b.Now, domain.ReasonMaintenance, x.Message(), until)
}

// withdrawOffer takes the offer of an execution back that must not become a grant any
// more, because of maintenance or of a misfire.
func (b *Batch) withdrawOffer(m *Move) error {
	if err := b.maintainedOffer(m); err != nil {
		return err
	}
	return b.lapseOffered(m)
}

// maintainedOffer takes the offer of an execution back that must not be granted;
// the next one, or the sweep, decides what becomes of it.
func (b *Batch) maintainedOffer(m *Move) error {
	if m.E.State != domain.Offered {
		return nil
	}
	known, err := b.Source.Maintenances()
	if err != nil {
		return err
	}
	if x := known.Holds(b.Now, &m.E); x != nil {
		return m.E.Hold(b.Now, x.Message())
	}
	return nil
}

// mayStart reports whether no maintenance keeps a run from starting.
func (b *Batch) mayStart(m *Move) (bool, error) {
	known, err := b.Source.Maintenances()
	return known.Holds(b.Now, &m.E) == nil && known.Skips(&m.E) == nil, err
}
