package gormstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
)

// damage is what somebody did to the rows of the first of three jobs or runs.
type damage struct {
	name string
	sql  string // %[1]d is the run, %[2]d its job
	// mended: nothing is lost by it.
	mended bool
}

var damages = []damage{
	{name: "revision gone", sql: "DELETE FROM job_revisions WHERE job_id = %[2]d"},
	{name: "revision cut", sql: `UPDATE job_revisions SET spec = '{"name":"jo' WHERE job_id = %[2]d`},
	{name: "revision of another kind", sql: "UPDATE job_revisions SET spec = '[1]' WHERE job_id = %[2]d"},
	{name: "revision that never was", sql: "UPDATE executions SET revision = 77 WHERE id = %[1]d"},
	{name: "state that is none", sql: "UPDATE executions SET state = 9 WHERE id = %[1]d"},
	{name: "state past all", sql: "UPDATE executions SET state = 99 WHERE id = %[1]d"},
	{name: "slot gone", sql: "DELETE FROM job_slots WHERE job_id = %[2]d", mended: true},
}

// damaged runs a test for each damage on each database. Another node has the
// store: it has never seen what was there before.
func damaged(t *testing.T, test func(*testing.T, damage, *twoNodes)) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) { test(t, d, n) })
		})
	}
}

func (n *twoNodes) damage(d damage, e domain.Execution) {
	n.t.Helper()
	statement := fmt.Sprintf(d.sql+" AND %[1]d = %[1]d AND %[2]d = %[2]d", e.ID, e.JobID)
	_, err := n.here.Write.ExecContext(n.t.Context(), statement)
	require.NoError(n.t, err)
	n.here.Specs.Entries.Purge()
	n.here.Rows.Entries.Purge()
	n.here.Rows.Refs.Purge()
}

// aside looks at a run that was set aside, and who was told.
func (n *twoNodes) aside(e domain.Execution) {
	n.t.Helper()
	var state, reason, message, phase, wake string
	require.NoError(n.t, n.here.Write.QueryRowContext(n.t.Context(),
		"SELECT state, reason, message, phase, COALESCE(wake_at, 0) FROM executions WHERE id = ?", int64(e.ID)).Scan(&state, &reason, &message, &phase, &wake))
	require.Equal(n.t, []string{"11", "set_aside", "11", "0"}, []string{state, reason, phase, wake}, message)
	require.NotEmpty(n.t, message)
	require.ElementsMatch(n.t, []string{"row_set_aside", "run_failed"}, n.told())
}

func (n *twoNodes) told() (kinds []string) {
	n.t.Helper()
	rows, err := n.here.ReadOutbox(n.t.Context(), domain.TopicEvents, 1000)
	require.NoError(n.t, err)
	for _, r := range rows {
		list, err := domain.DecodeList[domain.AlertEvent](r.Body)
		require.NoError(n.t, err)
		for _, e := range list {
			kinds = append(kinds, string(e.Kind))
		}
	}
	return kinds
}

// Whatever is wrong with one run, the sweep moves the others, of other jobs and
// tenants.
func TestSweepMovesAllButABadRow(t *testing.T) {
	damaged(t, func(t *testing.T, d damage, n *twoNodes) {
		planned := n.plan(1)
		age(t, n.here, planned)
		n.damage(d, planned[0])
		swept, err := n.here.SweepExecutions(t.Context(), store.SweepParams{Partitions: everyPartition(), Limit: 100, Hold: time.Second})
		require.NoError(t, err)
		if d.mended {
			require.Len(t, swept.Dispatch, 3)
			require.Empty(t, n.told())
			return
		}
		require.Len(t, swept.Dispatch, 2)
		n.aside(planned[0])
		swept, err = n.here.SweepExecutions(t.Context(), store.SweepParams{Partitions: everyPartition(), Limit: 100, Hold: time.Second})
		require.NoError(t, err)
		require.Zero(t, swept.Seen, "it is not found again")
	})
}

func age(t *testing.T, s *Store, list []domain.Execution) {
	t.Helper()
	for _, e := range list {
		require.NoError(t, newAging(s).Age(t.Context(), e.ID, time.Hour))
	}
	_, err := s.Write.ExecContext(t.Context(), "UPDATE executions SET expire_at = 0")
	require.NoError(t, err)
}

// A batch of offers, grants and results loses nothing but the bad one.
func TestRunsGoOnBesideABadRow(t *testing.T) {
	damaged(t, func(t *testing.T, d damage, n *twoNodes) {
		planned := n.plan(2)
		ended := n.finish(n.here, n.grant(n.here, n.offer(n.here, planned[:3]...)...)...)
		require.Equal(t, store.FinishStored, ended[0].Code)
		n.damage(d, planned[3])
		offered := n.offer(n.here, planned[3:]...)
		if d.mended {
			require.Equal(t, store.OfferMade, offered[0].Status)
			require.Equal(t, 3, n.holders())
			return
		}
		require.Equal(t, store.OfferGone, offered[0].Status)
		n.aside(planned[3])
		granted := n.grant(n.here, offered[1:]...)
		for _, f := range n.finish(n.here, granted...) {
			require.Equal(t, store.FinishStored, f.Code)
		}
	})
}

// A result settles the others of its batch, and gives the bad run's slot back.
func TestResultsAreStoredBesideABadRow(t *testing.T) {
	damaged(t, func(t *testing.T, d damage, n *twoNodes) {
		planned := n.plan(1)
		granted := n.grant(n.here, n.offer(n.here, planned...)...)
		n.damage(d, planned[0])
		ended := n.finish(n.here, granted...)
		for _, f := range ended[1:] {
			require.Equal(t, store.FinishStored, f.Code)
		}
		if d.mended {
			require.Equal(t, store.FinishStored, ended[0].Code)
		} else {
			require.Equal(t, store.FinishNotFound, ended[0].Code)
			n.aside(planned[0])
		}
		require.Zero(t, n.holders())
	})
}

// A trigger that cannot be planned keeps its fire times, and no other from being
// planned; put right, it goes on where it stood.
func TestClaimPlansAllButABadTrigger(t *testing.T) {
	spoil := map[string]func(*twoNodes, domain.JobID) (undo func()){
		"revision gone": func(n *twoNodes, job domain.JobID) func() {
			n.exec("UPDATE job_revisions SET revision = 50 WHERE job_id = ?", int64(job))
			return func() { n.exec("UPDATE job_revisions SET revision = 1 WHERE job_id = ?", int64(job)) }
		},
		"revision cut": func(n *twoNodes, job domain.JobID) func() {
			var spec string
			require.NoError(n.t, n.here.Write.QueryRowContext(n.t.Context(), "SELECT spec FROM job_revisions WHERE job_id = ?", int64(job)).Scan(&spec))
			n.exec("UPDATE job_revisions SET spec = ? WHERE job_id = ?", spec[:len(spec)/2], int64(job))
			return func() { n.exec("UPDATE job_revisions SET spec = ? WHERE job_id = ?", spec, int64(job)) }
		},
		"planning fails":  func(*twoNodes, domain.JobID) func() { return nil },
		"planning panics": func(*twoNodes, domain.JobID) func() { return nil },
	}
	for name, spoil := range spoil {
		t.Run(name, func(t *testing.T) {
			onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
				bad := n.jobs[1]
				undo := spoil(n, bad)
				n.here.Specs.Entries.Purge()
				broken := undo == nil
				plan := func(now time.Time, tr domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
					switch {
					case !broken || tr.JobID != bad:
					case name == "planning panics":
						panic("no such day")
					default:
						return store.TriggerPlan{Err: errors.New("no such day")}
					}
					return n.planOne(now, tr, spec)
				}
				claim := func() store.ClaimedTriggers {
					got, err := n.here.ClaimDueTriggers(t.Context(), store.ClaimDueTriggersParams{Partitions: n.held, Limit: 3, Plan: plan})
					require.NoError(t, err)
					return got
				}
				for range 3 {
					require.Len(t, claim().Executions, 2)
				}
				require.Equal(t, []string{"row_set_aside"}, n.told())
				job, err := n.here.FindJob(t.Context(), n.tenant, bad)
				require.NoError(t, err, "it can be seen, and edited")
				if undo != nil {
					require.Contains(t, job.Spec.Description, "cannot be run")
					undo()
				}
				broken = false
				n.here.QuarantinedUntil.Purge() // its minute is over
				got := claim()
				require.Len(t, got.Executions, 3)
				for _, e := range got.Executions {
					if e.JobID == bad {
						require.Equal(t, job.NextFireAt, e.FireAt, "no fire time was passed over")
					}
				}
			})
		})
	}
}

// Timers that come to a node before it has heard that their tenant is on its way wait
// for their tenant: nobody is told, and once it has come they are claimed.
func TestClaimPassesOverTimersThatMove(t *testing.T) {
	for name, move := range map[string]struct{ away, come string }{
		"triggers are not there": {"DELETE FROM triggers WHERE job_id = ? AND %d <> 0", "INSERT INTO triggers SELECT * FROM triggers_moved WHERE job_id = ? AND %d <> 0"},
		"triggers are parked":    {"UPDATE triggers SET tenant_id = -tenant_id WHERE job_id = ? AND tenant_id = %d", "UPDATE triggers SET tenant_id = -tenant_id WHERE job_id = ? AND tenant_id = -%d"},
	} {
		t.Run(name, func(t *testing.T) {
			onTwoNodes(t, domain.BlockParallel, func(t *testing.T, n *twoNodes) {
				n.timers(3, time.Now())
				var job domain.JobID
				require.NoError(t, n.here.Write.QueryRowContext(t.Context(), "SELECT MIN(job_id) FROM timers").Scan(&job))
				tenant := int64(n.tenant)
				n.exec("CREATE TABLE triggers_moved AS SELECT * FROM triggers WHERE job_id <> ?", 0)
				n.exec(fmt.Sprintf("UPDATE tenants SET state = %d WHERE id = ?", domain.TenantMoving), tenant)
				n.exec(fmt.Sprintf(move.away, tenant), int64(job))
				claim := func() []domain.Execution {
					got, err := n.here.ClaimDueTimers(t.Context(), store.ClaimDueTimersParams{Partitions: n.held, Limit: 10, NewID: n.ids.Next})
					require.NoError(t, err)
					return got.Executions
				}
				require.Empty(t, claim())
				require.Empty(t, n.told())
				until, passedOver := n.here.QuarantinedUntil.Get(job)
				require.True(t, passedOver)
				require.Less(t, time.Until(until), 2*time.Second, "as long as it takes to hear of the move")
				n.exec(fmt.Sprintf(move.come, tenant), int64(job))
				n.here.QuarantinedUntil.Purge() // its second is over
				require.Len(t, claim(), 3)
			})
		})
	}
}

func (n *twoNodes) exec(statement string, args ...any) {
	n.t.Helper()
	_, err := n.here.Write.ExecContext(n.t.Context(), statement, args...)
	require.NoError(n.t, err)
}

// Where the code does not say whom it was deciding, halves are tried. A fault
// that comes of no single run sets none aside.
func TestWhoeverPanicsIsFound(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 20, domain.BlockSerial)
			planned := w.plan(1)
			ids := make([]domain.ExecutionID, len(planned))
			for i, e := range planned {
				ids[i] = e.ID
			}
			moved := func(poison map[domain.ExecutionID]bool, broken error) (n int, err error) {
				err = s.RunBatch(t.Context(), "test", run.Request{Kind: run.Ends, IDs: ids}, func(b *engine.Batch) error {
					n = 0
					for _, id := range ids {
						if b.Moves[id] == nil {
							continue
						}
						n++
						if poison[id] {
							panic("poison")
						}
					}
					return broken
				})
				return n, err
			}
			n, err := moved(map[domain.ExecutionID]bool{ids[3]: true, ids[17]: true}, nil)
			require.NoError(t, err)
			require.Equal(t, 18, n)
			for _, at := range []int{3, 17} {
				e, err := s.FindExecution(t.Context(), w.tenant, ids[at])
				require.NoError(t, err)
				require.Equal(t, domain.ReasonSetAside, e.Reason)
				require.Contains(t, e.Message, "poison")
			}
			_, err = moved(nil, errors.New("the disk is full"))
			require.ErrorContains(t, err, "the disk is full")
			n, err = moved(nil, nil)
			require.NoError(t, err)
			require.Equal(t, 20, n, "nobody else was set aside")
		})
	}
}

// A build that panics on every run must not end them all.
func TestOnlySomeThatPanicAreSetAside(t *testing.T) {
	s := openStore(t, sqliteOptions(t))
	w := newWorld(t, s, 40, domain.BlockSerial)
	bad := map[domain.ExecutionID]error{}
	for _, e := range w.plan(1) {
		bad[e.ID] = panics.Catch(func() error { panic("all of them") })
	}
	require.ErrorContains(t, s.SetAside(t.Context(), bad), "too many have panicked")
	counts, err := s.CountExecutions(t.Context(), w.tenant, domain.Reach{}, time.Time{})
	require.NoError(t, err)
	require.Equal(t, map[domain.State]int64{domain.Failed: 20, domain.Due: 20}, counts)
}

// One instance whose row cannot be read keeps no other from being found dead.
func TestInstancesExpireBesideABadRow(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		n.exec("UPDATE instances SET labels = '{', handlers = 'x', lease_until = 1")
		gone, err := n.here.ExpireInstances(context.Background(), 10, nil)
		require.NoError(t, err)
		require.Len(t, gone, 1)
	})
}
