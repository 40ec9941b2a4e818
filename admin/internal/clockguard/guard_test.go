package clockguard

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// leaping is a database whose clock can be set.
type leaping struct {
	ahead atomic.Int64 // nanoseconds
}

func (l *leaping) Now(context.Context) (time.Time, error) {
	return time.Now().Add(time.Duration(l.ahead.Load())).UTC(), nil
}

// guard is that of a node with an empty data directory.
func guard(t *testing.T, name string, db *gormstore.Store, clock *leaping) *Guard {
	t.Helper()
	nothing := func() {}
	g, err := Open(t.Context(), Options{
		Store: db, Source: clock, Node: name, DataDir: t.TempDir(), Cluster: "c", Logger: slog.New(slog.DiscardHandler),
		Table: func() (none domain.PartitionTable) { return none }, Held: func() []domain.PartitionTerm { return []domain.PartitionTerm{{Partition: 1}} },
		Told: nothing, Jumped: nothing, RolledBack: nothing, RenewSessions: nothing,
	})
	require.NoError(t, err)
	return g
}

// follow keeps the clock of a guard in step until the test ends.
func follow(t *testing.T, g *Guard) *Guard {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.clock.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return g
}

// outbox is what the operators would be told.
func outbox(t *testing.T, db *gormstore.Store) []domain.AlertEvent {
	t.Helper()
	return storetest.TakeOutbox[domain.AlertEvent](t, db, domain.TopicEvents)
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
	nodes := []*Guard{follow(t, guard(t, "one", db, &clock)), follow(t, guard(t, "two", db, &clock))}
	until := func(held bool) {
		t.Helper()
		for _, n := range nodes {
			require.Eventually(t, func() bool { return n.ClockHeld() == held }, time.Minute, 10*time.Millisecond)
			n.look(t.Context())
			n.look(t.Context())
			require.Equal(t, held, len(n.Held()) == 0, "nothing is planned while it is held")
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
		late := guard(t, "late", db, &clock)
		require.False(t, late.Clock().Now().After(time.Now()), "it goes on from the last time that was believed")
		clock.ahead.Store(0)
		until(false)
		require.Empty(t, outbox(t, db))
		value, err = db.ClusterValue(t.Context(), domain.ClockHoldValue, "")
		require.NoError(t, err)
		require.Empty(t, value)
	}
}

// A guard writes down how far it knows the history to reach. It reads that again for the
// same cluster only.
func TestTheHistoryOfAnEarlierLife(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	known, err := KnownHistory(dir, "c")
	require.NoError(t, err)
	require.Zero(t, known, "there is no file")
	g := &Guard{opt: Options{Store: &remembered{known: domain.History{Epoch: 2, Mark: 40}}, Cluster: "c"}, path: filepath.Join(dir, historyFile)}
	g.saveHistory(&g.told)
	known, err = KnownHistory(dir, "c")
	require.NoError(t, err)
	require.Equal(t, domain.History{Epoch: 2, Mark: 40}, known)
	known, err = KnownHistory(dir, "another")
	require.NoError(t, err)
	require.Zero(t, known)
}

// An operator has accepted the database: the sessions of before end, once.
func TestSessionsOfBeforeEnd(t *testing.T) {
	t.Parallel()
	db, renewed := &remembered{}, 0
	g := &Guard{opt: Options{Store: db, RenewSessions: func() { renewed++ }}}
	for _, step := range []struct {
		epoch int64
		want  int
	}{{0, 0}, {1, 0}, {1, 0}, {2, 1}, {2, 1}} {
		db.known.Epoch = step.epoch
		g.renewSessions(&g.told)
		require.Equal(t, step.want, renewed)
	}
}

// remembered is a store with a known history.
type remembered struct {
	Store
	known domain.History
}

func (r *remembered) KnownHistory() domain.History { return r.known }
