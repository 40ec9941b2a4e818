package gormstore

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// beat is the sign of life of one node on a store.
func beat(t *testing.T, s *Store, node domain.Node) {
	t.Helper()
	_, err := s.RenewPartitions(t.Context(), store.RenewPartitionsParams{Node: node.ID, BootID: node.BootID, TTL: time.Minute, Wall: time.Now()})
	require.NoError(t, err)
}

func enter(t *testing.T, s *Store, boot string) domain.Node {
	t.Helper()
	node, err := s.RegisterNode(t.Context(), domain.Node{BootID: boot, Name: boot}, time.Minute)
	require.NoError(t, err)
	return node
}

// closed says that nothing can be started on s.
func closed(t *testing.T, s *Store, w *world) {
	t.Helper()
	for step, err := range map[string]error{
		"claim": func() error {
			_, err := s.ClaimDueTriggers(t.Context(), store.ClaimDueTriggersParams{Partitions: w.held, Limit: 10, Horizon: 24 * 365 * time.Hour, Plan: w.planOne})
			return err
		}(),
		"offer": func() error {
			_, err := s.OfferExecutions(t.Context(), []store.Offer{{Tenant: w.tenant, ID: w.last}})
			return err
		}(),
		"grant": func() error {
			_, err := s.GrantOffers(t.Context(), []store.GrantRequest{{Tenant: w.tenant, ID: w.last}})
			return err
		}(),
		"finish": func() error {
			_, err := s.FinishAttempts(t.Context(), []store.AttemptReport{{Tenant: w.tenant, Report: domain.Report{ExecutionID: w.last}}})
			return err
		}(),
		"expire": func() error { _, err := s.ExpireInstances(t.Context(), 10, nil); return err }(),
	} {
		require.Equal(t, domain.CodeRolledBack, domain.CodeOf(err), "%s: %v", step, err)
	}
	_, held := s.RolledBack()
	require.True(t, held)
}

// A backup of a server is put back under two running nodes and one that starts later.
func TestARestoredMySQLIsNoticed(t *testing.T) {
	server := testenv.PrivateServer(t)
	o := Options{Driver: "mysql", DSN: server.Database(t), NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler)}
	a := openStore(t, o)
	w := newWorld(t, a, 4, domain.BlockParallel)
	w.plan(4)
	one := enter(t, a, "one")
	beat(t, a, one)
	require.NoError(t, server.Stop())
	backup := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, server.Save(backup))
	require.NoError(t, server.Start())

	b := openStore(t, o)
	two := enter(t, b, "two")
	for range 5 {
		beat(t, a, one)
		beat(t, b, two)
	}
	for _, s := range []*Store{a, b} {
		_, held := s.RolledBack()
		require.False(t, held)
	}
	known := a.KnownHistory()

	require.NoError(t, server.Stop())
	require.NoError(t, server.Restore(backup))
	require.NoError(t, server.Start())
	// The first statement on the new connection is refused already.
	_, err := a.OfferExecutions(t.Context(), []store.Offer{{Tenant: w.tenant, ID: w.last}})
	require.Equal(t, domain.CodeRolledBack, domain.CodeOf(err), "%v", err)
	closed(t, a, w)
	r, _ := a.RolledBack()
	require.Equal(t, known, r.Seen)
	require.True(t, r.Found.Before(known))

	// Signs of life go on, until the mark is where it was; it stays held.
	for range 20 {
		beat(t, a, one)
	}
	closed(t, a, w)
	alert := domain.AlertEvent{Kind: domain.AlertRollback}
	require.NoError(t, a.DoubtHistory(t.Context(), r, alert))
	require.NoError(t, a.DoubtHistory(t.Context(), r, alert))
	events := storetest.TakeOutbox[domain.AlertEvent](t, a, domain.TopicEvents)
	require.Len(t, events, 2)
	require.Equal(t, events[0].DedupeKey, events[1].DedupeKey, "people hear once")

	later := openStore(t, o) // knows nothing
	_, err = later.ReadPartitions(t.Context())
	require.NoError(t, err)
	r, held := later.RolledBack()
	require.True(t, held)
	require.True(t, r.Told)

	accepted, err := b.AcceptHistory(t.Context())
	require.NoError(t, err)
	require.Equal(t, known.Epoch+1, accepted.Epoch)
	for _, s := range []*Store{a, b, later} {
		_, err := s.ReadPartitions(t.Context())
		require.NoError(t, err)
		_, held := s.RolledBack()
		require.False(t, held)
	}
	_, err = a.OfferExecutions(t.Context(), []store.Offer{{Tenant: w.tenant, ID: w.last}})
	require.NoError(t, err)
	_, err = a.AcceptHistory(t.Context())
	require.Equal(t, domain.CodeConflict, domain.CodeOf(err))

	// The backup is from before the acceptance, too.
	beat(t, a, one)
	require.NoError(t, server.Stop())
	require.NoError(t, server.Restore(backup))
	require.NoError(t, server.Start())
	closed(t, a, w)
}

// A replica without the last commit was promoted: no sign of life was lost, one
// move of an execution was.
func TestALostCommitIsNoticed(t *testing.T) {
	server := testenv.PrivateServer(t)
	a := openStore(t, Options{Driver: "mysql", DSN: server.Database(t), NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler)})
	w := newWorld(t, a, 4, domain.BlockParallel)
	w.plan(4)
	beat(t, a, enter(t, a, "one"))
	require.NoError(t, server.Stop())
	replica := filepath.Join(t.TempDir(), "replica")
	require.NoError(t, server.Save(replica))
	require.NoError(t, server.Start())
	offered, err := a.OfferExecutions(t.Context(), []store.Offer{{Tenant: w.tenant, ID: w.last, Instance: w.instance}})
	require.NoError(t, err)
	require.Equal(t, store.OfferMade, offered[0].Status)

	// The same database again: nothing is wrong.
	require.NoError(t, server.Kill())
	require.NoError(t, server.Start())
	_, err = a.ReadPartitions(t.Context())
	require.NoError(t, err)
	_, held := a.RolledBack()
	require.False(t, held)

	require.NoError(t, server.Stop())
	require.NoError(t, server.Restore(replica))
	require.NoError(t, server.Start())
	closed(t, a, w)
	r, _ := a.RolledBack()
	require.Equal(t, 1, r.Lost)
	accepted, err := a.AcceptHistory(t.Context())
	require.NoError(t, err)
	require.Equal(t, accepted, a.KnownHistory())
	_, err = a.ReadPartitions(t.Context())
	require.NoError(t, err)
	_, held = a.RolledBack()
	require.False(t, held, "what was accepted as lost is not looked for again")

	// An instance that had the offer which is lost would not take its fence again.
	again, err := a.OfferExecutions(t.Context(), []store.Offer{{Tenant: w.tenant, ID: w.last, Instance: w.instance}})
	require.NoError(t, err)
	require.Equal(t, store.OfferMade, again[0].Status)
	require.Greater(t, again[0].Execution.Fence, offered[0].Execution.Fence)
}

// A backup of SQLite is copied over the pages of the file in use, as the shell's .restore does.
func TestARestoredSQLiteIsNoticed(t *testing.T) {
	o := sqliteOptions(t)
	a := openStore(t, o)
	w := newWorld(t, a, 4, domain.BlockParallel)
	w.plan(4)
	one := enter(t, a, "one")
	beat(t, a, one)
	backup := filepath.Join(t.TempDir(), "backup.db")
	_, err := a.Write.ExecContext(t.Context(), "VACUUM INTO ?", backup)
	require.NoError(t, err)
	beat(t, a, one)
	_, err = a.OfferExecutions(t.Context(), []store.Offer{{Tenant: w.tenant, ID: w.last, Instance: w.instance}})
	require.NoError(t, err)

	restoreSQLite(t, o.DSN, backup)
	closed(t, a, w)
	_, err = a.AcceptHistory(t.Context())
	require.NoError(t, err)
	_, err = a.ExpireInstances(t.Context(), 10, nil)
	require.NoError(t, err)
}
