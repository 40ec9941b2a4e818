package timer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type timerCancellationRow struct {
	ID         int64   `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID   int64   `gorm:"column:tenant_id"`
	JobID      int64   `gorm:"column:job_id"`
	KeyPrefix  *string `gorm:"column:key_prefix"`
	Label      *string `gorm:"column:label"`
	Stage      int64   `gorm:"column:stage"`
	AfterKey   string  `gorm:"column:after_key"`
	AfterID    int64   `gorm:"column:after_id"`
	Found      int64   `gorm:"column:found"`
	Cancelled  int64   `gorm:"column:cancelled"`
	CreatedBy  string  `gorm:"column:created_by"`
	CreatedAt  int64   `gorm:"column:created_at;autoCreateTime:false"`
	FinishedAt int64   `gorm:"column:finished_at"`
	WakeAt     *int64  `gorm:"column:wake_at"`
}

func (timerCancellationRow) TableName() string { return "timer_cancellations" }

// Stages of a cancellation: pending timers first, so that none of them becomes a
// run behind the back of the second stage.
const (
	cancelsPending = 1
	cancelsRuns    = 2
)

func (r *timerCancellationRow) cancellation() domain.TimerCancellation {
	c := domain.TimerCancellation{
		ID: domain.TimerCancellationID(r.ID), TenantID: domain.TenantID(r.TenantID), JobID: domain.JobID(r.JobID), Found: r.Found, Cancelled: r.Cancelled,
		CreatedBy: r.CreatedBy, CreatedAt: db.Instant(r.CreatedAt), FinishedAt: db.Instant(r.FinishedAt),
	}
	if r.KeyPrefix != nil {
		c.KeyPrefix = *r.KeyPrefix
	}
	if r.Label != nil {
		c.Label = *r.Label
	}
	return c
}

// CreateTimerCancellation writes one for a label if it has one, else for a prefix,
// which may be empty: all timers of the job.
func (s *Timers) CreateTimerCancellation(ctx context.Context, c domain.TimerCancellation) (domain.TimerCancellation, error) {
	err := s.RunRepeatable(ctx, "create timer cancellation", func(t *db.Tx) error {
		jobs, now, err := s.engine.ShareTimerJobs(t, []domain.JobID{c.JobID})
		if err != nil {
			return err
		}
		if job, err := jobs.Of(c.TenantID, c.JobID); err != nil {
			return err
		} else if job.Kind != domain.JobTimer {
			return db.NotFound("job", c.JobID)
		}
		return InsertCancellation(t, c, now)
	})
	if err != nil && !domain.Is(err, domain.CodeConflict) { // it was stored by an earlier try
		return domain.TimerCancellation{}, err
	}
	return s.FindTimerCancellation(ctx, c.TenantID, c.ID)
}

// InsertCancellation writes one that begins at once.
func InsertCancellation(t *db.Tx, c domain.TimerCancellation, now time.Time) error {
	at := db.Millis(now)
	row := timerCancellationRow{
		ID: int64(c.ID), TenantID: int64(c.TenantID), JobID: int64(c.JobID), Stage: cancelsPending,
		CreatedBy: record.Clip(c.CreatedBy, record.NameSize), CreatedAt: at, WakeAt: &at,
	}
	if c.Label != "" {
		row.Label = &c.Label
	} else {
		row.KeyPrefix = &c.KeyPrefix
	}
	return t.Gorm.Create(&row).Error
}

func (s *Timers) FindTimerCancellation(ctx context.Context, tenant domain.TenantID, id domain.TimerCancellationID) (c domain.TimerCancellation, err error) {
	r, err := db.FindOne[timerCancellationRow](ctx, s.DB, "find timer cancellation", "id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil {
		return domain.TimerCancellation{}, err
	}
	return r.cancellation(), nil
}

// drivenFor bounds how long one cancellation keeps the others waiting.
const drivenFor = 2 * time.Second

// DriveTimerCancellations works on those that have to be driven on, oldest first.
func (s *Timers) DriveTimerCancellations(ctx context.Context, limit int) (out store.DrivenTimerCancellations, err error) {
	var ids []int64
	ids, err = db.LookColumn[int64](ctx, s.DB, "find timer cancellations",
		"SELECT id FROM timer_cancellations"+s.Dialect.ByIndex("ix_timer_cancellations_wake")+" WHERE wake_at <= "+s.Dialect.ClockNow()+fmt.Sprintf(" ORDER BY wake_at LIMIT %d", limit))
	if err != nil {
		return out, err
	}
	var failed error
	for _, id := range ids {
		out.Seen++
		var err error
		until := time.Now().Add(drivenFor)
		for more := true; more && time.Now().Before(until) && ctx.Err() == nil; {
			var cancel []domain.Execution
			if cancel, more, err = s.driveCancellation(ctx, id); err != nil {
				failed = errors.Join(failed, err)
				break
			}
			out.Cancel = append(out.Cancel, cancel...)
		}
		if err != nil && ctx.Err() == nil {
			failed = errors.Join(failed, s.putOffCancellation(ctx, id))
		}
	}
	return out, failed
}

// putOff is for how long one that failed is left alone: those after it have their turn.
const putOff = time.Minute

func (s *Timers) putOffCancellation(ctx context.Context, id int64) error {
	return s.RunRepeatable(ctx, "put off timer cancellation", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "UPDATE timer_cancellations SET wake_at = "+t.Dialect.ClockNow()+fmt.Sprintf(" + %d WHERE id = ? AND wake_at IS NOT NULL", putOff.Milliseconds()), id)
		return err
	})
}

// driveCancellation does one step of one cancellation; more: another one may follow
// at once. cancel are those that have to hear of it.
func (s *Timers) driveCancellation(ctx context.Context, id int64) (cancel []domain.Execution, more bool, err error) {
	type step struct {
		cancel []domain.Execution
		more   bool
	}
	did, err := db.Value(ctx, s.RunBulk, "cancel many timers", func(t *db.Tx) (out step, err error) {
		r, now, err := lockTimerCancellation(t, id)
		if err != nil || r == nil {
			return out, err // another node is at it, or it is done
		}
		message := "cancelled by " + r.CreatedBy
		var full bool
		if r.Stage == cancelsPending {
			full, err = s.cancelNextPending(t, r, message)
		} else {
			out.cancel, full, err = s.cancelNextRuns(t, r, message)
		}
		switch {
		case err != nil:
			return out, err
		case !full && r.Stage == cancelsRuns:
			r.WakeAt, r.FinishedAt = nil, db.Millis(now)
			return out, t.Gorm.Save(r).Error
		case !full:
			r.Stage, r.AfterKey, r.AfterID = cancelsRuns, "", 0
		}
		out.more, *r.WakeAt = true, db.Millis(now) // behind those that wait
		return out, t.Gorm.Save(r).Error
	})
	return did.cancel, did.more, err
}

// lockTimerCancellation returns nil for one that others work on, or that is done.
func lockTimerCancellation(t *db.Tx, id int64) (*timerCancellationRow, time.Time, error) {
	var rows []timerCancellationRow
	err := t.Gorm.Clauses(t.SkipLocked()...).Where("id = ? AND wake_at IS NOT NULL", id).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return nil, time.Time{}, err
	}
	now, err := t.Clock()
	return &rows[0], now, err
}

// cancelNextPending ends the next pending timers that were set before; full: there
// may be more.
func (s *Timers) cancelNextPending(t *db.Tx, r *timerCancellationRow, message string) (full bool, err error) {
	var timers []*record.TimerRow
	atOnce := s.atOnce()
	read := func(statement string, args ...any) error {
		return db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
			r := &record.TimerRow{}
			err := rows.Scan(r.HeadTargets()...)
			timers = append(timers, r)
			return err
		}, "SELECT "+record.TimerHeads+" FROM timers"+statement+t.Dialect.ForUpdate(), args...)
	}
	if r.Label != nil {
		var ids []int64
		ids, err = db.SelectColumn[int64](t.Ctx, t.Conn,
			"SELECT timer_id FROM timer_labels WHERE tenant_id = ? AND job_id = ? AND label = ? AND timer_id > ? AND timer_id < ? ORDER BY timer_id LIMIT ?",
			r.TenantID, r.JobID, *r.Label, r.AfterID, r.ID, atOnce)
		if err == nil && len(ids) > 0 {
			full, r.AfterID = len(ids) == atOnce, ids[len(ids)-1]
			err = read(t.Dialect.ByPrimary() + " WHERE id IN (" + db.IDList(ids) + ") ORDER BY id")
		}
	} else {
		between, args := keysFrom(*r.KeyPrefix, "timer_key", r.AfterKey)
		err = read(t.Dialect.ByIndex("uq_timers_key")+" WHERE job_id = ?"+between+fmt.Sprintf(" ORDER BY timer_key LIMIT %d", atOnce), append([]any{r.JobID}, args...)...)
		if err == nil && len(timers) > 0 {
			full, r.AfterKey = len(timers) == atOnce, timers[len(timers)-1].Key
		}
	}
	if err != nil {
		return false, fmt.Errorf("find pending timers: %w", err)
	}
	if n := domain.FirstWithin(timers, store.MaxListedInput, func(r **record.TimerRow) int64 { return (*r).Bytes() }); n < len(timers) {
		timers, full = timers[:n], true
		if r.Label != nil {
			r.AfterID = timers[n-1].ID
		} else {
			r.AfterKey = timers[n-1].Key
		}
	}
	timers = slices.DeleteFunc(timers, func(timer *record.TimerRow) bool { return timer.ID > r.ID || timer.TenantID != r.TenantID })
	ended, err := s.endPending(t, timers, message)
	r.Found, r.Cancelled = r.Found+int64(len(timers)), r.Cancelled+int64(len(ended))
	return full, err
}

// keysFrom is the condition for keys that begin with prefix and come after another
// one; it begins with AND.
func keysFrom(prefix, column, after string) (condition string, args []any) {
	condition, args = fmt.Sprintf(" AND %[1]s >= ? AND %[1]s > ?", column), []any{prefix, after}
	if end := db.PrefixEnd(prefix); end != "" {
		condition, args = condition+" AND "+column+" < ?", append(args, end)
	}
	return condition, args
}

// cancelNextRuns cancels the next runs of timers that were set before and have not
// ended; full: there may be more.
func (s *Timers) cancelNextRuns(t *db.Tx, r *timerCancellationRow, message string) (cancel []domain.Execution, full bool, err error) {
	var ids []domain.ExecutionID
	var keys []string // of ids
	atOnce := s.atOnce()
	read := func(statement string, args ...any) error {
		return db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
			var id domain.ExecutionID
			var key string
			err := rows.Scan(&id, &key)
			ids, keys = append(ids, id), append(keys, key)
			return err
		}, statement, args...)
	}
	if r.Label != nil {
		err = read("SELECT timer_id, '' FROM timer_labels WHERE tenant_id = ? AND job_id = ? AND label = ? AND timer_id > ? ORDER BY timer_id LIMIT ?",
			r.TenantID, r.JobID, *r.Label, r.AfterID, atOnce)
	} else {
		between, args := keysFrom(domain.TimerRequestKey(*r.KeyPrefix), "request_key", r.AfterKey)
		err = read("SELECT execution_id, request_key FROM request_keys WHERE tenant_id = ? AND job_id = ?"+between+fmt.Sprintf(" ORDER BY request_key LIMIT %d", atOnce),
			append([]any{r.TenantID, r.JobID}, args...)...)
	}
	if err != nil || len(ids) == 0 {
		return nil, false, err
	}
	sizes, err := s.livingBefore(t, r, ids)
	if err != nil {
		return nil, false, err
	}
	n := domain.FirstWithin(ids, store.MaxListedInput, func(id *domain.ExecutionID) int64 { return sizes[*id] })
	full = len(ids) == atOnce || n < len(ids)
	r.AfterID, r.AfterKey = int64(ids[n-1]), keys[n-1]
	living := slices.DeleteFunc(ids[:n], func(id domain.ExecutionID) bool { return sizes[id] == 0 })
	if len(living) == 0 {
		return nil, full, nil
	}
	cancelled, err := s.engine.CancelTimerRuns(t, domain.TenantID(r.TenantID), living, message)
	r.Found, r.Cancelled = r.Found+int64(len(living)), r.Cancelled+int64(len(cancelled))
	cancel = slices.DeleteFunc(cancelled, func(e domain.Execution) bool { return e.State != domain.Cancelling })
	return cancel, full, err
}

// livingBefore returns the living runs of timers that were set before the cancellation. The
// values are about the bytes of their rows.
func (s *Timers) livingBefore(t *db.Tx, r *timerCancellationRow, ids []domain.ExecutionID) (living map[domain.ExecutionID]int64, err error) {
	living = map[domain.ExecutionID]int64{}
	err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var id domain.ExecutionID
		var occurrence string
		var size int64
		err := rows.Scan(&id, &occurrence, &size)
		if timer, _, ok := domain.SplitTimerOccurrence(occurrence); ok && int64(timer) < r.ID {
			living[id] = size
		}
		return err
	}, "SELECT id, occurrence_key, 1024 + COALESCE(OCTET_LENGTH(input), 0) + COALESCE(OCTET_LENGTH(output), 0) + COALESCE(OCTET_LENGTH(error), 0) + COALESCE(OCTET_LENGTH(stack), 0) FROM executions"+t.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(ids)+fmt.Sprintf(") AND state < %d AND tenant_id = %d", domain.Succeeded, r.TenantID))
	return living, err
}
