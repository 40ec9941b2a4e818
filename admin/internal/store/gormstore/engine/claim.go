package engine

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// ClaimDueTriggers looks for due triggers without a lock first: an idle tick
// begins no transaction, and locking the found rows by primary key is more
// than twice as fast as locking while scanning the index (DEPENDENCIES
// section 2, form C against A).
func (s *Triggers) ClaimDueTriggers(ctx context.Context, p store.ClaimDueTriggersParams) (store.ClaimedTriggers, error) {
	ctx, cancel := db.WithDeadline(ctx)
	defer cancel()
	out := store.ClaimedTriggers{NextFireAt: domain.Never}
	if len(p.Partitions) == 0 || p.Limit <= 0 {
		now, err := s.Now(ctx)
		if err != nil {
			return store.ClaimedTriggers{}, err
		}
		out.Now = now
		return out, nil
	}
	due, part, more, err := s.due.next(p, s.Dialect.ClaimAtOnce(), func() (found []domain.JobID, err error) {
		out.Now, found, err = s.findDue(ctx, p)
		return found, err
	})
	if err != nil {
		return store.ClaimedTriggers{}, err
	}
	for ids := range slices.Chunk(s.withoutQuarantined(due), part) {
		if err := s.claim(ctx, p, ids, &out); err != nil && out.Triggers == 0 {
			return store.ClaimedTriggers{}, err
		} else if err != nil { // those before are claimed, and wait for their time
			more = true
			break
		}
	}
	if out.Now.IsZero() { // others took all that an earlier search had found
		now, err := s.Now(ctx)
		if err != nil {
			return store.ClaimedTriggers{}, err
		}
		out.Now = now
	}
	if more {
		out.NextFireAt = out.Now
		return out, nil
	}
	if horizon := out.Now.Add(p.Horizon); out.Triggers < p.Limit && out.NextFireAt.After(horizon) {
		next, err := s.nextFire(ctx, p.Partitions, db.Millis(horizon))
		switch {
		case err == nil:
			out.NextFireAt = next
		case out.Triggers > 0:
			out.NextFireAt = out.Now // the claims are committed, so the caller gets them
		default:
			return store.ClaimedTriggers{}, err
		}
	}
	return out, nil
}

// findDue reads the ids of due triggers, oldest first over all partitions, for
// this claim and some more. One bounded scan per partition keeps the order
// without sorting what is due.
func (s *Triggers) findDue(ctx context.Context, p store.ClaimDueTriggersParams) (now time.Time, due []domain.JobID, err error) {
	err = s.Look(ctx, "find due triggers", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		until := s.Dialect.ClockNow() + fmt.Sprintf(" + %d", p.Horizon.Milliseconds())
		but := ""
		if len(p.Except) > 0 {
			but = " AND tenant_id NOT IN (" + db.IDList(p.Except) + ")"
		}
		if len(p.ExceptExecutors) > 0 {
			but += " AND executor_id NOT IN (" + db.IDList(slices.Clone(p.ExceptExecutors)) + ")"
		}
		terms := []string{"SELECT 0 AS job_id, " + s.Dialect.ClockNow() + " AS next_fire_at"}
		for _, held := range p.Partitions {
			terms = append(terms, s.Dialect.Bounded(fmt.Sprintf(
				"SELECT job_id, next_fire_at FROM triggers%s WHERE part = %d AND next_fire_at <= %s%s ORDER BY next_fire_at LIMIT %d",
				s.Dialect.ByIndex("ix_triggers_due"), held.Partition, until, but, p.Limit)))
		}
		var found []dueAt[domain.JobID]
		now, found, err = searchDue[domain.JobID](ctx, q, terms)
		due = oldest(found, dueBatches*p.Limit)
		return err
	})
	return now, due, err
}

func (s *Triggers) nextFire(ctx context.Context, partitions []domain.PartitionTerm, after int64) (time.Time, error) {
	var terms []string
	for _, held := range partitions {
		terms = append(terms, s.Dialect.Bounded(fmt.Sprintf(
			"SELECT next_fire_at FROM triggers%s WHERE part = %d AND next_fire_at > %d ORDER BY next_fire_at LIMIT 1",
			s.Dialect.ByIndex("ix_triggers_due"), held.Partition, after)))
	}
	next, err := db.LookColumn[int64](ctx, s.DB, "find next fire", strings.Join(terms, " UNION ALL "))
	return db.Instant(slices.Min(append(next, db.Millis(domain.Never)))), err
}

// claim locks the due triggers, plans, and writes, in one transaction, and adds
// what was claimed to out.
func (s *Triggers) claim(ctx context.Context, p store.ClaimDueTriggersParams, due []domain.JobID, out *store.ClaimedTriggers) error {
	type claimed struct {
		now     time.Time
		found   int
		planned []*record.ExecutionRow
		bad     map[domain.JobID]error
		next    time.Time
	}
	landed := func(ctx context.Context, last claimed) (bool, error) { return s.anyExists(ctx, last.planned) }
	c, err := db.ValueChecked(ctx, s.DB, "claim due triggers", landed, func(t *db.Tx) (c claimed, err error) {
		if err := t.Guard(); err != nil {
			return c, err
		}
		triggers, at, err := lockDueTriggers(t, due, p.Horizon)
		if err == nil {
			err = checkClock(at, p.Latest)
		}
		if err != nil {
			return c, err
		}
		c.now, c.found, c.next = at, len(triggers), domain.Never
		if c.found == 0 {
			return c, nil
		}
		c.planned, c.bad, err = s.planTriggers(t, at, triggers, func(now time.Time, tr domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
			plan := p.Plan(now, tr, spec)
			if len(plan.Executions) > 0 && plan.NextFireAt.Before(c.next) {
				c.next = plan.NextFireAt // inside the horizon when Plan had more fires than it may return
			}
			return plan
		})
		if err != nil {
			return c, err
		}
		return c, VerifyTerms(t, termsOf(triggers, func(r *record.TriggerRow) int64 { return r.Part }, p.Partitions))
	})
	if err != nil || c.found == 0 {
		return err
	}
	s.quarantine(ctx, c.bad)
	out.Now, out.Triggers = c.now, out.Triggers+c.found
	if c.next.Before(out.NextFireAt) {
		out.NextFireAt = c.next
	}
	for _, row := range c.planned {
		out.Executions = append(out.Executions, row.Execution())
		s.Rows.remember(row)
	}
	return nil
}

// termsOf are the terms under which these rows are claimed.
func termsOf[R any](rows []*R, part func(*R) int64, held []domain.PartitionTerm) []domain.PartitionTerm {
	used := map[int]bool{}
	for _, r := range rows {
		used[int(part(r))] = true
	}
	out := make([]domain.PartitionTerm, 0, len(used))
	for _, h := range held {
		if used[h.Partition] {
			out = append(out, h)
		}
	}
	return out
}

func lockDueTriggers(t *db.Tx, due []domain.JobID, horizon time.Duration) (triggers []*record.TriggerRow, now time.Time, err error) {
	slices.Sort(due)
	err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		r := &record.TriggerRow{}
		var at int64
		err := rows.Scan(record.TriggerTable.Targets(r, &at)...)
		now = db.Instant(at)
		triggers = append(triggers, r)
		return err
	}, "SELECT "+t.Dialect.ClockNow()+", "+record.TriggerColumns+" FROM triggers"+t.Dialect.ByPrimary()+
		" WHERE job_id IN ("+db.IDList(due)+") AND next_fire_at <= "+t.Dialect.ClockNow()+fmt.Sprintf(" + %d", horizon.Milliseconds())+
		" ORDER BY job_id"+t.Dialect.ForUpdateSkip())
	if err != nil {
		return nil, now, fmt.Errorf("lock triggers: %w", err)
	}
	return triggers, now, nil
}

// planTriggers asks plan for each locked trigger, inserts the executions and
// advances the triggers. It returns the executions that were really inserted.
// Triggers that cannot be planned stay as they are: those are bad.
func (s *core) planTriggers(t *db.Tx, now time.Time, triggers []*record.TriggerRow, plan store.PlanFunc) (inserted []*record.ExecutionRow, bad map[domain.JobID]error, err error) {
	keys := make([]record.RevisionKey, len(triggers))
	for i, r := range triggers {
		keys[i] = record.RevisionKey{Job: domain.JobID(r.JobID), Revision: r.Revision}
	}
	specs, err := s.Specs.Load(t.Ctx, t.Conn, keys)
	if err != nil {
		return nil, nil, fmt.Errorf("load job revisions: %w", err)
	}
	bad = map[domain.JobID]error{}
	var rows []*record.ExecutionRow
	var waits []waitRow
	changes := make([]db.Change[record.TriggerRow], 0, len(triggers))
	for i, r := range triggers {
		planned := store.TriggerPlan{Err: s.Specs.Why(keys[i])}
		if cached, ok := specs[keys[i]]; ok {
			err := panics.Catch(func() error { planned = plan(now, r.Trigger(), cached.Spec); return nil })
			planned.Err = cmp.Or(err, planned.Err)
		}
		if planned.Err != nil {
			bad[domain.JobID(r.JobID)] = planned.Err
			continue
		}
		for j := range planned.Executions {
			row := record.ToExecutionRow(&planned.Executions[j])
			// The wall between tenants does not depend on the planner.
			row.TenantID, row.JobID, row.Part = r.TenantID, r.JobID, r.Part
			if row.PlannedAt == 0 {
				row.PlannedAt = db.Millis(now)
			}
			rows = append(rows, row)
		}
		if planned.Awaits != 0 {
			waits = append(waits, waitRow{JobID: r.JobID, TenantID: r.TenantID, ExecutionID: int64(planned.Awaits)})
		}
		after := *r
		after.NextFireAt, after.LastFireAt = db.Millis(planned.NextFireAt), db.Millis(planned.LastFireAt)
		if after != *r {
			changes = append(changes, db.Change[record.TriggerRow]{Before: r, After: &after})
		}
	}
	if inserted, err = InsertNew(t, rows); err != nil {
		return nil, nil, fmt.Errorf("insert executions: %w", err)
	}
	if err := record.TriggerTable.Update(t, changes); err != nil {
		return nil, nil, fmt.Errorf("advance triggers: %w", err)
	}
	var missed missedRuns
	for _, row := range inserted {
		if row.State == int64(domain.Missed) {
			e := row.Execution()
			missed.addNew(&e)
		}
	}
	if err := InsertEvents(t, missed.events(), now); err != nil {
		return nil, nil, err
	}
	if len(inserted) < len(rows) {
		if waits, err = s.passTaken(t, now, waits, rows, inserted); err != nil {
			return nil, nil, err
		}
	}
	return inserted, bad, await(t, waits)
}

// InsertNew inserts executions and leaves out those whose occurrence exists.
// That is rare, so it is looked up only after the plain insert was refused.
// (INSERT IGNORE would hide every other fault too.)
func InsertNew(t *db.Tx, rows []*record.ExecutionRow) ([]*record.ExecutionRow, error) {
	for range 3 {
		err := Savepoint(t, func() error { return record.ExecutionTable.Insert(t, rows) })
		if err == nil {
			return rows, record.InsertEndsOf(t, rows, false)
		}
		if !db.IsDuplicate(err) {
			return rows, err
		}
		taken, lookErr := existing(t, rows)
		if lookErr != nil {
			return nil, lookErr
		}
		fresh := slices.DeleteFunc(slices.Clone(rows), func(r *record.ExecutionRow) bool {
			gone := taken[r.Occurrence()]
			taken[r.Occurrence()] = true // a second row of this very batch goes too
			return gone
		})
		if len(fresh) == len(rows) {
			return nil, err // the id is the duplicate: the source of ids is broken
		}
		rows = fresh
	}
	return nil, fmt.Errorf("the same occurrences are being inserted by others all the time")
}

// existing returns which of the occurrences have a row.
func existing(t *db.Tx, rows []*record.ExecutionRow) (map[record.Occurrence]bool, error) {
	out := map[record.Occurrence]bool{}
	for part := range slices.Chunk(rows, 200) {
		var terms []string
		var args []any
		for _, r := range part {
			terms = append(terms, fmt.Sprintf("(job_id = %d AND fire_at = %d AND occurrence_key = ?)", r.JobID, r.FireAt))
			args = append(args, r.OccurrenceKey)
		}
		found, err := db.Select(t.Ctx, t.Conn, func(o *record.Occurrence) []any { return []any{&o.Job, &o.FireAt, &o.Key} },
			"SELECT job_id, fire_at, occurrence_key FROM executions WHERE "+strings.Join(terms, " OR "), args...)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			out[o] = true
		}
	}
	return out, nil
}

// Savepoint undoes what fn wrote when it fails, and keeps the transaction.
func Savepoint(t *db.Tx, fn func() error) error {
	if _, err := t.Exec(t.Ctx, "SAVEPOINT part"); err != nil {
		return err
	}
	err := fn()
	if err == nil {
		_, err = t.Exec(t.Ctx, "RELEASE SAVEPOINT part")
		return err
	}
	if !db.IsDuplicate(err) {
		return err // the whole transaction goes
	}
	if _, undo := t.Exec(t.Ctx, "ROLLBACK TO SAVEPOINT part"); undo != nil {
		return undo
	}
	return err
}

// anyExists answers for a claim whose commit was lost.
func (s *core) anyExists(ctx context.Context, rows []*record.ExecutionRow) (bool, error) {
	if len(rows) == 0 {
		return false, nil // nothing was planned; the repetition sees what moved
	}
	found, err := db.SelectColumn[int64](ctx, s.Read, fmt.Sprintf("SELECT id FROM executions WHERE id = %d", rows[0].ID))
	return len(found) > 0, err
}
