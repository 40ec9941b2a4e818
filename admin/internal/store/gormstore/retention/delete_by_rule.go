package retention

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// prune is which ended runs of a job go: those that fired before an instant and had
// ended before another one.
type prune struct {
	tenant       domain.TenantID
	job          domain.JobID
	fired, ended time.Time
}

// pruneAt is where one is, in the order of uq_executions_occurrence.
type pruneAt struct {
	fire int64
	key  string
}

// prunable is a run that goes, or of which only the logs do.
type prunable struct {
	id   domain.ExecutionID
	fire int64
	logs bool
}

// pruneLimit is how many runs one statement reads.
const pruneLimit = 1000

// PruneRunsQuery is pruneQuery of runs that ended before an instant.
func PruneRunsQuery(d db.Dialect, tenant domain.TenantID, job domain.JobID, ended time.Time) string {
	return pruneQuery(d, prune{tenant, job, ended, ended})
}

// clocksApart is more than what the clocks of a node and of the database differ by.
const clocksApart = time.Hour

// pruneQuery reads the next runs of a job, each with whether it goes. A run stays that
// others need: living ones and those whose handler still runs; parts of a run that
// stays; one that has ended since the oldest callback without a run, or clocksApart
// before; and one with a key of the caller's, for a
// day. The arguments are a fire time twice, a key, and a fire time.
func pruneQuery(d db.Dialect, p prune) string {
	goes := func(run string) string {
		return fmt.Sprintf("%[1]s.state >= %[2]d AND %[1]s.lingers = 0 AND %[1]s.finished_at < %[3]d AND (%[1]s.occurrence_key NOT LIKE 'idem:%%' OR %[1]s.finished_at < %[4]s - %[5]d)"+
			" AND %[1]s.finished_at < %[6]s - %[7]d",
			run, domain.Succeeded, db.Millis(p.ended), d.ClockNow(), domain.RequestKeyGrace.Milliseconds(), db.OldestOutbox(domain.TopicCallbacks), clocksApart.Milliseconds())
	}
	return fmt.Sprintf("SELECT e.id, e.fire_at, e.occurrence_key, e.log_lines <> 0, e.tenant_id = %d AND %s"+
		" AND (e.parent_id = 0 OR NOT EXISTS (SELECT 1 FROM executions AS p%s WHERE p.id = e.parent_id AND NOT (%s)))"+
		" FROM executions AS e%s WHERE e.job_id = %d AND e.fire_at >= ? AND (e.fire_at > ? OR e.occurrence_key > ?) AND e.fire_at < ?"+
		" ORDER BY e.fire_at, e.occurrence_key LIMIT %d",
		p.tenant, goes("e"), d.ByPrimary(), goes("p"), d.ByIndex("uq_executions_occurrence"), p.job, pruneLimit)
}

// nextPrunable returns the next runs that go, and where to go on; more is false behind
// the last one.
func (s shared) nextPrunable(ctx context.Context, p prune, at pruneAt) (list []prunable, next pruneAt, more bool, err error) {
	err = s.Look(ctx, "find runs to delete", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		list, next = nil, at
		read := 0
		err := db.Query(ctx, q, func(rows *sql.Rows) error {
			var r prunable
			var goes bool
			err := rows.Scan(&r.id, &r.fire, &next.key, &r.logs, &goes)
			next.fire = r.fire
			read++
			if goes {
				list = append(list, r)
			}
			return err
		}, pruneQuery(s.Dialect, p), at.fire, at.fire, at.key, db.Millis(p.fired))
		more = read == pruneLimit
		return err
	})
	return list, next, more, err
}

// pruneRuns deletes all runs that go, in transactions of at most limit, as long as go on
// says so; done is told of each of them, inside of it.
func (s shared) pruneRuns(ctx context.Context, p prune, limit int, goOn func() error, done func(t *db.Tx, deleted int64) error) (deleted, chunks int64, err error) {
	var at pruneAt
	for more := true; more; {
		if err := goOn(); err != nil {
			return deleted, chunks, err
		}
		var list []prunable
		if list, at, more, err = s.nextPrunable(ctx, p, at); err != nil {
			return deleted, chunks, err
		}
		for part := range slices.Chunk(list, limit) {
			c, err := s.pruneLogs(ctx, p.tenant, part)
			chunks += c
			if err != nil {
				return deleted, chunks, err
			}
			n, err := s.deletePruned(ctx, p, part, done)
			deleted += n
			if err != nil {
				return deleted, chunks, err
			}
		}
	}
	return deleted, chunks, nil
}

func (s shared) deletePruned(ctx context.Context, p prune, part []prunable, done func(t *db.Tx, deleted int64) error) (deleted int64, err error) {
	ids := domain.Collect(part, func(r *prunable) domain.ExecutionID { return r.id })
	slices.Sort(ids)
	return db.Value(ctx, s.RunRepeatable, "delete runs", func(t *db.Tx) (deleted int64, err error) {
		old, err := oldRunsWhere(t, fmt.Sprintf("id IN (%s) AND tenant_id = %d AND state >= %d AND lingers = 0", db.IDList(ids), p.tenant, domain.Succeeded), len(ids))
		if err != nil {
			return 0, err
		}
		if len(old) > 0 {
			if deleted, err = deleteRuns(t, old); err != nil {
				return 0, err
			}
			if err := noteRunsFrom(t, p, part[len(part)-1].fire+1); err != nil {
				return 0, err
			}
		}
		return deleted, done(t, deleted)
	})
}

// noteRunsFrom says that runs of fire times before one may be gone.
func noteRunsFrom(t *db.Tx, p prune, from int64) error {
	row := retentionRow{TenantID: int64(p.tenant), JobID: int64(p.job)}
	if err := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error; err != nil {
		return fmt.Errorf("note what was deleted: %w", err)
	}
	_, err := t.Exec(t.Ctx, "UPDATE retention_rules SET runs_from = ? WHERE tenant_id = ? AND job_id = ? AND runs_from < ?", from, row.TenantID, row.JobID, from)
	return err
}

// pruneLogs deletes the logs of runs.
func (s shared) pruneLogs(ctx context.Context, tenant domain.TenantID, list []prunable) (deleted int64, err error) {
	var ids []domain.ExecutionID
	for _, r := range list {
		if r.logs {
			ids = append(ids, r.id)
		}
	}
	for len(ids) > 0 {
		n, _, err := s.deleteOldLogs(ctx, tenant, " AND execution_id IN ("+db.IDList(ids)+")", pruneBytes, pruneLimit)
		deleted += n
		if err != nil || n == 0 {
			return deleted, err
		}
	}
	return deleted, nil
}

// pruneBytes bounds the chunks of one transaction.
const pruneBytes = 16 << 20

// newestKept returns the fire time of the run number count of a job's ended runs, from
// the newest: those before it go. ok is false when it has fewer.
func (s shared) newestKept(ctx context.Context, job domain.JobID, count int) (at time.Time, ok bool, err error) {
	err = s.Look(ctx, "find the newest runs", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		ok = false
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var fire int64
			err := rows.Scan(&fire)
			at, ok = time.UnixMilli(fire), true
			return err
		}, NewestQuery(s.Dialect, job, count))
	})
	return at, ok, err
}

func NewestQuery(d db.Dialect, job domain.JobID, count int) string {
	return fmt.Sprintf("SELECT fire_at FROM executions%s WHERE job_id = %d AND parent_id = 0 AND state >= %d AND lingers = 0 ORDER BY fire_at DESC LIMIT 1 OFFSET %d",
		d.ByIndex("uq_executions_occurrence"), job, domain.Succeeded, count-1)
}
