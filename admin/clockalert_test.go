package admin

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/alerting"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/telemetry"
)

// leaping is a database whose clock can be set.
type leaping struct {
	store.Nodes
	ahead atomic.Int64 // nanoseconds
}

func (l *leaping) Now(context.Context) (time.Time, error) {
	return time.Now().Add(time.Duration(l.ahead.Load())).UTC(), nil
}

// clockNode is as much of a node as tells of its clock.
func clockNode(t *testing.T, name string, db *gormstore.Store, clock *leaping) *Admin {
	t.Helper()
	a := &Admin{
		log: slog.New(slog.DiscardHandler), store: db, metrics: telemetry.New("test"), historyPath: filepath.Join(t.TempDir(), historyFile),
		members: &membership{self: domain.Node{Name: name}}, alerting: alerting.New(alerting.Options{}),
	}
	require.NoError(t, a.openClock(t.Context(), clock))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.clock.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return a
}

// outbox is what the operators would be told.
func outbox(t *testing.T, db *gormstore.Store) (out []domain.AlertEvent) {
	t.Helper()
	_, err := db.ExpandAlertEvents(t.Context(), 100, func(b *store.AlertBatch) {
		for i := range b.Events {
			out = append(out, b.Events[i].Event)
		}
	})
	require.NoError(t, err)
	return out
}

// TestALeapOfTheClockIsTold once per leap, however many nodes notice.
func TestALeapOfTheClockIsTold(t *testing.T) {
	t.Parallel()
	options := gormstore.Options{Driver: "sqlite", DSN: filepath.Join(t.TempDir(), "c.db"), NewID: domain.NewIDSource(1, time.Now).Next}
	require.NoError(t, gormstore.Migrate(t.Context(), options))
	db, err := gormstore.Open(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	var clock leaping
	nodes := []*Admin{clockNode(t, "one", db, &clock), clockNode(t, "two", db, &clock)}
	told := make([]holds, len(nodes))
	until := func(held bool) {
		t.Helper()
		for i, n := range nodes {
			require.Eventually(t, func() bool { return n.clockHeld() == held }, time.Minute, 10*time.Millisecond)
			n.lookAtHolds(t.Context(), &told[i])
			n.lookAtHolds(t.Context(), &told[i])
		}
	}
	until(false)
	require.Empty(t, outbox(t, db))
	for _, leap := range []time.Duration{time.Hour, 2 * time.Hour} {
		clock.ahead.Store(int64(leap))
		until(true)
		events := outbox(t, db)
		require.Len(t, events, 1)
		require.Equal(t, domain.AlertClockJump, events[0].Kind)
		require.Contains(t, events[0].Detail, "found by one")
		value, err := db.ClusterValue(t.Context(), domain.ClockHoldValue, "")
		require.NoError(t, err)
		require.NotEmpty(t, value, "for nodes that start later")
		clock.ahead.Add(int64(24 * time.Hour)) // while no node is there to tell
		late := &Admin{store: db}
		require.NoError(t, late.openClock(t.Context(), &clock))
		require.False(t, late.clock.Now().After(time.Now()), "it goes on from the last time that was believed")
		clock.ahead.Store(0)
		until(false)
		require.Empty(t, outbox(t, db))
		value, err = db.ClusterValue(t.Context(), domain.ClockHoldValue, "")
		require.NoError(t, err)
		require.Empty(t, value)
	}
}

// TestOverloadIsTold once an hour, however many nodes notice, and only when runs are
// late because of it.
func TestOverloadIsTold(t *testing.T) {
	t.Parallel()
	options := gormstore.Options{Driver: "sqlite", DSN: filepath.Join(t.TempDir(), "c.db"), NewID: domain.NewIDSource(1, time.Now).Next}
	require.NoError(t, gormstore.Migrate(t.Context(), options))
	db, err := gormstore.Open(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	clock := &leaping{Nodes: db}
	one, two := clockNode(t, "one", db, clock), clockNode(t, "two", db, clock)
	require.NoError(t, one.overload(t.Context(), false, time.Hour), "the database was away: that is told otherwise")
	require.NoError(t, one.overload(t.Context(), true, time.Second), "nobody notices a second")
	require.Empty(t, outbox(t, db))
	hours := map[string]bool{one.oncePerHour("overload"): true}
	require.NoError(t, one.overload(t.Context(), true, time.Minute))
	require.NoError(t, two.overload(t.Context(), true, time.Minute))
	hours[two.oncePerHour("overload")] = true // it may have ended between the two
	told := outbox(t, db)
	require.NotEmpty(t, told)
	require.LessOrEqual(t, len(told), len(hours))
	require.Equal(t, domain.AlertOverload, told[0].Kind)
	require.Equal(t, `node "one" is 1m0s late with planning; perhaps others are as well`, told[0].Detail)
}
