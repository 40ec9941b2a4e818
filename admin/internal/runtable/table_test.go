package runtable

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// shelf is a place that counts what becomes of its run.
type shelf struct {
	stage  Stage
	fence  int64
	firm   bool
	inside bool
}

func (s *shelf) Stage() Stage                     { return s.stage }
func (s *shelf) Removed()                         { s.inside = false }
func (s *shelf) Yields(to *domain.Execution) bool { return !s.firm && to.Fence >= s.fence }
func (s *shelf) Attended(time.Time) bool          { return s.stage != Early }

// TestARunHasOnePlace: whoever moves it takes it out of where it was, and nobody
// takes it from a place that it has left.
func TestARunHasOnePlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table
		var shelves []*shelf
		at := map[domain.ExecutionID]*shelf{}
		tenantOf := func(id domain.ExecutionID) domain.TenantID { return domain.TenantID(id % 3) }
		ids := rapid.Custom(func(t *rapid.T) domain.ExecutionID { return domain.ExecutionID(rapid.IntRange(1, 5).Draw(t, "id")) })
		fresh := func(t *rapid.T) *shelf {
			s := &shelf{
				stage: Stage(rapid.IntRange(int(Timed), int(Early)).Draw(t, "stage")), fence: rapid.Int64Range(0, 2).Draw(t, "fence"),
				firm: rapid.Bool().Draw(t, "firm"),
			}
			shelves = append(shelves, s)
			return s
		}
		t.Repeat(map[string]func(*rapid.T){
			"move": func(t *rapid.T) {
				id, to := ids.Draw(t, "run"), fresh(t)
				run := &domain.Execution{ID: id, TenantID: tenantOf(id), Fence: to.fence}
				was := at[id]
				table.Lock()
				moved := table.Move(run, to)
				table.Unlock()
				require.Equal(t, was == nil || was.Yields(run), moved)
				if moved {
					at[id], to.inside = to, true
				}
			},
			"pass": func(t *rapid.T) {
				if len(shelves) == 0 {
					return
				}
				id, from := ids.Draw(t, "run"), shelves[rapid.IntRange(0, len(shelves)-1).Draw(t, "from")]
				var to Place
				var next *shelf
				if rapid.Bool().Draw(t, "on") {
					next = fresh(t)
					to = next
				}
				table.Lock()
				passed := table.Pass(id, from, to)
				table.Unlock()
				require.Equal(t, at[id] == from, passed)
				if passed && next != nil {
					at[id], next.inside = next, true
				} else if passed {
					delete(at, id)
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(at), table.Len())
				inside, pending, queued, here := 0, map[domain.TenantID]int{}, map[domain.TenantID]int{}, 0
				for _, s := range shelves {
					if s.inside {
						inside++
					}
				}
				for id, s := range at {
					require.True(t, s.inside)
					if s.stage <= Queued {
						pending[tenantOf(id)]++
					}
					if s.stage == Queued {
						queued[tenantOf(id)]++
					}
					if s.stage != Early {
						here++
					}
				}
				require.Equal(t, len(at), inside)
				load := table.Load()
				require.Len(t, load.Pending, len(pending))
				for tenant, n := range load.Pending {
					require.Equal(t, pending[tenant], n)
				}
				require.Len(t, load.Queued, len(queued))
				for tenant, n := range load.Queued {
					require.Equal(t, queued[tenant], n)
				}
				require.Len(t, table.Unattended([]domain.ExecutionID{1, 2, 3, 4, 5}, time.Time{}), 5-here)
			},
		})
	})
}
