package watchdog

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// TestOverloadIsTold once an hour, however many nodes notice, and only when runs are
// late because of it.
func TestOverloadIsTold(t *testing.T) {
	t.Parallel()
	options := gormstore.Options{Driver: "sqlite", DSN: filepath.Join(t.TempDir(), "c.db"), NewID: domain.NewIDSource(1, time.Now).Next}
	require.NoError(t, gormstore.Migrate(t.Context(), options))
	db, err := gormstore.Open(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	heldBack, lag, told := false, time.Hour, 0
	node := func(name string) *Watchdog {
		return New(Options{
			Store: db, Recorded: func() { told++ }, Node: name, Now: time.Now, Planning: func() (bool, time.Duration) { return heldBack, lag },
			Logger: slog.New(slog.DiscardHandler),
		})
	}
	one, two := node("one"), node("two")
	require.NoError(t, one.LookForOverload(t.Context()), "the database was away: that is told otherwise")
	heldBack, lag = true, time.Second
	require.NoError(t, one.LookForOverload(t.Context()), "a second is no overload")
	read := func() []domain.AlertEvent {
		return storetest.TakeOutbox[domain.AlertEvent](t, db, domain.TopicEvents)
	}
	require.Empty(t, read())
	require.Zero(t, told)
	lag = time.Minute
	hours := map[string]bool{one.oncePerHour("overload"): true}
	require.NoError(t, one.LookForOverload(t.Context()))
	require.NoError(t, two.LookForOverload(t.Context()))
	hours[two.oncePerHour("overload")] = true // it may have ended between the two
	events := read()
	require.Len(t, events, 2)
	require.Equal(t, 2, told, "each node lets the alert be told")
	for _, e := range events {
		require.Contains(t, hours, e.DedupeKey, "people hear once an hour")
	}
	require.Equal(t, domain.AlertOverload, events[0].Kind)
	require.Equal(t, `node "one" is 1m0s late with planning; perhaps others are as well`, events[0].Detail)
}

// An executor that flaps is told of once an hour. A stalled run is told of with its node.
func TestFlappingAndStalledRunsAreTold(t *testing.T) {
	t.Parallel()
	var box outbox
	stands := time.Duration(0)
	w := New(Options{
		Store: &box, Recorded: func() { box.recorded++ }, Unexplained: box.unexplained, Node: "one", Now: func() time.Time { return time.Unix(7200, 0) }, Stalled: func() time.Duration { return stands },
		Logger: slog.New(slog.DiscardHandler),
	})
	w.Flapping(domain.Flapping{Tenant: 7, Executor: 8, Name: "shop", Instance: "shop-1", Strikes: 20, Within: time.Minute})
	require.Equal(t, []domain.AlertEvent{{
		TenantID: 7, Kind: domain.AlertFlapping, Executor: 8, DedupeKey: string(domain.AlertFlapping) + ":8:2",
		Detail: `executor "shop", instance "shop-1": 20 processes ended within 1m0s; perhaps others of the executor as well`,
	}}, box.events)
	require.NoError(t, w.LookForStalled(t.Context()))
	require.Len(t, box.events, 1)
	stands = 9 * time.Second
	require.NoError(t, w.LookForStalled(t.Context()))
	require.Equal(t, `node "one" has room for a run that has not started for 9s`, box.events[1].Detail)
	require.Equal(t, 2, box.recorded)
}

// outbox keeps alerts in memory.
type outbox struct {
	events   []domain.AlertEvent
	recorded int // calls of Recorded
	lost     []store.LostInstances
	// explained are the executors whose lost instances another alert explains.
	explained map[domain.ExecutorID]bool
}

func (o *outbox) RecordAlerts(_ context.Context, events []domain.AlertEvent) error {
	o.events = append(o.events, events...)
	return nil
}

func (o *outbox) unexplained(_ context.Context, list []store.LostInstances) (out []store.LostInstances, err error) {
	for _, x := range list {
		if !o.explained[x.Executor] {
			out = append(out, x)
		}
	}
	return out, nil
}

func (o *outbox) ListLostInstances(context.Context) ([]store.LostInstances, error) {
	return o.lost, nil
}

// A lost instance is told of, if no other alert explains it.
func TestLostInstancesAreToldUnlessExplained(t *testing.T) {
	t.Parallel()
	since := time.Unix(3600, 0)
	box := outbox{explained: map[domain.ExecutorID]bool{8: true}, lost: []store.LostInstances{
		{Tenant: 7, Executor: 8, Name: "shop", Lost: []string{"a"}, LostSlots: 2, Newest: 21, Since: since},
		{Tenant: 7, Executor: 9, Name: "web", Lost: []string{"b"}, LostSlots: 2, Newest: 22, Since: since, Living: 1, LivingSlots: 2},
	}}
	w := New(Options{Store: &box, Recorded: func() { box.recorded++ }, Unexplained: box.unexplained, Node: "one", Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, w.LookForLost(t.Context()))
	require.Equal(t, []domain.AlertEvent{{
		TenantID: 7, Kind: domain.AlertInstanceGone, Executor: 9, DedupeKey: string(domain.AlertInstanceGone) + ":9:22",
		Detail: `executor "web": 1 of 2 instances gone since 1970-01-01T01:00:00Z, capacity 50 %: b`,
	}}, box.events)
}
