package record

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// examinedRows bounds the rows that one count reads.
const examinedRows = 20_000

// ExecutionCount counts what a filter matches, by an index.
type ExecutionCount struct {
	Filter *ExecutionFilter
	// Index has the columns of Range, and then Order.
	Index, Order string
	// Range are the conditions that the index answers alone.
	Range []string
	// Column and Values split the index: each value is counted for itself.
	Column string
	Values []int64
}

// Total counts up to store.MaxTotal rows. It reads the newest examinedRows at most, of all values
// together.
func (c *ExecutionCount) Total(ctx context.Context, q db.Querier, d db.Dialect) (total store.Total, err error) {
	examined := examinedRows
	for _, v := range c.Values {
		n, more, err := c.one(ctx, q, d, v, store.MaxTotal+1-total.Count, &examined)
		if err != nil {
			return store.Total{}, err
		}
		total.Count, total.More = total.Count+n, total.More || more
		if total.Count > store.MaxTotal || examined <= 0 {
			total.More = true
			break
		}
	}
	total.Count = min(total.Count, store.MaxTotal)
	return total, nil
}

// Floor is the highest id that a list of the newest runs does not look at, if one of the values
// has more than examinedRows rows below before; 0: it may look at all.
func (c *ExecutionCount) Floor(ctx context.Context, q db.Querier, d db.Dialect, before domain.ExecutionID) (floor domain.ExecutionID, err error) {
	for _, v := range c.Values {
		ranged := strings.Join(append(slices.Clone(c.Range), fmt.Sprintf("%s = %d", c.Column, v)), " AND ")
		if before != 0 {
			ranged += fmt.Sprintf(" AND id < %d", before)
		}
		found, err := db.SelectColumn[domain.ExecutionID](ctx, q, fmt.Sprintf("SELECT id FROM executions%s WHERE %s ORDER BY id DESC LIMIT 1 OFFSET %d", d.ByIndex(c.Index), ranged, examinedRows))
		if err != nil {
			return 0, err
		}
		for _, id := range found {
			floor = max(floor, id)
		}
	}
	return floor, nil
}

// one counts one value. more: there are rows that it has not read.
func (c *ExecutionCount) one(ctx context.Context, q db.Querier, d db.Dialect, value int64, limit int, examined *int) (n int, more bool, err error) {
	by, mine := d.ByIndex(c.Index), fmt.Sprintf("%s = %d", c.Column, value)
	ranged := strings.Join(append(slices.Clone(c.Range), mine), " AND ")
	entries, err := db.SelectColumn[int](ctx, q, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT %s FROM executions%s WHERE %s LIMIT %d) AS e", c.Order, by, ranged, *examined+1))
	if err != nil || len(entries) == 0 || entries[0] == 0 {
		return 0, false, err
	}
	conditions := append(slices.Clone(c.Filter.conditions), mine)
	if more = entries[0] > *examined; more {
		floor, err := db.SelectColumn[int64](ctx, q, fmt.Sprintf("SELECT %s FROM executions%s WHERE %s ORDER BY %s DESC LIMIT 1 OFFSET %d", c.Order, by, ranged, c.Order, *examined))
		if err != nil {
			return 0, false, err
		}
		for _, least := range floor {
			conditions = append(conditions, fmt.Sprintf("%s > %d", c.Order, least))
		}
	}
	*examined -= entries[0]
	counts, err := db.SelectColumn[int](ctx, q, fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 FROM executions%s WHERE %s LIMIT %d) AS e", by, strings.Join(conditions, " AND "), limit), c.Filter.args...)
	if err != nil || len(counts) == 0 {
		return 0, false, err
	}
	return counts[0], more, nil
}
