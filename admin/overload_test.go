package admin

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/alerting"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
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
	clock, err := scheduler.NewClock(t.Context(), scheduler.ClockOptions{Source: db})
	require.NoError(t, err)
	node := func(name string) *Admin {
		return &Admin{store: db, clock: clock, members: &membership{self: domain.Node{Name: name}}, alerting: alerting.New(alerting.Options{})}
	}
	one, two := node("one"), node("two")
	require.NoError(t, one.overload(t.Context(), false, time.Hour), "the database was away: that is told otherwise")
	require.NoError(t, one.overload(t.Context(), true, time.Second), "nobody notices a second")
	outbox := func() (out []domain.AlertEvent) {
		_, err := db.ExpandAlertEvents(t.Context(), 100, func(b *store.AlertBatch) {
			for i := range b.Events {
				out = append(out, b.Events[i].Event)
			}
		})
		require.NoError(t, err)
		return out
	}
	require.Empty(t, outbox())
	hours := map[string]bool{one.oncePerHour("overload"): true}
	require.NoError(t, one.overload(t.Context(), true, time.Minute))
	require.NoError(t, two.overload(t.Context(), true, time.Minute))
	hours[two.oncePerHour("overload")] = true // it may have ended between the two
	told := outbox()
	require.NotEmpty(t, told)
	require.LessOrEqual(t, len(told), len(hours))
	require.Equal(t, domain.AlertOverload, told[0].Kind)
	require.Equal(t, `node "one" is 1m0s late with planning; perhaps others are as well`, told[0].Detail)
}
