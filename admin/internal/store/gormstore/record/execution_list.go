package record

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// ExecutionFilter collects conditions on executions, and their arguments.
type ExecutionFilter struct {
	conditions []string
	args       []any
}

func (f *ExecutionFilter) Add(condition string, args ...any) {
	f.conditions = append(f.conditions, condition)
	f.args = append(f.args, args...)
}

func (f *ExecutionFilter) States(states []domain.State) {
	if len(states) == 0 {
		return
	}
	ids := make([]int64, len(states))
	for i, st := range states {
		ids[i] = int64(st)
	}
	f.Add("state IN (" + db.IDList(ids) + ")")
}

// PrimaryIndex stands for the primary key.
const PrimaryIndex = ""

// ExecutionsByIndex reads the first ones in the order of an index.
func ExecutionsByIndex(ctx context.Context, q db.Querier, d db.Dialect, index string, f *ExecutionFilter, order string, limit int) ([]*ExecutionRow, error) {
	return ScanExecutions(ctx, q, listStatement(d, index, f, order, limit), f.args...)
}

func listStatement(d db.Dialect, index string, f *ExecutionFilter, order string, limit int) string {
	by := d.ByPrimary()
	if index != PrimaryIndex {
		by = d.ByIndex(index)
	}
	return fmt.Sprintf("SELECT %s FROM executions%s WHERE %s ORDER BY %s LIMIT %d",
		ExecutionListColumns, by, strings.Join(f.conditions, " AND "), order, limit)
}

// PhasesOf returns the phases in which runs in these states may be.
func PhasesOf(states []domain.State) []int64 {
	var out []int64
	for _, st := range states {
		switch {
		case st == domain.Failed, st == domain.TimedOut, st == domain.Cancelled:
			out = append(out, int64(st), PhaseLingering)
		case st.Terminal():
			out = append(out, int64(st))
		case st == domain.Due:
			out = append(out, PhaseAlive, PhaseCold)
		default:
			out = append(out, PhaseAlive)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ExecutionsByPhase reads the newest ones of some phases.
func ExecutionsByPhase(ctx context.Context, q db.Querier, d db.Dialect, phases []int64, f *ExecutionFilter, limit int) ([]*ExecutionRow, error) {
	return executionsOfEach(ctx, q, d, "ix_executions_phase", "phase", phases, f, limit)
}

// ExecutionsByExecutor reads the newest ones of some executors.
func ExecutionsByExecutor(ctx context.Context, q db.Querier, d db.Dialect, executors []domain.ExecutorID, f *ExecutionFilter, limit int) ([]*ExecutionRow, error) {
	return executionsOfEach(ctx, q, d, "ix_executions_executor", "executor_id", executors, f, limit)
}

// executionsOfEach reads the newest ones that have one of the values in a column, with one
// bounded scan of the index for each value.
func executionsOfEach[V ~int64](ctx context.Context, q db.Querier, d db.Dialect, index, column string, values []V, f *ExecutionFilter, limit int) ([]*ExecutionRow, error) {
	if len(values) == 0 {
		return nil, nil
	}
	var terms []string
	var args []any
	for _, v := range values {
		one := &ExecutionFilter{conditions: slices.Clone(f.conditions)}
		one.Add(fmt.Sprintf("%s = %d", column, v))
		terms = append(terms, d.Bounded(listStatement(d, index, one, "id DESC", limit)))
		args = append(args, f.args...)
	}
	rows, err := ScanExecutions(ctx, q, strings.Join(terms, " UNION ALL "), args...)
	slices.SortFunc(rows, func(a, b *ExecutionRow) int { return int(b.ID - a.ID) })
	return rows[:min(len(rows), limit)], err
}

// ExecutionsByJob continues after the fire time of the cursor's row, or after the
// time inside its id when retention has removed the row.
func ExecutionsByJob(ctx context.Context, q db.Querier, d db.Dialect, p store.ListExecutionsParams, f *ExecutionFilter, limit int) ([]*ExecutionRow, error) {
	f.States(p.States)
	if p.Before != 0 {
		fireAt, key := db.Millis(domain.IDTime(int64(p.Before))), ""
		row, err := ExecutionByID(ctx, q, p.Tenant, p.Before)
		if err != nil {
			return nil, err
		}
		if row != nil {
			fireAt, key = row.FireAt, row.OccurrenceKey
		}
		f.Add("fire_at <= ? AND (fire_at < ? OR occurrence_key < ?)", fireAt, fireAt, key)
	}
	return ExecutionsByIndex(ctx, q, d, "uq_executions_occurrence", f, "fire_at DESC, occurrence_key DESC", limit)
}

// ScanExecutions reads the rows of a statement that names ExecutionColumns, or
// ExecutionListColumns.
func ScanExecutions(ctx context.Context, q db.Querier, statement string, args ...any) ([]*ExecutionRow, error) {
	var out []*ExecutionRow
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		r := &ExecutionRow{}
		out = append(out, r)
		return rows.Scan(ExecutionTable.Targets(r)...)
	}, statement, args...)
	return out, err
}

// ExecutionByID reads one execution outside of a transaction.
func ExecutionByID(ctx context.Context, q db.Querier, tenant domain.TenantID, id domain.ExecutionID) (*ExecutionRow, error) {
	var out *ExecutionRow
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		out = &ExecutionRow{}
		return rows.Scan(ExecutionTable.Targets(out)...)
	}, "SELECT "+ExecutionColumns+" FROM executions WHERE id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil {
		return nil, fmt.Errorf("read execution: %w", err)
	}
	return out, nil
}
