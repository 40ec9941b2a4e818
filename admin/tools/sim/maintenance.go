package sim

import (
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
)

// maintenanceRow is a maintenance, and from when on all nodes have to hold to it.
type maintenanceRow struct {
	domain.Maintenance
	strictFrom time.Duration
}

// maintenanceKnown is what a node knows of maintenance.
type maintenanceKnown struct {
	all   domain.Maintenances
	at    time.Time // when it was read, by the database's clock
	until time.Duration
}

// startMaintenance is StartMaintenance.
func (d *database) startMaintenance(m domain.Maintenance, strictFrom time.Duration) {
	m.ID, m.Since = d.newID(), d.clock()
	d.endMaintenance(m.MaintenanceScope)
	d.maintenance = append(d.maintenance, &maintenanceRow{m, strictFrom})
}

// endMaintenance is EndMaintenance.
func (d *database) endMaintenance(scope domain.MaintenanceScope) {
	for _, m := range d.maintenance {
		if m.MaintenanceScope == scope && m.EndsAt.After(d.clock()) {
			m.EndsAt = d.clock()
		}
	}
}

// maintenances is what a node reads.
func (d *database) maintenances() domain.Maintenances {
	if len(d.maintenance) == 0 {
		return nil
	}
	all := domain.Maintenances{}
	for _, m := range slices.Backward(d.maintenance) {
		all[m.MaintenanceScope] = append(all[m.MaintenanceScope], m.Maintenance)
	}
	return all
}

// maintained is what the node knows of maintenance, read again when it is old.
func (s *nodeStore) maintained() *maintenanceKnown {
	if w := s.n.w; w.now >= s.maintenance.until {
		all := w.db.maintenances()
		s.maintenance = maintenanceKnown{all, w.dbNow(), w.now + run.MaintenanceFor}
	}
	return &s.maintenance
}

func (s *nodeStore) Maintenances(context.Context) (domain.Maintenances, error) {
	if len(s.n.w.db.maintenance) == 0 { // cases without any stay as they are, event by event
		return nil, nil
	}
	return plain(s.n, "maintenance", func(*database) domain.Maintenances { return s.maintained().all })
}

func (s *nodeStore) KnownMaintenances() domain.Maintenances { return s.maintenance.all }

// Maintenances implements run.Source.
func (b *transaction) Maintenances() (domain.Maintenances, error) {
	if b.d.rules.skipMaintenance {
		return nil, nil
	}
	if b.d.caller == nil { // no node's
		return b.d.maintenances(), nil
	}
	return b.d.caller.maintained().all, nil
}

// SuccessWish implements run.Source: of every other job somebody hears of each success.
func (b *transaction) SuccessWish(m *run.Move) domain.SuccessWish { return wishOf(m.E.JobID) }

func wishOf(job domain.JobID) domain.SuccessWish {
	if job%2 == 0 {
		return domain.SuccessEach
	}
	return domain.SuccessUnwanted
}

// maintain is what an operator does: he switches maintenance on, and off before its
// planned end or not.
func (w *world) maintain(n *node, long time.Duration, what int) {
	scope := []domain.MaintenanceScope{{}, {Tenant: tenant}, {Tenant: tenant, Executor: executorID}}[what%3]
	mode := []domain.MaintenanceMode{domain.MaintenanceWait, domain.MaintenanceSkip, domain.MaintenanceWait, domain.MaintenanceContinue}[what/3%4]
	n.flow(func() {
		_ = n.call("start maintenance", anyCall, func() {
			w.db.startMaintenance(domain.Maintenance{MaintenanceScope: scope, Mode: mode, EndsAt: w.dbNow().Add(long)}, w.now+run.MaintenanceFor)
		})
		n.store.maintenance.until = 0
	})
	if what%2 == 0 {
		return
	}
	w.after(&n.actor, long/2, func() {
		n.flow(func() {
			_ = n.call("end maintenance", anyCall, func() { w.db.endMaintenance(scope) })
			n.store.maintenance.until = 0
		})
	})
}

// checkMaintenance: nothing is offered or granted while its executor is under a
// maintenance of which all nodes know, and no fire time runs that one skips.
func (w *world) checkMaintenance(before, after *domain.Execution) {
	if before == nil || before.State == after.State || after.State != domain.Offered && after.State != domain.Running || after.Stage != domain.StageNone {
		return
	}
	if before.State != domain.Due && before.State != domain.RetryWait && before.State != domain.Offered {
		return
	}
	for _, m := range w.db.maintenance {
		if w.now < m.strictFrom || m.Mode == domain.MaintenanceContinue {
			continue
		}
		if m.At(w.dbNow()) {
			w.fail("maintenance: execution %d went from %s to %s in it (%s)", after.ID, before.State, after.State, m.Mode)
		}
		if m.Mode == domain.MaintenanceSkip && run.Scheduled(after) && after.Attempt <= 1 && !after.IsPart() && m.At(after.FireAt) && after.FireAt.After(m.Since.Add(run.MaintenanceFor)) {
			w.fail("maintenance: execution %d of %s runs, which is skipped", after.ID, after.FireAt.Format(time.TimeOnly))
		}
	}
}
