package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// ClaimDueTimers goes the way of ClaimDueTriggers: it looks without a lock, and
// locks what it found by primary key.
func (s *DueTimers) ClaimDueTimers(ctx context.Context, p store.ClaimDueTimersParams) (out store.ClaimedTimers, err error) {
	ctx, cancel := db.WithDeadline(ctx)
	defer cancel()
	if len(p.Partitions) == 0 || p.Limit <= 0 {
		return out, nil
	}
	search := store.ClaimDueTriggersParams{Partitions: p.Partitions, Except: p.Except, Horizon: p.Horizon, Limit: p.Limit}
	due, part, more, err := s.due.next(search, s.Dialect.ClaimAtOnce(), func() ([]domain.TimerID, error) { return s.findDue(ctx, p) })
	if err != nil {
		return out, err
	}
	out.More = more || len(due) >= p.Limit
	bytes := 0
	for len(due) > 0 {
		ids := due[:min(part, len(due))]
		before := len(out.Executions)
		tried, err := s.claim(ctx, p, ids, &out)
		if err != nil && out.Timers == 0 {
			return out, err
		} else if err != nil { // those before are claimed, and wait for their time
			out.More = true
			break
		}
		if due = due[len(tried):]; p.Hot != nil {
			p.Hot.TimersTried(tried)
		}
		for i := range out.Executions[before:] {
			bytes += len(out.Executions[before+i].Input)
		}
		if len(due) > 0 && bytes >= store.MaxListedInput {
			s.due.back(due)
			out.More = true
			break
		}
	}
	return out, nil
}

// quarantined are the jobs that could not be planned a short time ago.
func (s *core) quarantined() (jobs []domain.JobID) {
	for _, job := range s.QuarantinedUntil.Keys() {
		if until, ok := s.QuarantinedUntil.Peek(job); ok && time.Now().Before(until) {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// claim makes runs of due timers in one transaction, and adds them to out. It ends at
// store.MaxListedInput, and returns those that it has tried: the first ones of due.
func (s *DueTimers) claim(ctx context.Context, p store.ClaimDueTimersParams, due []domain.TimerID, out *store.ClaimedTimers) (tried []domain.TimerID, err error) {
	slices.Sort(due)
	type claimed struct {
		found int
		tried int
		runs  []*record.ExecutionRow
		bad   map[domain.JobID]error
	}
	landed := func(ctx context.Context, last claimed) (bool, error) { return s.anyExists(ctx, last.runs) }
	c, err := db.ValueChecked(ctx, s.DB, "claim due timers", landed, func(t *db.Tx) (c claimed, err error) {
		if err := t.Guard(); err != nil {
			return c, err
		}
		timers, now, more, err := lockDueTimers(t, due, p)
		if c.tried = len(due); more {
			c.tried, _ = slices.BinarySearch(due, domain.TimerID(timers[len(timers)-1].ID+1))
		}
		if err == nil {
			err = checkClock(now, p.Latest)
		}
		if err != nil || len(timers) == 0 {
			return c, err
		}
		c.found = len(timers)
		if c.runs, c.bad, err = s.fireTimers(t, now, timers, p); err != nil {
			return c, err
		}
		return c, VerifyTerms(t, termsOf(timers, func(r *record.TimerRow) int64 { return r.Part }, p.Partitions))
	})
	if err != nil {
		return nil, err
	}
	if tried = due[:c.tried]; c.found == 0 {
		return tried, nil
	}
	s.quarantine(ctx, c.bad)
	out.Timers += c.found
	for _, row := range c.runs {
		out.Executions = append(out.Executions, row.Execution())
		s.Rows.remember(row)
	}
	return tried, nil
}

// errEnough ends a statement before its last row.
var errEnough = errors.New("the rows before have enough bytes")

// lockDueTimers passes over timers that were moved into partitions that the caller
// does not hold, since they were found. more: it has read inputs of store.MaxListedInput,
// and no further.
func lockDueTimers(t *db.Tx, due []domain.TimerID, p store.ClaimDueTimersParams) (timers []*record.TimerRow, now time.Time, more bool, err error) {
	bytes := int64(0)
	err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		if bytes >= store.MaxListedInput {
			return errEnough
		}
		r := &record.TimerRow{}
		var at int64
		err := rows.Scan(record.TimerTable.Targets(r, &at)...)
		now = db.Instant(at)
		timers = append(timers, r)
		bytes += r.Bytes()
		return err
	}, "SELECT "+t.Dialect.ClockNow()+", "+record.TimerColumns+" FROM timers"+t.Dialect.ByPrimary()+
		" WHERE id IN ("+db.IDList(due)+") AND fire_at <= "+t.Dialect.ClockNow()+fmt.Sprintf(" + %d", p.Horizon.Milliseconds())+
		" AND part IN ("+db.IDList(domain.Collect(p.Partitions, func(held *domain.PartitionTerm) int64 { return int64(held.Partition) }))+")"+
		" ORDER BY id"+t.Dialect.ForUpdateSkip())
	if errors.Is(err, errEnough) {
		more, err = true, nil
	}
	if err != nil {
		return nil, now, false, fmt.Errorf("lock timers: %w", err)
	}
	return timers, now, more, nil
}

// fireTimers makes runs of locked timers. Those of jobs that cannot be read stay as
// they are: their jobs are bad.
func (s *DueTimers) fireTimers(t *db.Tx, now time.Time, timers []*record.TimerRow, p store.ClaimDueTimersParams) (runs []*record.ExecutionRow, bad map[domain.JobID]error, err error) {
	ids := make([]domain.JobID, len(timers))
	for i, r := range timers {
		ids[i] = domain.JobID(r.JobID)
	}
	jobs, _, err := s.ShareTimerJobs(t, ids)
	if err != nil {
		return nil, nil, err
	}
	bad = map[domain.JobID]error{}
	gone := make([]*record.TimerRow, 0, len(timers))
	for _, r := range timers {
		timer := r.Timer()
		job, err := jobs.Of(timer.TenantID, timer.JobID)
		if err != nil {
			bad[timer.JobID] = err
			continue
		}
		id := domain.ExecutionID(p.NewID())
		e := timer.Run(id, now, job.Trigger, job.Spec)
		if job.State == domain.JobDeleted {
			e = timer.EndedRun(id, now, job.Trigger, job.Spec, domain.Cancelled, domain.ReasonDeleted, "the job was deleted before the timer was due")
		} else if p.Begin != nil {
			p.Begin(&e)
		}
		runs, gone = append(runs, record.ToExecutionRow(&e)), append(gone, r)
	}
	runs, err = BecomeRuns(t, gone, runs)
	return runs, bad, err
}

// BecomeRuns puts runs in the place of pending timers, which are locked: run i is
// that of timer i. It returns those that were inserted; another one of the same
// timer can be there only in a database that has lost a part of itself.
func BecomeRuns(t *db.Tx, timers []*record.TimerRow, runs []*record.ExecutionRow) ([]*record.ExecutionRow, error) {
	if len(timers) == 0 {
		return nil, nil
	}
	inserted, err := InsertNew(t, runs)
	if err != nil {
		return nil, fmt.Errorf("insert runs of timers: %w", err)
	}
	if err := copyInputs(t, timers, runs); err != nil {
		return nil, err
	}
	requests := make(map[int64]string, len(timers))
	for i, r := range timers {
		requests[runs[i].ID] = r.RequestID
	}
	if err := record.NameRuns(t, inserted, requests); err != nil {
		return nil, err
	}
	counts, labelled := record.TimerCounts{}, map[int64]int64{}
	ids := make([]int64, len(timers))
	for i, r := range timers {
		ids[i] = r.ID
		counts.Remove(r)
		if r.Labels > 0 {
			labelled[r.ID] = runs[i].ID
		}
	}
	if err := record.MoveLabels(t, labelled); err != nil {
		return nil, err
	}
	deleted, err := t.Exec(t.Ctx, "DELETE FROM timers WHERE id IN ("+db.IDList(ids)+")")
	if err == nil && deleted != int64(len(ids)) {
		err = fmt.Errorf("%d of %d locked timers were there", deleted, len(ids))
	}
	if err != nil {
		return nil, fmt.Errorf("delete timers: %w", err)
	}
	return inserted, counts.Save(t)
}

// copyInputs lets the database copy the inputs of timers that were read without them.
func copyInputs(t *db.Tx, timers []*record.TimerRow, runs []*record.ExecutionRow) error {
	var cases strings.Builder
	var ids []int64
	for i, r := range timers {
		if r.InputLeft() > 0 {
			fmt.Fprintf(&cases, " WHEN %d THEN %d", runs[i].ID, r.ID)
			ids = append(ids, runs[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := t.Exec(t.Ctx, "UPDATE executions"+t.Dialect.ByID()+" SET input = (SELECT t.input FROM timers AS t WHERE t.id = CASE executions.id"+cases.String()+" END) WHERE id IN ("+db.IDList(ids)+")")
	if err != nil {
		return fmt.Errorf("copy inputs of timers: %w", err)
	}
	return nil
}

// TimerJob is what a timer's run takes from its job.
type TimerJob struct {
	domain.Trigger
	State domain.JobState
	Kind  domain.JobKind
	Spec  *domain.JobSpec // nil: it cannot be read
	why   error
}

// TimerJobs are those of a transaction.
type TimerJobs map[domain.JobID]*TimerJob

// Of returns a job that runs can be made of. CodeNotFound: there is none in the
// tenant. CodeTenantMoving: the tenant is on its way to another cell.
func (j TimerJobs) Of(tenant domain.TenantID, id domain.JobID) (*TimerJob, error) {
	job := j[id]
	switch {
	case job != nil && job.TenantID == -tenant: // how a move parks triggers
		return nil, domain.TenantMoving.NotHere(nil)
	case job == nil || job.TenantID != tenant:
		return nil, db.NotFound("job", id)
	case job.Spec == nil:
		return nil, fmt.Errorf("read job of timers: %w", job.why)
	}
	return job, nil
}

// ShareTimerJobs reads the jobs of timers and keeps others from deleting them until
// the commit. now is the database's time then.
func (s *core) ShareTimerJobs(t *db.Tx, ids []domain.JobID) (jobs TimerJobs, now time.Time, err error) {
	return s.timerJobs(t, ids, t.Dialect.ForShare())
}

// LockTimerJobs is ShareTimerJobs for one transaction at a time.
func (s *core) LockTimerJobs(t *db.Tx, ids []domain.JobID) (jobs TimerJobs, now time.Time, err error) {
	return s.timerJobs(t, ids, t.Dialect.ForUpdate())
}

func (s *core) timerJobs(t *db.Tx, ids []domain.JobID, lock string) (jobs TimerJobs, now time.Time, err error) {
	slices.Sort(ids)
	jobs = TimerJobs{}
	err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		j := &TimerJob{}
		var at int64
		err := rows.Scan(&at, &j.JobID, &j.TenantID, &j.Executor, &j.Revision, &j.State, &j.Kind)
		jobs[j.JobID], now = j, db.Instant(at)
		return err
	}, "SELECT "+t.Dialect.Clock()+", tr.job_id, tr.tenant_id, tr.executor_id, tr.revision, j.state, j.kind FROM triggers AS tr JOIN jobs AS j ON j.id = tr.job_id"+
		" WHERE tr.job_id IN ("+db.IDList(slices.Compact(ids))+") ORDER BY tr.job_id"+lock)
	if err != nil {
		return nil, now, fmt.Errorf("read jobs of timers: %w", err)
	}
	keys := make([]record.RevisionKey, 0, len(jobs))
	for id, j := range jobs {
		keys = append(keys, record.RevisionKey{Job: id, Revision: j.Revision})
	}
	specs, err := s.Specs.Load(t.Ctx, t.Conn, keys)
	if err != nil {
		return nil, now, fmt.Errorf("load job revisions: %w", err)
	}
	for _, key := range keys {
		if cached, ok := specs[key]; ok {
			jobs[key.Job].Spec = cached.Spec
		} else {
			jobs[key.Job].why = cmp.Or(s.Specs.Why(key), fmt.Errorf("it has no revision %d", key.Revision))
		}
	}
	return jobs, now, nil
}

// EndTimerRun ends the run of a timer that is moved or replaced, if it has not
// started, and wakes who waits behind it. It returns the run as it was.
// CodeTimerStarted, CodeAlreadyFinished: it stays.
func (s *core) EndTimerRun(t *db.Tx, tenant domain.TenantID, id domain.ExecutionID, message string) (was domain.Execution, err error) {
	_, err = s.move(t, run.Request{Kind: run.Ends, IDs: []domain.ExecutionID{id}}, func(b *Batch) error {
		m := b.Find(tenant, id)
		if m == nil {
			return db.NotFound("execution", id)
		}
		was = m.E
		if err := domain.TimerMovable(&was); err != nil {
			return err
		}
		_, err := b.RequestCancel(tenant, id, domain.ReasonRescheduled, message)
		return err
	})
	return was, err
}

// CancelTimerRuns cancels runs that have not ended, and wakes who waits behind them.
// It returns those that it changed.
func (s *core) CancelTimerRuns(t *db.Tx, tenant domain.TenantID, ids []domain.ExecutionID, message string) (cancelled []domain.Execution, err error) {
	_, err = s.move(t, run.Request{Kind: run.Ends, IDs: ids}, func(b *Batch) error {
		for _, id := range ids {
			m := b.Find(tenant, id)
			if m == nil || m.E.State.Terminal() || m.E.State == domain.Cancelling {
				continue
			}
			if _, err := b.RequestCancel(tenant, id, domain.ReasonKilled, message); err != nil {
				return err
			}
			cancelled = append(cancelled, m.E)
		}
		return nil
	})
	return cancelled, err
}
