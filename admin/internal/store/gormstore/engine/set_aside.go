package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/time/rate"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// One bad row, one run (promise P15). An execution that a batch cannot read or
// decide is left out of it, so that the others move; when they have, it is set
// aside: ended as failed, with the reason, and the operators are told.
//
// Which one it is, the batch says itself where it was reading or deciding one.
// Where only a statement over many failed, halves of them are tried in
// transactions that are undone.

// maxSetAside is how many executions one batch leaves out before it gives up: more
// at once look like a fault of the database, or of this build.
const maxSetAside = 16

// newPanicLimiter: what looks like a bad row may be a fault of this build, which
// would end every run. So of those that panic only these many are set aside, and
// then one each half a minute; the others stay as they are, and fail their batch.
func newPanicLimiter() *rate.Limiter { return rate.NewLimiter(rate.Every(30*time.Second), 20) }

// culprit is the execution that a batch was deciding when it failed, and err the
// failure of whom it may be.
func (b *Batch) culprit(err error) domain.ExecutionID {
	if b == nil || !isRowError(err) {
		return 0
	}
	return b.Deciding
}

// isRowError reports whether an error may come of what stands in a row, so that it
// would be the same the next time.
func isRowError(err error) bool {
	var p *panics.Panic
	var my *mysql.MySQLError
	var lite *sqlite.Error
	switch {
	case err == nil:
		return false
	case errors.As(err, &p), domain.Is(err, domain.CodeIllegalMove):
		return true
	case errors.As(err, &my):
		return slices.Contains(mysqlRowErrors, my.Number)
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case sqlitelib.SQLITE_CONSTRAINT, sqlitelib.SQLITE_MISMATCH, sqlitelib.SQLITE_TOOBIG, sqlitelib.SQLITE_RANGE:
			return true
		}
		return false
	default:
		return strings.Contains(err.Error(), "sql: Scan error on column") // database/sql has no type for it
	}
}

// mysqlRowErrors are the errors of MySQL and MariaDB about a value: null, duplicate,
// out of range, truncated, of another type, too long, or against a constraint.
var mysqlRowErrors = []uint16{1048, db.MySQLDuplicateEntry, 1264, 1265, 1292, 1366, 1367, 1406, 1411, 1451, 1452, 1690, 3819, 4025}

// errTrial ends a transaction that was only a try.
var errTrial = errors.New("only tried")

// bisect tries halves of the executions by themselves until one is left that fails
// by itself; 0: no single one does.
func (s *core) bisect(ctx context.Context, suspects []domain.ExecutionID, fails func(only []domain.ExecutionID) bool) domain.ExecutionID {
	for len(suspects) > 1 && ctx.Err() == nil {
		half := len(suspects) / 2
		switch {
		case fails(suspects[:half]):
			suspects = suspects[:half]
		case fails(suspects[half:]):
			suspects = suspects[half:]
		default:
			return 0
		}
	}
	if len(suspects) == 1 && fails(suspects) {
		return suspects[0]
	}
	return 0
}

// SetAside ends executions that cannot be read, decided or sent, each in a
// transaction of its own, and tells the operators. Those that have ended
// meanwhile only leave what would be looked at again. An execution of which a
// panic tells is left as it is when there were too many of them.
func (s *core) SetAside(ctx context.Context, bad map[domain.ExecutionID]error) error {
	var all error
	for _, id := range slices.Sorted(maps.Keys(bad)) {
		var p *panics.Panic
		if errors.As(bad[id], &p) && !s.panics.Allow() {
			all = errors.Join(all, fmt.Errorf("execution %s is not set aside, too many have panicked: %w", id, bad[id]))
			continue
		}
		s.Logger.Error("execution set aside", "execution_id", id, "err", bad[id], "stack", panics.Stack(bad[id]))
		s.Rows.forget(id)
		freed, err := db.Value(ctx, s.RunRepeatable, "set aside", func(t *db.Tx) ([]domain.JobID, error) { return s.setAside(t, id, bad[id]) })
		all = errors.Join(all, err)
		if err == nil {
			s.wakeSuccessors(ctx, freed)
		}
	}
	return all
}

// setAside reads of the row only what it needs: another column may be what is
// wrong. It returns the job whose slot may have become free.
func (s *core) setAside(t *db.Tx, id domain.ExecutionID, why error) ([]domain.JobID, error) {
	known, err := s.Rows.load(t.Ctx, t.Conn, []domain.ExecutionID{id})
	if err != nil {
		return nil, fmt.Errorf("find execution: %w", err)
	}
	f, ok := known[id]
	if !ok {
		return nil, nil
	}
	if _, err := s.lockSlots(t, []domain.JobID{f.ref.Job}, false); err != nil {
		return nil, fmt.Errorf("lock slot: %w", err)
	}
	var state, fence int64
	var cause string
	found := false
	err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&state, &fence, &cause)
	}, "SELECT COALESCE(state, 0), COALESCE(fence, 0), COALESCE(cause, '') FROM executions"+t.Dialect.ByPrimary()+" WHERE id = ?"+t.Dialect.ForUpdate(), int64(id))
	if err != nil || !found {
		return nil, err
	}
	now, err := t.Clock()
	if err != nil {
		return nil, err
	}
	set, args := "", []any{}
	ends := !domain.State(state).Terminal() || domain.State(state).String() == ""
	if ends {
		after := record.ExecutionRow{State: int64(domain.Failed), Cause: cause, ParentID: int64(f.ref.Parent)}
		set = ", state = ?, phase = ?, reason = ?, message = ?, finished_at = CASE WHEN finished_at = 0 THEN ? ELSE finished_at END"
		args = append(args, after.State, record.PhaseOf(&after), string(domain.ReasonSetAside), record.Clip(why.Error(), record.MessageSize), db.Millis(now))
	}
	args = append(args, int64(id), int64(f.ref.Tenant))
	_, err = t.Exec(t.Ctx, "UPDATE executions SET wake_at = NULL, deadline = 0, holds_slot = 0, lingers = 0, version = version + 1"+set+
		" WHERE id = ? AND tenant_id = ?", args...)
	if err == nil && ends && f.ref.Parent == 0 {
		end, _ := domain.EndOf(&domain.Execution{
			ID: id, TenantID: f.ref.Tenant, Executor: f.ref.Executor, JobID: f.ref.Job, FinishedAt: now,
			State: domain.Failed, Reason: domain.ReasonSetAside, Message: record.Clip(why.Error(), record.MessageSize),
		})
		err = record.InsertEnds(t, []domain.RunEnd{end})
	}
	if err != nil {
		return nil, fmt.Errorf("end execution: %w", err)
	}
	for _, from := range []string{"limit_waiters", "limit_holders"} {
		for _, k := range []domain.LimitKey{{Tenant: f.ref.Tenant}, {Tenant: f.ref.Tenant, Executor: f.ref.Executor}} {
			subject, kind := SubjectOf(k)
			if _, err := t.Exec(t.Ctx, "DELETE FROM "+from+" WHERE "+where(subject, kind, "")+" AND execution_id = ? AND tenant_id = ?",
				int64(id), int64(f.ref.Tenant)); err != nil {
				return nil, fmt.Errorf("leave %s: %w", from, err)
			}
		}
	}
	if _, err := t.Exec(t.Ctx, "DELETE FROM slot_waiters WHERE job_id = ? AND execution_id = ? AND tenant_id = ?",
		int64(f.ref.Job), int64(id), int64(f.ref.Tenant)); err != nil {
		return nil, fmt.Errorf("leave slot: %w", err)
	}
	if err := mendSlot(t, f.ref.Job, f.ref.Tenant); err != nil {
		return nil, err
	}
	if ends {
		if err := alertSetAside(t, f.ref, fence, now, why); err != nil {
			return nil, err
		}
	}
	return []domain.JobID{f.ref.Job}, nil
}

// alertSetAside tells the run's owner, if it has one that can be read, and once an
// hour and job the operators.
func alertSetAside(t *db.Tx, r run.Fact, fence int64, now time.Time, why error) error {
	told := []domain.AlertEvent{{
		Kind:      domain.AlertSetAside,
		DedupeKey: fmt.Sprintf("%s:%s:%d", domain.AlertSetAside, r.Job, now.Unix()/3600),
		Detail:    fmt.Sprintf("run %s of job %s: %s", r.ID, r.Job, why),
	}}
	if r.Parent == 0 {
		told = append(told, domain.AlertEvent{
			Kind: domain.AlertRunFailed, TenantID: r.Tenant, JobID: r.Job, Revision: r.Revision, ExecutionID: r.ID,
			DedupeKey: fmt.Sprintf("%s:%s:%d", domain.AlertRunFailed, r.ID, fence),
		})
	}
	return InsertEvents(t, told, now)
}

// mendSlot writes a job's slot as its executions have it, also where its row is
// missing.
func mendSlot(t *db.Tx, job domain.JobID, tenant domain.TenantID) error {
	var holders, waiters int64
	count := func(into *int64, statement string, args ...any) error {
		return db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error { return rows.Scan(into) }, statement, args...)
	}
	living, err := record.LivingOf(t.Ctx, t.Conn, tenant, job)
	if err == nil {
		err = count(&holders, "SELECT COUNT(*) FROM executions"+t.Dialect.ByIndex("ix_executions_wake")+" WHERE "+living+" AND holds_slot = 1")
	}
	if err == nil {
		err = count(&waiters, "SELECT COUNT(*) FROM slot_waiters WHERE job_id = ? AND tenant_id = ?", int64(job), int64(tenant))
	}
	if err != nil {
		return fmt.Errorf("count who has a slot: %w", err)
	}
	there, err := t.Exec(t.Ctx, "UPDATE job_slots SET holders = ?, waiters = ? WHERE job_id = ? AND tenant_id = ?", holders, waiters, int64(job), int64(tenant))
	if err == nil && there == 0 {
		err = record.SlotTable.Insert(t, []*record.SlotRow{{JobID: int64(job), TenantID: int64(tenant), Holders: holders, Waiters: waiters}})
	}
	if err != nil {
		return fmt.Errorf("write slot: %w", err)
	}
	return nil
}

// noSlotsError names jobs whose slot row is missing.
type noSlotsError struct {
	jobs map[domain.JobID]domain.TenantID
}

func (e *noSlotsError) Error() string {
	return fmt.Sprintf("lock slots: %d jobs have no slot row", len(e.jobs))
}

// mendSlots makes rows that are missing. One that another transaction makes at
// the same time is a conflict, and then it is there.
func (s *core) mendSlots(ctx context.Context, missing map[domain.JobID]domain.TenantID) error {
	for _, job := range slices.Sorted(maps.Keys(missing)) {
		s.Logger.Error("a job's slot row was missing and is made anew", "job_id", job)
		err := s.RunRepeatable(ctx, "mend slot", func(t *db.Tx) error {
			if found, err := s.lockSlots(t, []domain.JobID{job}, false); err != nil || found[job] != nil {
				return err
			}
			return mendSlot(t, job, missing[job])
		})
		if err != nil && !domain.Is(err, domain.CodeConflict) {
			return err
		}
	}
	return nil
}

const (
	// maxQuarantined is how many jobs are remembered that could not be
	// planned, and quarantineFor for how long each is then passed over.
	maxQuarantined = 10_000
	quarantineFor  = time.Minute
	// unheardFor is how long jobs are passed over whose tenant moves between two
	// cells. By then this node knows, and passes over the tenant.
	unheardFor = time.Second
)

// quarantine lets jobs be passed over that cannot be planned, and tells
// the operators. The rows stay as they are: what is repaired goes on where it
// stood, and the misfire policy decides about the fire times in between.
func (s *core) quarantine(ctx context.Context, bad map[domain.JobID]error) {
	if len(bad) == 0 {
		return
	}
	moving, err := db.Set[domain.JobID](ctx, s.Lookup, fmt.Sprintf("SELECT j.id FROM jobs AS j JOIN tenants AS t ON t.id = j.tenant_id WHERE j.id IN (%s) AND t.state = %d",
		db.IDList(slices.Collect(maps.Keys(bad))), domain.TenantMoving))
	if err != nil {
		s.Logger.Warn("jobs cannot be planned, and nobody can say whether their tenants are moving", "err", err)
	}
	var told []domain.AlertEvent
	for _, job := range slices.Sorted(maps.Keys(bad)) {
		if moving[job] { // this node has not heard of it yet
			s.QuarantinedUntil.Add(job, time.Now().Add(unheardFor))
			continue
		}
		if _, known := s.QuarantinedUntil.Get(job); !known {
			s.Logger.Error("a job cannot be planned", "job_id", job, "err", bad[job], "stack", panics.Stack(bad[job]))
		}
		s.QuarantinedUntil.Add(job, time.Now().Add(quarantineFor))
		told = append(told, domain.AlertEvent{
			Kind: domain.AlertSetAside, DedupeKey: fmt.Sprintf("%s:job:%s:%d", domain.AlertSetAside, job, time.Now().Unix()/3600),
			Detail: fmt.Sprintf("job %s does not fire, it cannot be planned: %s", job, bad[job]),
		})
	}
	if err := s.RecordAlerts(ctx, told); err != nil {
		s.Logger.Warn("the alert about jobs that cannot be planned cannot be written", "err", err)
	}
}

// withoutQuarantined leaves out what could not be planned a short time ago.
func (s *Triggers) withoutQuarantined(due []domain.JobID) []domain.JobID {
	if s.QuarantinedUntil.Len() == 0 {
		return due
	}
	return slices.DeleteFunc(due, func(job domain.JobID) bool {
		until, ok := s.QuarantinedUntil.Get(job)
		return ok && time.Now().Before(until)
	})
}
