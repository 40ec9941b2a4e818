package gormstore

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// twoNodes are two stores on one database, as two admin nodes have them. here
// has cached what it planned; there moves it on behind its back.
type twoNodes struct {
	*world
	t           *testing.T
	here, there *Store
}

func onTwoNodes(t *testing.T, blocking domain.Blocking, test func(*testing.T, *twoNodes)) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			here := openStore(t, o)
			there, err := Open(t.Context(), o)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, there.Close()) })
			test(t, &twoNodes{world: newWorld(t, here, 3, blocking), t: t, here: here, there: there})
		})
	}
}

func (n *twoNodes) offer(s *Store, es ...domain.Execution) []store.OfferResult {
	n.t.Helper()
	out, err := s.OfferExecutions(n.t.Context(), n.offers(es))
	require.NoError(n.t, err)
	return out
}

func (n *twoNodes) grant(s *Store, offered ...store.OfferResult) []store.GrantResult {
	n.t.Helper()
	out, err := s.GrantOffers(n.t.Context(), n.grants(offered))
	require.NoError(n.t, err)
	return out
}

func (n *twoNodes) finish(s *Store, granted ...store.GrantResult) []store.FinishResult {
	n.t.Helper()
	out, err := s.FinishAttempts(n.t.Context(), n.reports(granted))
	require.NoError(n.t, err)
	return out
}

// cacheCounts is how many batches were written without reading, and how many had to
// be repeated, since the last call.
func (n *twoNodes) cacheCounts() (cached, stale int64) {
	return n.here.Rows.Hits.Swap(0), n.here.Rows.Stale.Swap(0)
}

func (n *twoNodes) state(id domain.ExecutionID) domain.State {
	n.t.Helper()
	view, err := n.there.FindExecution(n.t.Context(), n.tenant, id)
	require.NoError(n.t, err)
	return view.State
}

func (n *twoNodes) holders() (sum int) {
	n.t.Helper()
	require.NoError(n.t, n.there.Write.QueryRowContext(n.t.Context(),
		"SELECT SUM(holders) FROM job_slots WHERE tenant_id = ?", int64(n.tenant)).Scan(&sum))
	return sum
}

// A run that nobody else touches is moved from plan to end without reading it.
func TestLivesWithoutReading(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		planned := n.plan(1)
		offered := n.offer(n.here, planned...)
		require.Equal(t, 3, n.holders())
		granted := n.grant(n.here, offered...)
		for i, r := range n.finish(n.here, granted...) {
			require.Equal(t, store.FinishStored, r.Code)
			view, err := n.there.FindExecution(t.Context(), n.tenant, planned[i].ID)
			require.NoError(t, err)
			require.Equal(t, view.Execution, r.Execution, "what was cached is what is stored")
			require.Equal(t, domain.Succeeded, view.State)
		}
		cached, stale := n.cacheCounts()
		require.EqualValues(t, 3, cached)
		require.Zero(t, stale)
		require.Zero(t, n.holders())
	})
}

// One row of a batch was moved on by another node: the others go through, and
// nothing happens twice.
func TestStaleRowInABatch(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		planned := n.plan(1)
		_, err := n.there.RequestCancel(t.Context(), n.tenant, planned[1].ID, domain.ReasonKilled, "")
		require.NoError(t, err)
		offered := n.offer(n.here, planned...)
		require.Equal(t, []store.OfferStatus{store.OfferMade, store.OfferGone, store.OfferMade},
			[]store.OfferStatus{offered[0].Status, offered[1].Status, offered[2].Status})
		require.Equal(t, domain.Cancelled, offered[1].Execution.State)
		require.Equal(t, 2, n.holders())
		require.EqualValues(t, 1, offered[0].Execution.Fence)
		_, stale := n.cacheCounts()
		require.EqualValues(t, 1, stale)

		// The other node gives one back and offers it anew; our cache says that it
		// is ours to grant.
		_, err = n.there.GiveBackOffers(t.Context(), []store.GiveBack{{Tenant: n.tenant, ID: planned[0].ID, Fence: 1, Instance: n.instance}})
		require.NoError(t, err)
		again := n.offer(n.there, planned[0])
		require.EqualValues(t, 2, again[0].Execution.Fence)
		granted := n.grant(n.here, offered[0], offered[2])
		require.False(t, granted[0].Granted, "another offer stands")
		require.True(t, granted[1].Granted)
		require.Equal(t, domain.Offered, n.state(planned[0].ID))
	})
}

// A refusal writes nothing that a guard could check, so it is never decided on
// the cache: here this node has cached that the run waits for its second offer.
func TestRefusalIsReadNotCached(t *testing.T) {
	onTwoNodes(t, domain.BlockParallel, func(t *testing.T, n *twoNodes) {
		one := n.plan(1)[0]
		n.offer(n.here, one)
		_, err := n.here.GiveBackOffers(t.Context(), []store.GiveBack{{Tenant: n.tenant, ID: one.ID, Fence: 1, Instance: n.instance}})
		require.NoError(t, err)
		granted := n.grant(n.there, n.offer(n.there, one)...)
		require.True(t, granted[0].Granted)
		n.cacheCounts()
		require.Equal(t, store.FinishStored, n.finish(n.here, granted...)[0].Code, "or the result would be lost")
		require.Equal(t, domain.Succeeded, n.state(one.ID))
		_, stale := n.cacheCounts()
		require.EqualValues(t, 1, stale)
	})
}

// The slot of a serial job is taken, or queued for, without our knowing.
func TestStaleSlot(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		ours, theirs := n.plan(1), n.plan(1)
		running := n.grant(n.there, n.offer(n.there, ours[0])...)
		offered := n.offer(n.here, theirs[0], ours[1])
		require.Equal(t, store.OfferBlocked, offered[0].Status, "its job runs already")
		require.Equal(t, store.OfferMade, offered[1].Status)
		require.Equal(t, 2, n.holders())

		// ours[1] runs here; a later run of its job queues up there.
		mine := n.grant(n.here, offered[1])
		require.Equal(t, store.OfferBlocked, n.offer(n.there, theirs[1])[0].Status)
		n.cacheCounts()
		finished := n.finish(n.here, mine...)
		require.Equal(t, store.FinishStored, finished[0].Code)
		require.Len(t, finished[0].Woken, 1)
		require.Equal(t, theirs[1].ID, finished[0].Woken[0].ID, "who waits is woken")
		_, stale := n.cacheCounts()
		require.EqualValues(t, 1, stale)

		// The slot is read for a while now, not taken from the cache.
		require.Equal(t, store.OfferMade, n.offer(n.here, theirs[1])[0].Status)
		_, stale = n.cacheCounts()
		require.Zero(t, stale)
		n.finish(n.there, running...)
		require.Equal(t, 1, n.holders())
	})
}

// One row that has changed does not make all others of the batch suspect.
func TestOnlyWhatHasChangedIsReadAgain(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		granted := n.grant(n.here, n.offer(n.here, n.plan(1)...)...)
		require.NoError(t, n.there.RecordStarts(t.Context(), []store.Start{{
			Tenant: n.tenant, ID: granted[1].Execution.ID, Fence: granted[1].Execution.Fence, Instance: n.instance, StartedAt: time.Now(),
		}}))
		n.cacheCounts()
		for _, f := range n.finish(n.here, granted...) {
			require.Equal(t, store.FinishStored, f.Code)
		}
		cached, stale := n.cacheCounts()
		require.EqualValues(t, 1, stale)
		require.EqualValues(t, 1, cached, "two of three were written as they were cached")
		require.Zero(t, n.holders())
	})
}

// A result that may be a duplicate is looked at, the others are not.
func TestOnlyWhatIsRefusedIsReadAgain(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		granted := n.grant(n.here, n.offer(n.here, n.plan(1)...)...)
		granted[2].Execution.Fence++ // of an attempt that is not known
		n.cacheCounts()
		finished := n.finish(n.here, granted...)
		require.Equal(t, store.FinishStored, finished[0].Code)
		require.Equal(t, store.FinishStored, finished[1].Code)
		require.Equal(t, store.FinishStale, finished[2].Code)
		cached, stale := n.cacheCounts()
		require.EqualValues(t, 1, stale)
		require.EqualValues(t, 1, cached)
		require.Equal(t, 1, n.holders())
	})
}

// A cached clock that is ahead, or behind, decides nothing.
func TestCachedClockIsGuarded(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, mysqlOptions(t))
			w := newWorld(t, s, 2, domain.BlockSerial)
			planned := w.plan(1)
			now, err := s.Now(t.Context())
			require.NoError(t, err)
			s.Clock.Forget()
			s.Clock.Learn(db.Millis(now.Add(off)))
			offered, err := s.OfferExecutions(t.Context(), w.offers(planned))
			require.NoError(t, err)
			require.EqualValues(t, 1, s.Rows.Stale.Load())
			for _, r := range offered {
				require.Equal(t, store.OfferMade, r.Status)
				require.WithinDuration(t, now, r.Execution.OfferedAt, time.Minute)
			}
		})
	}
}

// What falls out of the cache, or was never in it, is read.
func TestForgottenRowsAreRead(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		planned := n.plan(1)
		n.here.Rows.Entries.Remove(planned[0].ID)
		offered := n.offer(n.here, planned...) // one is read, two are from the cache
		for _, r := range offered {
			require.Equal(t, store.OfferMade, r.Status)
		}
		for _, r := range n.grant(n.there, offered...) { // all are read
			require.True(t, r.Granted)
		}
		require.Equal(t, 3, n.holders())
	})
}

// Every statement that changes executions counts the version up, or the cache
// would not notice it.
func TestEveryUpdateOfExecutionsCountsTheVersion(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	statement := regexp.MustCompile(`(?i)UPDATE executions\b[^"\n]* SET [^\n]*`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range statement.FindAllString(string(source), -1) {
			if !strings.HasSuffix(file, "_test.go") { // tests change rows behind the store's back
				require.Contains(t, found, "version = version + 1", file)
			}
		}
	}
	require.Equal(t, "version", record.ExecutionTable.Version.Name)
}

// One search serves several claims; what another node took meanwhile is passed
// over, and nothing is claimed twice or forgotten.
func TestOneSearchServesSeveralClaims(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		claim := func(s *Store) store.ClaimedTriggers {
			got, err := s.ClaimDueTriggers(t.Context(), store.ClaimDueTriggersParams{Partitions: n.held, Limit: 1, Plan: func(now time.Time, tr domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
				plan := n.planOne(now, tr, spec)
				plan.NextFireAt = domain.Never
				return plan
			}})
			require.NoError(t, err)
			return got
		}
		first := claim(n.here) // finds all three
		require.Len(t, first.Executions, 1)
		require.False(t, first.NextFireAt.After(first.Now), "there is more to claim")
		theirs := claim(n.there)
		require.Len(t, theirs.Executions, 1)
		taken := map[domain.JobID]int{first.Executions[0].JobID: 1}
		taken[theirs.Executions[0].JobID]++
		for more := true; more; {
			got := claim(n.here)
			for _, e := range got.Executions {
				taken[e.JobID]++
			}
			require.False(t, got.Now.IsZero())
			more = !got.NextFireAt.After(got.Now)
		}
		require.Equal(t, map[domain.JobID]int{n.jobs[0]: 1, n.jobs[1]: 1, n.jobs[2]: 1}, taken)
	})
}
