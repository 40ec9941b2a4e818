package timer

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// RescheduleTimer moves a pending timer, or makes one of a run that has not
// started. Repeating it moves it to where it is.
func (s *Timers) RescheduleTimer(ctx context.Context, p store.RescheduleTimerParams) (store.TimerView, error) {
	view, err := db.Value(ctx, s.RunRepeatable, "reschedule timer", func(t *db.Tx) (view store.TimerView, err error) {
		jobs, now, err := s.engine.ShareTimerJobs(t, []domain.JobID{p.Job})
		if err != nil {
			return view, err
		}
		if job, err := jobs.Of(p.Tenant, p.Job); err != nil {
			return view, err
		} else if job.State == domain.JobDeleted {
			return view, db.NotFound("job", p.Job)
		}
		name := record.TimerName{Job: int64(p.Job), Key: p.Key}
		pending, err := readTimers(t.Ctx, t.Conn, wholeTimers, t.Dialect.ForUpdate(), p.Tenant, []record.TimerName{name})
		if err != nil {
			return view, err
		}
		if r := pending[name]; r != nil {
			view = store.TimerView{Timer: r.Timer()}
			view.FireAt = p.FireAt
			view.Partition = partitionOf(&view.Timer, now, p.Held)
			_, err := t.Exec(t.Ctx, "UPDATE timers"+t.Dialect.ByID()+" SET fire_at = ?, part = ? WHERE id = ?", db.Millis(view.FireAt), view.Partition, r.ID)
			return view, err
		}
		runs, err := s.runsOfTimers(t.Ctx, t.Conn, p.Tenant, []record.TimerName{name})
		if err != nil {
			return view, err
		}
		r := runs[name] // EndTimerRun reads all of it
		if r == nil {
			return view, domain.Errorf(domain.CodeNotFound, "there is no timer %q", p.Key)
		}
		requests, err := requestsOf(t.Ctx, t.Conn, p.Tenant, []record.TimerName{name})
		if err != nil {
			return view, err
		}
		return s.takeBackRun(t, r, requests[r.ID], now, p)
	})
	if err == nil {
		err = s.Look(ctx, "name timer", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
			return s.nameTimers(ctx, q, []*store.TimerView{&view})
		})
	}
	if err != nil {
		return store.TimerView{}, err
	}
	return view, nil
}

// takeBackRun ends a run that has not started, and writes a pending timer in its
// place.
func (s *Timers) takeBackRun(t *db.Tx, r *record.ExecutionRow, request string, now time.Time, p store.RescheduleTimerParams) (view store.TimerView, err error) {
	was, err := s.engine.EndTimerRun(t, p.Tenant, domain.ExecutionID(r.ID), "moved to "+p.FireAt.UTC().Format(time.RFC3339)+" by "+p.By)
	if err != nil && was.Reason == domain.ReasonRescheduled {
		return view, db.ErrStale // somebody else has moved it since the look for a pending one: look again
	}
	if err != nil {
		return view, err
	}
	id, err := s.NewID()
	if err != nil {
		return view, err
	}
	timer, _ := domain.TimerOf(&was)
	waitFrom := was.FireAt
	if waitFrom.Before(was.PlannedAt) {
		waitFrom = was.PlannedAt
	}
	timer.ID, timer.FireAt, timer.StartWithin = domain.TimerID(id), p.FireAt, max(was.ExpireAt.Sub(waitFrom), 0)
	timer.Partition, timer.RequestID = partitionOf(&timer, now, p.Held), request
	row := record.ToTimerRow(&timer)
	if row.Labels, err = t.Exec(t.Ctx, "UPDATE timer_labels SET timer_id = ? WHERE timer_id = ?", id, r.ID); err != nil {
		return view, fmt.Errorf("move labels: %w", err)
	}
	if err := record.TimerTable.Insert(t, []*record.TimerRow{row}); err != nil {
		return view, fmt.Errorf("insert timer: %w", err)
	}
	counts := record.TimerCounts{}
	counts.Add(row)
	return store.TimerView{Timer: timer}, counts.Save(t)
}
