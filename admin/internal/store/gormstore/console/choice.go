package console

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

const (
	// usesRead is how many of a job's newest rows are looked through for its
	// last uses: some of them were not offered yet, or after the run.
	usesRead = 4 * domain.RoutingWindow
	// runningRead bounds the rows of an executor, and the living ones of its
	// tenant, that are looked through for what ran at an instant.
	runningRead = 2000
	// choiceSlack is how far the nodes' clocks may be apart.
	choiceSlack = 100 * time.Millisecond
)

// FindChoice reads along the occurrence index of the job, the executor's index,
// and the living phase of the tenant, each of them bounded.
func (s *Runs) FindChoice(ctx context.Context, p store.FindChoiceParams) (out domain.Choice, err error) {
	err = s.Look(ctx, "find choice", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		uses, err := s.usesBefore(ctx, q, p)
		if err != nil {
			return err
		}
		running, err := s.runningAt(ctx, q, p)
		out = domain.Choice{Uses: uses, Running: running}
		return err
	})
	return out, err
}

func (s *Runs) usesBefore(ctx context.Context, q db.Querier, p store.FindChoiceParams) ([]domain.Use, error) {
	var out []domain.Use
	at := db.Millis(p.At)
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var id domain.ExecutionID
		var instance domain.InstanceID
		var offered int64
		err := rows.Scan(&id, &instance, &offered)
		if instance != 0 && id != p.Run && offered > 0 && offered <= at {
			out = append(out, domain.Use{Instance: instance, OfferedAt: db.Instant(offered)})
		}
		return err
	}, "SELECT id, instance_id, offered_at FROM executions"+s.Dialect.ByIndex("uq_executions_occurrence")+
		" WHERE job_id = ? AND tenant_id = ? AND fire_at <= ? ORDER BY fire_at DESC LIMIT ?", int64(p.Job), int64(p.Tenant), at, usesRead)
	slices.SortStableFunc(out, func(a, b domain.Use) int { return b.OfferedAt.Compare(a.OfferedAt) })
	return out[:min(len(out), domain.RoutingWindow)], err
}

// stay is a run's time on an instance; until 0: it is there still.
type stay struct {
	id              domain.ExecutionID
	fence, instance int64
	since, until    int64
}

func (s *Runs) runningAt(ctx context.Context, q db.Querier, p store.FindChoiceParams) (map[domain.InstanceID]int, error) {
	const columns = "SELECT id, fence, instance_id, offered_at, CASE WHEN returned_at > finished_at THEN returned_at ELSE finished_at END, state, lingers FROM executions"
	found := map[domain.ExecutionID]stay{}
	add := func(rows *sql.Rows) error {
		var one stay
		var state, lingers int64
		if err := rows.Scan(&one.id, &one.fence, &one.instance, &one.since, &one.until, &state, &lingers); err != nil {
			return err
		}
		if lingers != 0 || domain.State(state).OnInstance() {
			one.until = 0
		}
		found[one.id] = one
		return nil
	}
	err := db.Query(ctx, q, add, columns+s.Dialect.ByIndex("ix_executions_executor")+" WHERE tenant_id = ? AND executor_id = ? AND id < ? ORDER BY id DESC LIMIT ?",
		int64(p.Tenant), int64(p.Executor), domain.IDFloor(p.At.Add(choiceSlack)), runningRead)
	for _, phase := range []int64{record.PhaseAlive, record.PhaseLingering, record.PhasePart + record.PhaseAlive, record.PhasePart + record.PhaseLingering} {
		if err != nil {
			return nil, err
		}
		err = db.Query(ctx, q, add, columns+s.Dialect.ByIndex("ix_executions_phase")+" WHERE tenant_id = ? AND phase = ? AND id < ? AND executor_id = ? AND offered_at > 0 ORDER BY id DESC LIMIT ?",
			int64(p.Tenant), phase, domain.IDFloor(p.At.Add(choiceSlack)), int64(p.Executor), runningRead)
	}
	if err != nil {
		return nil, err
	}
	delete(found, p.Run)
	all := make([]stay, 0, len(found))
	var again []domain.ExecutionID // whose earlier attempts were elsewhere
	for _, one := range found {
		all = append(all, one)
		if one.fence > 1 {
			again = append(again, one.id)
		}
	}
	earlier, err := attemptsOf(ctx, q, p.Tenant, again)
	return countStays(append(all, earlier...), db.Millis(p.At)), err
}

func attemptsOf(ctx context.Context, q db.Querier, tenant domain.TenantID, ids []domain.ExecutionID) (out []stay, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	slices.SortFunc(ids, cmp.Compare[domain.ExecutionID])
	return db.Select(ctx, q, func(one *stay) []any { return []any{&one.id, &one.fence, &one.instance, &one.since, &one.until} },
		fmt.Sprintf("SELECT execution_id, fence, instance_id, offered_at, finished_at FROM attempts WHERE execution_id IN (%s) AND tenant_id = %d", db.IDList(ids), tenant))
}

// countStays counts what was there at an instant. The attempt that a run's row
// has may be in the archive too.
func countStays(all []stay, at int64) map[domain.InstanceID]int {
	type attempt struct {
		id    domain.ExecutionID
		fence int64
	}
	seen, out := map[attempt]bool{}, map[domain.InstanceID]int{}
	for _, one := range all {
		k := attempt{one.id, one.fence}
		if one.instance == 0 || seen[k] || one.since == 0 || one.since > at || one.until != 0 && one.until <= at {
			continue
		}
		seen[k] = true
		out[domain.InstanceID(one.instance)]++
	}
	return out
}
