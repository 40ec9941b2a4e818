package record

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// countSlots is the number of rows that hold the count of a job. A writer takes any of
// them, at the end of its transaction.
const countSlots = 32

// TimerCounts is by how much the pending timers of jobs change, and their bytes.
type TimerCounts map[TimerOwner]TimerChange

// TimerOwner is the job of counted timers.
type TimerOwner struct{ Tenant, Job int64 }

// TimerChange is a change of timer_counts.
type TimerChange struct{ Pending, Bytes int64 }

// Add counts a timer that is set.
func (c TimerCounts) Add(r *TimerRow) { c.change(r, 1) }

// Remove counts a timer that is pending no more.
func (c TimerCounts) Remove(r *TimerRow) { c.change(r, -1) }

func (c TimerCounts) change(r *TimerRow, by int64) {
	owner := TimerOwner{r.TenantID, r.JobID}
	change := c[owner]
	c[owner] = TimerChange{change.Pending + by, change.Bytes + by*r.Bytes()}
}

// Save writes the changes. It comes last but for the terms of partitions, because the
// slots are locked until the commit.
func (c TimerCounts) Save(t *db.Tx) error {
	owners := make([]TimerOwner, 0, len(c))
	for owner, by := range c {
		if by != (TimerChange{}) {
			owners = append(owners, owner)
		}
	}
	if len(owners) == 0 {
		return nil
	}
	slices.SortFunc(owners, func(a, b TimerOwner) int { return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Job, b.Job)) })
	slot := rand.N(countSlots)
	values := make([]string, len(owners))
	for i, o := range owners {
		values[i] = fmt.Sprintf("(%d, %d, %d, %d, %d)", o.Tenant, o.Job, slot, c[o].Pending, c[o].Bytes)
	}
	_, err := t.Exec(t.Ctx, "INSERT INTO timer_counts (tenant_id, job_id, slot, pending, bytes) VALUES "+strings.Join(values, ", ")+
		t.Dialect.OnDuplicate("tenant_id, job_id, slot")+" pending = timer_counts.pending + "+t.Dialect.Inserted("pending")+
		", bytes = timer_counts.bytes + "+t.Dialect.Inserted("bytes"))
	if err != nil {
		return fmt.Errorf("count timers: %w", err)
	}
	return nil
}
