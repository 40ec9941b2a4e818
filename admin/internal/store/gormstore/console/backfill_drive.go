package console

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// backfillScan bounds the fire times that one transaction looks at.
const backfillScan = 500

// DriveBackfills looks without a lock for what has to be driven on.
func (s *Backfills) DriveBackfills(ctx context.Context, p store.DriveBackfillsParams) (store.DrivenBackfills, error) {
	var out store.DrivenBackfills
	ids, err := db.LookColumn[domain.BackfillID](ctx, s.DB, "find backfills",
		"SELECT id FROM backfills WHERE wake_at <= "+s.Dialect.ClockNow()+fmt.Sprintf(" ORDER BY wake_at LIMIT %d", p.Limit))
	if err != nil {
		return out, err
	}
	for _, id := range ids {
		// Repeating it changes nothing more: what was written counts as taken.
		runs, err := db.Value(ctx, s.RunRepeatable, "drive backfill", func(t *db.Tx) ([]domain.Execution, error) {
			if err := t.Guard(); err != nil {
				return nil, err
			}
			return s.driveBackfill(t, id, p)
		})
		if err != nil {
			return out, err
		}
		out.Seen++
		out.Runs = append(out.Runs, runs...)
	}
	return out, nil
}

// driveBackfill does one step of one backfill.
func (s *Backfills) driveBackfill(t *db.Tx, id domain.BackfillID, p store.DriveBackfillsParams) ([]domain.Execution, error) {
	row, now, err := lockBackfill(t, id, t.Dialect.ForUpdateSkip())
	if err != nil || row == nil {
		return nil, err
	}
	b := row.backfill()
	if b.State != domain.BackfillRunning || b.WakeAt.After(now) {
		return nil, nil // another node was quicker
	}
	// The shared lock on the trigger keeps a deletion apart, as for other runs.
	like := domain.Execution{JobID: b.JobID, TenantID: b.TenantID, Revision: b.Revision}
	if _, err := s.specs.FillFromJob(t, &like); domain.Is(err, domain.CodeNotFound) {
		b.State, b.Message, b.WakeAt, b.FinishedAt = domain.BackfillCancelled, "the job was deleted", time.Time{}, now
		return nil, saveBackfill(t, &b)
	} else if err != nil {
		return nil, err
	}
	if err := countEnded(t, &b); err != nil {
		return nil, err
	}
	runs, err := s.nextOfBackfill(t, &b, like, now, p)
	if err != nil {
		return nil, err
	}
	b.WakeAt = now.Add(p.Pause)
	if !b.Next.Before(b.To) && len(b.Live) == 0 {
		b.State, b.WakeAt, b.FinishedAt = domain.BackfillDone, time.Time{}, now
	}
	return runs, saveBackfill(t, &b)
}

// countEnded takes the runs that have ended out of the live ones.
func countEnded(t *db.Tx, b *domain.Backfill) error {
	if len(b.Live) == 0 {
		return nil
	}
	states := map[domain.ExecutionID]domain.State{}
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var id domain.ExecutionID
		var state int64
		err := rows.Scan(&id, &state)
		states[id] = domain.State(state)
		return err
	}, "SELECT id, state FROM executions WHERE id IN ("+db.IDList(b.Live)+") AND tenant_id = ?", int64(b.TenantID))
	if err != nil {
		return fmt.Errorf("count ended runs: %w", err)
	}
	b.Live = slices.DeleteFunc(b.Live, func(id domain.ExecutionID) bool {
		state, ok := states[id]
		switch {
		case ok && !state.Terminal():
			return false
		case state == domain.Succeeded:
			b.Succeeded++
		default:
			b.Failed++ // also one that retention has removed
		}
		return true
	})
	return nil
}

// nextOfBackfill writes as many runs as there is room for.
func (s *Backfills) nextOfBackfill(t *db.Tx, b *domain.Backfill, like domain.Execution, now time.Time, p store.DriveBackfillsParams) ([]domain.Execution, error) {
	if len(b.Live) >= b.Concurrency || !b.Next.Before(b.To) {
		return nil, nil
	}
	key := record.RevisionKey{Job: b.JobID, Revision: b.Revision}
	specs, err := s.specs.Load(t.Ctx, t.Conn, []record.RevisionKey{key})
	if err != nil {
		return nil, err
	}
	spec := specs[key].Spec
	if spec == nil { // nothing can be run of what cannot be read
		b.Next = b.To
		return nil, nil
	}
	fires := p.Fires(spec, b.Next, b.To, backfillScan)
	if len(fires) == 0 {
		b.Next = b.To
		return nil, nil
	}
	known, err := occurred(t.Ctx, t.Conn, b.TenantID, b.JobID, fires[0], fires[len(fires)-1].Add(time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("look at fire times: %w", err)
	}
	var rows []*record.ExecutionRow
	for _, at := range fires {
		if len(b.Live)+len(rows) >= b.Concurrency {
			break
		}
		b.Next = at.Add(time.Millisecond)
		if !b.Scope.Wants(known[at.UnixMilli()]) {
			b.Skipped++
			continue
		}
		e := like
		e.ID, e.FireAt, e.PlannedAt, e.NotBefore = domain.ExecutionID(p.NewID()), at, now, now
		e.WakeAt, e.ExpireAt = now.Add(domain.PickupGrace), now.Add(run.Patience(spec))
		e.Cause, e.OccurrenceKey, e.State, e.LogLines = domain.CauseBackfill, domain.BackfillKey, domain.Due, -1
		e.MaxAttempts, e.RequestedBy, e.Note = max(1, spec.Retry.MaxAttempts), b.CreatedBy, b.Note
		if p.Begin != nil {
			p.Begin(b, &e)
		}
		rows = append(rows, record.ToExecutionRow(&e))
	}
	if len(fires) < backfillScan && len(b.Live)+len(rows) < b.Concurrency {
		b.Next = b.To // nothing is left
	}
	if len(rows) == 0 {
		return nil, nil
	}
	wanted := len(rows)
	if rows, err = engine.InsertNew(t, rows); err != nil {
		return nil, fmt.Errorf("write runs of a backfill: %w", err)
	}
	b.Skipped += wanted - len(rows) // another backfill was quicker
	b.Created += len(rows)
	runs := make([]domain.Execution, len(rows))
	for i, row := range rows {
		runs[i] = row.Execution()
		b.Live = append(b.Live, runs[i].ID)
	}
	return runs, nil
}
