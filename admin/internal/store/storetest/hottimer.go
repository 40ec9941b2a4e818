package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// hotTimers is a hot store that says what it is told to say.
type hotTimers struct {
	named   []store.HotTimer
	unknown []int

	mu    sync.Mutex
	looks int              // guarded by mu
	tried []domain.TimerID // guarded by mu
}

func (h *hotTimers) DueTimers(context.Context, []domain.PartitionTerm, time.Duration, int) ([]store.HotTimer, []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looks++
	return h.named, h.unknown
}

func (h *hotTimers) TimersTried(ids []domain.TimerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = append(h.tried, ids...)
}

func hotOf(v store.TimerView) store.HotTimer {
	return store.HotTimer{ID: v.ID, Tenant: v.TenantID, Partition: v.Partition, FireAt: v.FireAt}
}

// timerIn gives a timer an id of the partition.
func (f *fixture) timerIn(partition int, timer store.SetTimer) store.SetTimer {
	for domain.PartitionOf(domain.JobID(timer.ID)) != partition {
		timer.ID = domain.TimerID(ids.Next())
	}
	return timer
}

// Whatever a hot store says, a timer is claimed once and within the horizon, and
// those that it does not name are claimed ahead of their time.
func testHotTimers(t *testing.T, f *fixture) {
	const horizon = 40 * time.Second
	j := f.timerJob(nil)
	set := func(key string, partition int, after time.Duration) store.TimerView {
		return f.setOK(domain.TimerCreated, f.timerIn(partition, f.timer(j, key, f.now().Add(after), domain.TimerKeep)))
	}
	named, far, foreign := set("named", 5, 35*time.Second), set("far", 6, 50*time.Second), set("foreign", 7, 35*time.Second)
	set("kept", 5, 35*time.Second)
	held := slices.DeleteFunc(slices.Clone(f.held), func(h domain.PartitionTerm) bool { return h.Partition == 7 })
	hot := &hotTimers{}
	claim := func(except ...domain.TenantID) (keys []string) {
		t.Helper()
		got, err := f.s.ClaimDueTimers(f.ctx, store.ClaimDueTimersParams{Partitions: held, Except: except, Horizon: horizon, Limit: 500, NewID: ids.Next, Hot: hot})
		f.ok(err)
		for _, e := range f.mine(got.Executions) {
			timer, _ := domain.TimerOf(&e)
			keys = append(keys, timer.Key)
		}
		return keys
	}
	// Twice the same, one with a wrong time, one that is too far away, one of another
	// holder, one that is not there.
	wrong, gone := hotOf(far), hotOf(named)
	wrong.FireAt, gone.ID = f.now().Add(-time.Hour), domain.TimerID(ids.Next())
	hot.named = []store.HotTimer{hotOf(named), wrong, hotOf(foreign), gone, hotOf(named)}
	require.Equal(t, []string{"named"}, claim())
	for _, h := range hot.named {
		require.Contains(t, hot.tried, h.ID, "it need not name it again")
	}
	require.Empty(t, claim(), "it is claimed once, however often it is named")

	hot.named = nil
	require.Empty(t, claim(), "35 s ahead are left to the hot store")
	require.Equal(t, "pending", f.timerState(j, "kept"))
	set("missed", 5, 15*time.Second)
	var got []string
	require.Eventually(t, func() bool { got = claim(); return len(got) > 0 }, 10*time.Second, 50*time.Millisecond)
	require.Equal(t, []string{"missed"}, got, "the database is asked for what is near")

	looks := hot.looks
	require.Equal(t, []string{"kept"}, claim(0), "it knows no tenants that are left out")
	require.Equal(t, looks, hot.looks)
	set("unknown", 8, 35*time.Second)
	hot.unknown = []int{8}
	require.Equal(t, []string{"unknown"}, claim(), "of what it does not know the database is asked")
	require.Equal(t, "pending", f.timerState(j, "far"))
	require.Equal(t, "pending", f.timerState(j, "foreign"))
}

// Pages have each pending timer of a span once, however many are due in one
// millisecond.
func testPendingTimers(t *testing.T, f *fixture) {
	at := f.now().Add(3 * time.Hour).Truncate(time.Hour)
	var list []store.SetTimer
	want := map[domain.TimerID]bool{}
	fixtures := []*fixture{f, newFixture(t, f.s)}
	jobs := []store.JobView{f.timerJob(nil), fixtures[1].timerJob(nil)}
	for i := range 120 {
		timer := fixtures[i%2].timer(jobs[i%2], fmt.Sprint(i), at.Add(time.Duration(i/50)*time.Millisecond), domain.TimerKeep)
		timer = f.timerIn(11, timer)
		list = append(list, timer)
		want[timer.ID] = i < 100
	}
	for _, r := range f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: list}) {
		f.ok(r.Err)
	}
	p := store.PendingTimersParams{Partition: 11, From: at, To: at.Add(2 * time.Millisecond), Limit: 7}
	last := time.Time{}
	found := 0
	for {
		page, err := f.s.PendingTimers(f.ctx, p)
		f.ok(err)
		for _, h := range page {
			require.False(t, h.FireAt.Before(last))
			last = h.FireAt
			if mine, ok := want[h.ID]; ok {
				require.True(t, mine, "each once, and within the span")
				want[h.ID] = false
				found++
			}
		}
		if len(page) < p.Limit {
			break
		}
		p.After = page[len(page)-1]
	}
	require.Equal(t, 100, found)
}

// A claim ends at store.MaxListedInput. The claims after it have the others.
func testLargeTimers(t *testing.T, f *fixture) {
	const many, large = 80, 200 << 10
	j := f.timerJob(nil)
	for i := range many {
		timer := f.timer(j, fmt.Sprint("large-", i), f.now().Add(time.Second), domain.TimerKeep)
		timer.Input = fmt.Appendf(nil, "%q", make([]byte, large/4))
		f.setOK(domain.TimerCreated, timer)
	}
	claimed := 0
	for claimed < many {
		got, err := f.s.ClaimDueTimers(f.ctx, store.ClaimDueTimersParams{Partitions: f.held, Horizon: time.Minute, Limit: 500, NewID: ids.Next})
		f.ok(err)
		bytes := 0
		for _, e := range got.Executions {
			bytes += len(e.Input)
		}
		require.LessOrEqual(t, bytes, 2*store.MaxListedInput)
		claimed += len(f.mine(got.Executions))
		require.True(t, got.More || claimed == many)
	}
	require.Equal(t, many, claimed)
	require.Empty(t, f.claimTimers(time.Minute))
}
