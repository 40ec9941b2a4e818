package engine

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// maintenanceCache is what this node knows of maintenance.
type maintenanceCache struct{ snapshot[knownMaintenance] }

type knownMaintenance struct {
	all      domain.Maintenances
	stopping []domain.MaintenanceScope // of which nothing was to start when it was read
	at       time.Time                 // when it was read, by the database's clock; zero: there was none
}

// maxMaintenances bounds what a node remembers: what is on, and then what ended last.
const maxMaintenances = 10_000

// MaintenanceColumns are what ScanMaintenance reads.
const MaintenanceColumns = "id, tenant_id, executor_id, mode, reason, created_by, since, ends_at, ended_by"

// ScanMaintenance reads a row, and what else it has.
func ScanMaintenance(rows *sql.Rows, more ...any) (m domain.Maintenance, err error) {
	err = rows.Scan(append([]any{&m.ID, &m.Tenant, &m.Executor, &m.Mode, &m.Reason, &m.By, db.At(&m.Since), db.At(&m.EndsAt), &m.EndedBy}, more...)...)
	return m, err
}

// load returns what is on and what was within domain.MaintenanceKept, as of
// run.MaintenanceFor ago at most.
func (c *maintenanceCache) load(ctx context.Context, q db.Querier, dialect db.Dialect) (knownMaintenance, error) {
	return c.snapshot.load(run.MaintenanceFor, func() (known knownMaintenance, err error) {
		err = db.Query(ctx, q, func(rows *sql.Rows) error {
			m, err := ScanMaintenance(rows, db.At(&known.at))
			if known.all == nil {
				known.all = domain.Maintenances{}
			}
			known.all[m.MaintenanceScope] = append(known.all[m.MaintenanceScope], m)
			return err
		}, "SELECT "+MaintenanceColumns+", "+dialect.ClockNow()+" FROM maintenance WHERE ends_at > "+dialect.ClockNow()+
			fmt.Sprintf(" - %d ORDER BY ends_at DESC, id DESC LIMIT %d", domain.MaintenanceKept.Milliseconds(), maxMaintenances))
		if err != nil {
			return knownMaintenance{}, fmt.Errorf("read maintenance: %w", err)
		}
		known.stopping = known.all.Stopping(known.at)
		return known, nil
	})
}

// ForgetMaintenance makes the next look read it again: it has changed.
func (s *Admission) ForgetMaintenance() { s.maintenance.forget() }

func (s *core) lookAtMaintenance(ctx context.Context) (known knownMaintenance, err error) {
	err = s.Look(ctx, "read maintenance", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		known, err = s.maintenance.load(ctx, q, s.Dialect)
		return err
	})
	return known, err
}

// Maintenances implements store.MaintenanceView.
func (s *Admission) Maintenances(ctx context.Context) (domain.Maintenances, error) {
	known, err := s.lookAtMaintenance(ctx)
	return known.all, err
}

// KnownMaintenances implements store.MaintenanceView.
func (s *Admission) KnownMaintenances() domain.Maintenances {
	return s.maintenance.last().all
}

// Maintenances implements run.Source.
func (b *Batch) Maintenances() (domain.Maintenances, error) {
	known, err := b.s.maintenance.load(b.Tx.Ctx, b.Tx.Conn, b.Tx.Dialect)
	return known.all, err
}
