package sweeper

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// deleteLimit bounds one deleting transaction.
const deleteLimit = 1000

// refusalRetention is how long it is known who was turned away: who looks for
// an executor that does not come looks for it soon.
const refusalRetention = 30 * 24 * time.Hour

// recountAfter is how old the count may be that the sums of stored bytes were held
// against.
const recountAfter = 6 * time.Hour

// tokenRetention is how long a refresh token is known that has expired: one that
// was used before still ends the sessions made from it when it comes again.
const tokenRetention = 30 * 24 * time.Hour

// housekeeping is the admin's own small timetable; nothing on a trigger's way
// depends on it. The first round comes minutes after the start, so that it
// does not compete with what an outage left behind; all nodes take part, each
// at its own time.
func (s *Sweeper) housekeeping(ctx context.Context) (gocron.Scheduler, error) {
	cron, err := gocron.NewScheduler()
	if err != nil {
		return nil, err
	}
	_, err = cron.NewJob(gocron.DurationRandomJob(10*time.Minute, 20*time.Minute), gocron.NewTask(func() { s.deleteOld(ctx) }))
	return cron, err
}

// deleteOld removes what has grown older than its retention.
func (s *Sweeper) deleteOld(ctx context.Context) {
	for _, r := range []struct {
		what   string
		keep   time.Duration
		delete func(context.Context, time.Time, int) (int64, error)
	}{
		{"logs", s.opt.LogRetention, s.opt.Retention.DeleteLogsBefore},
		{"runs", s.opt.RunRetention, s.opt.Retention.DeleteRunsBefore},
		{"clean-ups of runs", s.opt.RunRetention, s.opt.Retention.DeleteRunPurgesBefore},
		{"timers", s.opt.TimerRetention, s.opt.Retention.DeleteTimersBefore},
		{"outbox", s.opt.RunRetention, s.opt.Retention.DeleteOutboxBefore},
		{"instances", s.opt.RunRetention, s.opt.Retention.DeleteInstancesBefore}, // runs show their names
		{"boots let in by join tokens", s.opt.RunRetention, s.opt.Retention.DeleteJoinTokenBootsBefore},
		{"refusals", min(s.opt.RunRetention, refusalRetention), s.opt.Retention.DeleteRefusalsBefore},
		{"maintenance", max(s.opt.RunRetention, domain.MaintenanceKept), s.opt.Retention.DeleteMaintenanceBefore}, // it explains runs
		{"deleted jobs", max(s.opt.RunRetention, domain.DeletedDocumentsKept), s.opt.Retention.DeleteJobsBefore},  // after their runs
		{"deleted executors", max(s.opt.RunRetention, domain.DeletedDocumentsKept), s.opt.Retention.DeleteExecutorsBefore},
		{"handlers", s.opt.RunRetention, s.opt.Retention.DeleteHandlersBefore}, // after their instances
		{"deleted documents", domain.DeletedDocumentsKept, s.opt.Retention.DeleteDocumentsBefore},
		{"deleted tenants", domain.RetentionGrace, s.opt.Retention.DeleteTenantsBefore}, // nodes look for the last commits
		{"refresh tokens", min(s.opt.RunRetention, tokenRetention), s.opt.Retention.DeleteRefreshTokensBefore},
	} {
		total, err := s.deleteAll(ctx, r.keep, r.delete)
		s.tellDeleted(ctx, r.what, total, err)
	}
	runs, chunks, err := s.opt.Retention.ApplyRetentionRules(ctx, deleteLimit)
	s.tellDeleted(ctx, "runs by rules of tenants and jobs", runs, err)
	s.tellDeleted(ctx, "logs by rules of tenants and jobs", chunks, nil)
	if s.opt.LogBytes > 0 {
		total, err := s.deleteAll(ctx, 0, func(ctx context.Context, _ time.Time, limit int) (int64, error) {
			return s.opt.Retention.TrimLogs(ctx, s.opt.LogBytes, limit)
		})
		s.tellDeleted(ctx, "logs over their size", total, err)
	}
	s.recount(ctx)
}

// recount holds the sums of stored bytes against the rows.
func (s *Sweeper) recount(ctx context.Context) {
	now, err := s.opt.Store.Now(ctx)
	wrong := 0
	if err == nil {
		wrong, err = s.opt.Retention.RecountStored(ctx, now.Add(-recountAfter))
	}
	if wrong > 0 {
		s.log.Info("sums of stored bytes corrected", "tenants", wrong)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("stored bytes could not be counted", "err", err)
	}
}

func (s *Sweeper) tellDeleted(ctx context.Context, what string, total int64, err error) {
	if total > 0 {
		s.log.Info("old rows deleted", "what", what, "count", total)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("old rows could not be deleted", "what", what, "err", err)
	}
}

// deleteAll repeats a bounded deletion until nothing old is left.
func (s *Sweeper) deleteAll(ctx context.Context, keep time.Duration, step func(context.Context, time.Time, int) (int64, error)) (total int64, err error) {
	now, err := s.opt.Store.Now(ctx)
	if err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		n, err := step(ctx, now.Add(-keep), deleteLimit)
		total += n
		if err != nil || n < deleteLimit {
			return total, err
		}
	}
	return total, ctx.Err()
}
