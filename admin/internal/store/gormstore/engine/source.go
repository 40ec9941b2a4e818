package engine

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// PartsOf is the condition for the parts of a parent, a range of
// uq_executions_occurrence, with its arguments.
func PartsOf(parent *domain.Execution) (condition string, args []any) {
	from, below := domain.PartKeys(parent.ID)
	return "job_id = ? AND fire_at = ? AND occurrence_key >= ? AND occurrence_key < ? AND tenant_id = ? AND parent_id = ?",
		[]any{int64(parent.JobID), db.Millis(parent.FireAt), from, below, int64(parent.TenantID), int64(parent.ID)}
}

// heldRuns is how many runs before the head of a queue are looked through.
const heldRuns = 20

// HeldSince implements run.Source. It reads a few rows of the unique index.
func (b *Batch) HeldSince(job domain.JobID, before time.Time) (since time.Time, err error) {
	err = db.Query(b.Tx.Ctx, b.Tx.Conn, func(rows *sql.Rows) error { return rows.Scan(db.At(&since)) }, fmt.Sprintf(
		"SELECT COALESCE(MAX(granted_at), 0) FROM (SELECT granted_at, holds_slot FROM executions%s WHERE job_id = %d AND fire_at < %d AND parent_id = 0 ORDER BY fire_at DESC LIMIT %d) AS newest WHERE holds_slot = 1",
		b.Tx.Dialect.ByIndex("uq_executions_occurrence"), job, db.Millis(before), heldRuns))
	if err != nil {
		return time.Time{}, fmt.Errorf("look for holders of a slot: %w", err)
	}
	return since, nil
}

// Known implements run.Source: parents are looked up with their parts.
func (b *Batch) Known(id domain.ExecutionID) bool {
	_, there := b.known[id]
	return there
}

// NewID implements run.Source.
func (b *Batch) NewID() (domain.ExecutionID, error) {
	id, err := b.s.NewID()
	return domain.ExecutionID(id), err
}

// Family implements run.Source. While a part lives, no more is said than that: so
// the shards of a large family end without reading all of it each time.
func (b *Batch) Family(p *run.Move) (domain.Family, error) {
	moved, living := b.Moves.LivingPart(p)
	if living {
		return domain.Family{Living: 1}, nil
	}
	condition, args := PartsOf(&p.E)
	others := ""
	if len(moved) > 0 {
		others = " AND id NOT IN (" + db.IDList(moved) + ")"
	}
	from := " FROM executions" + b.Tx.Dialect.ByIndex("uq_executions_occurrence") + " WHERE " + condition
	err := db.Query(b.Tx.Ctx, b.Tx.Conn, func(rows *sql.Rows) error {
		living = true
		var id int64
		return rows.Scan(&id)
	}, "SELECT id"+from+others+fmt.Sprintf(" AND state < %d LIMIT 1", domain.Succeeded), args...)
	if err != nil || living {
		return domain.Family{Living: 1}, err
	}
	out := domain.Family{Shards: map[domain.State]int{}}
	err = db.Query(b.Tx.Ctx, b.Tx.Conn, func(rows *sql.Rows) error {
		var e domain.Execution
		if err := rows.Scan(&e.ID, &e.Part, &e.State, &e.Lingers); err != nil {
			return err
		}
		if m := b.Moves[e.ID]; m != nil {
			e.State, e.Lingers = m.E.State, m.E.Lingers
		}
		out.Add(&e)
		return nil
	}, "SELECT id, role, state, lingers"+from, args...)
	return out, err
}

// Results implements run.Source, in the order of the shards.
func (b *Batch) Results(p *run.Move, family domain.Family) ([]byte, error) {
	summary := domain.NewShardResults(&p.E, family)
	condition, args := PartsOf(&p.E)
	err := db.Query(b.Tx.Ctx, b.Tx.Conn, func(rows *sql.Rows) error {
		r := &record.ExecutionRow{}
		if err := rows.Scan(record.ExecutionTable.Targets(r)...); err != nil {
			return err
		}
		e := b.Moves.AsMoved(r.Execution())
		summary.Add(&e)
		return nil
	}, "SELECT "+record.ExecutionColumns+" FROM executions"+b.Tx.Dialect.ByIndex("uq_executions_occurrence")+" WHERE "+condition+
		fmt.Sprintf(" AND role = %d ORDER BY occurrence_key", domain.PartShard), args...)
	if err != nil {
		return nil, err
	}
	return summary.JSON()
}

// TriggerRevision implements run.Source.
func (b *Batch) TriggerRevision(job domain.JobID) (revision int64, err error) {
	err = db.Query(b.Tx.Ctx, b.Tx.Conn, func(rows *sql.Rows) error { return rows.Scan(&revision) },
		"SELECT revision FROM triggers WHERE job_id = ?", int64(job))
	if err != nil {
		return 0, fmt.Errorf("read revision of the trigger: %w", err)
	}
	return revision, nil
}

// Serving implements run.Source: the instances with a living lease that serve a
// run's handler, have the labels that it requires and take new work.
func (b *Batch) Serving(m *run.Move) (out []domain.InstanceID, err error) {
	err = db.Query(b.Tx.Ctx, b.Tx.Conn, func(rows *sql.Rows) error {
		var id domain.InstanceID
		var handlers, text string
		if err := rows.Scan(&id, &handlers, &text); err != nil {
			return err
		}
		var labels map[string]string
		var names []string
		if text != "" && json.Unmarshal([]byte(text), &labels) != nil || json.Unmarshal([]byte(handlers), &names) != nil {
			return nil // nobody knows what it serves
		}
		if slices.Contains(names, m.Spec.Handler) && (m.Spec.Require.Empty() || m.Spec.Require.Matches(labels)) {
			out = append(out, id)
		}
		return nil
	}, "SELECT id, handlers, labels FROM instances WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0 AND lease_until > ? AND draining = 0 AND drained_at = 0 ORDER BY id",
		int64(m.E.TenantID), int64(m.E.Executor), db.Millis(b.Now))
	if err != nil {
		return nil, fmt.Errorf("find instances to spread over: %w", err)
	}
	return out, nil
}

// Stopped implements run.Source.
func (b *Batch) Stopped(jobs []domain.JobID) (run.JobStates, error) {
	return stoppedJobs(b.Tx.Ctx, b.Tx.Conn, jobs)
}

func stoppedJobs(ctx context.Context, q db.Querier, jobs []domain.JobID) (run.JobStates, error) {
	// Runs of held jobs wait for the enabling.
	states, err := db.Pairs[domain.JobID, domain.JobState](ctx, q, "SELECT id, state FROM jobs WHERE id IN ("+db.IDList(jobs)+") AND held_by = 0")
	if err != nil {
		return nil, fmt.Errorf("read states of jobs: %w", err)
	}
	maps.DeleteFunc(states, func(_ domain.JobID, state domain.JobState) bool { return state == domain.JobEnabled })
	return states, nil
}

// Leases implements run.Source.
func (b *Batch) Leases(ids []domain.InstanceID) (map[domain.InstanceID]time.Time, error) {
	out := map[domain.InstanceID]time.Time{}
	var over []domain.InstanceID
	err := db.Query(b.Tx.Ctx, b.Tx.Conn, func(rows *sql.Rows) error {
		var id domain.InstanceID
		var until time.Time
		var gone int64
		err := rows.Scan(&id, db.At(&until), &gone)
		out[id] = until
		if gone == 0 && b.Now.After(until.Add(domain.LeaseMargin)) {
			over = append(over, id)
		}
		return err
	}, "SELECT id, lease_until, gone_at FROM instances WHERE id IN ("+db.IDList(ids)+")")
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	if len(over) == 0 {
		return out, nil
	}
	signs, _, err := signsOfLife(b.Tx)
	if err != nil {
		return nil, err
	}
	hold := signs.LeasesHold(b.Now)
	for _, id := range over {
		if hold.After(out[id]) {
			out[id] = hold
		}
	}
	return out, nil
}
