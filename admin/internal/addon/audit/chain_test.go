package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/addon/audit"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/internal/testenv"
)

const tenant = domain.TenantID(7)

// world is an audit log with some chained entries.
type world struct {
	t     *testing.T
	s     *gormstore.Store
	box   *secret.Box
	table audit.Table
}

func onBoth(t *testing.T, test func(*testing.T, *world)) {
	for driver, place := range map[string]func(testing.TB) string{
		"sqlite": gormtest.SQLite, "mysql": func(tb testing.TB) string { return testenv.Database(tb) },
	} {
		t.Run(driver, func(t *testing.T) { test(t, newWorld(t, driver, place(t))) })
	}
}

func newWorld(t *testing.T, driver, dsn string) *world {
	o := gormstore.Options{Driver: driver, DSN: dsn, NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, gormstore.Migrate(t.Context(), o))
	s, err := gormstore.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	box, err := secret.New(make([]byte, secret.KeySize))
	require.NoError(t, err)
	return &world{t, s, box, audit.NewTable(s.DB, box)}
}

// write makes entries of the tenant, each in the transaction of a change.
func (w *world) write(n int) {
	w.t.Helper()
	for i := range n {
		ctx := domain.WithAudit(w.t.Context(), domain.NewPendingAudit(domain.AuditEntry{
			Tenant: tenant, Actor: "anna", User: 5, Operation: "update-job", Outcome: domain.AuditDone, Address: "192.0.2.1",
			AuditObject: domain.AuditObject{Kind: "job", ID: fmt.Sprint(i), Name: "nightly ", Before: `{"a":"é\u0000 "}`, After: `{"a":2}`},
		}))
		require.NoError(w.t, w.s.SetClusterValue(ctx, "change", fmt.Sprint(i)))
	}
}

func (w *world) chain() audit.Head {
	w.t.Helper()
	heads, err := w.table.Chain(w.t.Context())
	require.NoError(w.t, err)
	return heads[tenant]
}

func (w *world) exec(statement string, args ...any) {
	w.t.Helper()
	require.NoError(w.t, w.s.Run(w.t.Context(), "attack", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, statement, args...)
		return err
	}))
}

// verify walks in steps of limit and returns the kinds of faults.
func (w *world) verify(known audit.Head, limit int) (kinds []string) {
	w.t.Helper()
	for after := int64(0); ; {
		v, err := w.table.Verify(w.t.Context(), tenant, after, known, limit)
		require.NoError(w.t, err)
		for _, f := range v.Faults {
			require.NotEmpty(w.t, f.Message)
			kinds = append(kinds, f.Kind)
		}
		if v.Done {
			return kinds
		}
		after = v.Last.Seq
	}
}

func TestAnUntouchedChainHasNoFault(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		require.Empty(t, w.verify(audit.Head{}, 10))
		w.write(12)
		require.Empty(t, w.verify(audit.Head{}, 5), "entries that are not chained yet")
		head := w.chain()
		require.EqualValues(t, 12, head.Seq)
		w.write(150)
		require.EqualValues(t, 162, w.chain().Seq)
		for _, limit := range []int{1, 7, 162, 1000} {
			require.Empty(t, w.verify(head, limit), limit)
		}
		require.Empty(t, w.chain(), "there is nothing to chain")
	})
}

// Somebody with all rights in the database changes the log.
func TestEachAttackIsFound(t *testing.T) {
	at := func(seq int) string { return fmt.Sprintf(" WHERE tenant_id = %d AND seq = %d", tenant, seq) }
	attacks := map[string]struct {
		do   func(w *world)
		want string
	}{
		"an entry is deleted":           {func(w *world) { w.exec("DELETE FROM audit_log" + at(4)) }, audit.FaultMissing},
		"the first entries are deleted": {func(w *world) { w.exec(fmt.Sprintf("DELETE FROM audit_log WHERE tenant_id = %d AND seq < 4", tenant)) }, audit.FaultMissing},
		"the actor is edited":           {func(w *world) { w.exec("UPDATE audit_log SET actor = 'berta'" + at(4)) }, audit.FaultEdited},
		"the text is edited":            {func(w *world) { w.exec("UPDATE audit_log SET after_text = '{}'" + at(4)) }, audit.FaultEdited},
		"the outcome is edited":         {func(w *world) { w.exec("UPDATE audit_log SET outcome = 'refused'" + at(4)) }, audit.FaultEdited},
		"the time is edited":            {func(w *world) { w.exec("UPDATE audit_log SET id = id + 4194304000" + at(4)) }, audit.FaultEdited},
		"the hash is edited":            {func(w *world) { w.exec("UPDATE audit_log SET hash = 'ab'" + at(4)) }, audit.FaultEdited},
		"an entry moves to a tenant":    {func(w *world) { w.exec("UPDATE audit_log SET tenant_id = 8" + at(4)) }, audit.FaultMissing},
		"two entries are reordered": {func(w *world) {
			w.exec("UPDATE audit_log SET seq = -1" + at(4))
			w.exec("UPDATE audit_log SET seq = 4" + at(5))
			w.exec("UPDATE audit_log SET seq = 5" + at(-1))
		}, audit.FaultEdited},
		"an entry is deleted, and the rest numbered anew": {func(w *world) {
			w.exec("DELETE FROM audit_log" + at(4))
			w.exec(fmt.Sprintf("UPDATE audit_log SET seq = seq - 1 WHERE tenant_id = %d AND seq > 4", tenant))
		}, audit.FaultEdited},
		"an entry is put in at a place that is taken": {func(w *world) { w.forge(4) }, audit.FaultEdited},
		"an entry is put in before the chain":         {func(w *world) { w.forge(-2) }, audit.FaultEdited},
		"an entry is put in aside":                    {func(w *world) { w.forge(-1) }, audit.FaultForged},
		"an entry is put in to be chained": {func(w *world) {
			w.forge(0)
			w.chain()
		}, audit.FaultForged},
		"an entry is put in and not chained yet": {func(w *world) { w.forge(0) }, audit.FaultForged},
		"an entry of an hour ago is put in to be chained": {func(w *world) {
			w.forge(0)
			w.exec("UPDATE audit_log SET hash = '', id = id - (3600000 * 4194304) WHERE actor = 'berta'")
			w.chain()
		}, audit.FaultForged},
		"an entry that waits is edited": {func(w *world) {
			w.write(1)
			w.exec("UPDATE audit_log SET actor = 'berta' WHERE seq = 0")
			w.chain()
		}, audit.FaultForged},
		"an entry that waits gets another time": {func(w *world) {
			w.write(1)
			w.exec("UPDATE audit_log SET id = id + 4194304 WHERE seq = 0")
			w.chain()
		}, audit.FaultForged},
		"a copy of an entry of another tenant is put in": {func(w *world) {
			w.write(1)
			w.exec("UPDATE audit_log SET tenant_id = 8 WHERE seq = 0")
			w.exec("UPDATE audit_log SET tenant_id = 7, object_id = '99' WHERE tenant_id = 8")
			w.chain()
		}, audit.FaultForged},
		"an entry is put in behind the chain":           {func(w *world) { w.forge(10) }, audit.FaultHead},
		"an entry takes the place of the one before it": {func(w *world) { w.exec("UPDATE audit_log SET seq = 4" + at(5)) }, audit.FaultMissing},
		"a chained entry is made loose and chained again": {func(w *world) {
			w.exec("UPDATE audit_log SET seq = 0, hash = '', actor = 'berta'" + at(4))
			w.chain()
		}, audit.FaultMissing},
		"a chained entry is made loose with its hash": {func(w *world) {
			w.exec("UPDATE audit_log SET seq = 0" + at(4))
			w.chain()
		}, audit.FaultForged},
		"the end is cut": {func(w *world) { w.exec("DELETE FROM audit_log" + at(9)) }, audit.FaultCut},
		"the end is cut, and the head's number edited": {func(w *world) {
			w.exec("DELETE FROM audit_log" + at(9))
			w.exec("UPDATE audit_chains SET head_seq = 8")
		}, audit.FaultHead},
		"the base is edited": {func(w *world) {
			w.exec(fmt.Sprintf("DELETE FROM audit_log WHERE tenant_id = %d AND seq < 4", tenant))
			w.exec("UPDATE audit_chains SET base_seq = 3, base_hash = (SELECT MAX(hash) FROM audit_log)")
		}, audit.FaultHead},
		"the ends are deleted": {func(w *world) { w.exec("DELETE FROM audit_chains") }, audit.FaultHead},
	}
	onBoth(t, func(t *testing.T, w *world) {
		w.write(9)
		w.chain()
		for name, attack := range attacks {
			t.Run(name, func(t *testing.T) {
				before := w.save()
				attack.do(w)
				found := w.verify(audit.Head{}, 1000)
				require.Contains(t, found, attack.want)
				require.Contains(t, w.verify(audit.Head{}, 2), attack.want, "in steps")
				w.restore(before)
				require.Empty(t, w.verify(audit.Head{}, 1000))
			})
		}
	})
}

// forge puts in an entry with a number. Its hash is that of another one.
func (w *world) forge(seq int64) {
	w.t.Helper()
	require.NoError(w.t, w.s.Run(w.t.Context(), "attack", func(t *db.Tx) error {
		if err := t.InsertAudit(domain.AuditEntry{ID: storetest.NewID(), Tenant: tenant, Actor: "berta", Operation: "update-job", Outcome: domain.AuditDone}); err != nil {
			return err
		}
		_, err := t.Exec(t.Ctx, "UPDATE audit_log SET seq = ?, hash = ? WHERE actor = 'berta'", seq, strings.Repeat("a", 64))
		return err
	}))
}

// A forged row does not stop the entries behind it. The node names it once.
func TestForgedEntriesAreSetAside(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.write(3)
		w.forge(0)
		w.write(3)
		var named []int64
		w.table.Forged = func(_ domain.TenantID, ids []int64) { named = append(named, ids...) }
		require.EqualValues(t, 6, w.chain().Seq)
		require.Len(t, named, 1)
		require.Empty(t, w.chain())
		require.Len(t, named, 1)
		require.Equal(t, []string{audit.FaultForged}, w.verify(audit.Head{}, 2))
	})
}

// The old row of a deleted entry has a genuine mark, but it is too old for its place.
func TestAnEntryThatIsPutInAgainIsOutOfOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		old := domain.AuditEntry{Tenant: tenant, Actor: "anna", Operation: "update-job", Outcome: domain.AuditDone}
		w.write(2)
		w.chain()
		for _, back := range []time.Duration{time.Minute, time.Hour} {
			old.ID = domain.IDFloor(time.Now().Add(-back))
			require.NoError(t, w.s.Run(t.Context(), "repeat", func(t *db.Tx) error { return t.InsertAudit(old) }))
			w.chain()
			w.write(1)
			w.chain()
		}
		require.Equal(t, []string{audit.FaultOrder}, w.verify(audit.Head{}, 1000))
		require.Equal(t, []string{audit.FaultOrder}, w.verify(audit.Head{}, 1), "in steps")
	})
}

// save and restore copy both tables.
func (w *world) save() (copies [2]string) {
	for i, table := range []string{"audit_log", "audit_chains"} {
		copies[i] = table + "_copy"
		w.exec("DROP TABLE IF EXISTS " + copies[i])
		w.exec("CREATE TABLE " + copies[i] + " AS SELECT * FROM " + table)
	}
	return copies
}

func (w *world) restore(copies [2]string) {
	for _, name := range copies {
		table := strings.TrimSuffix(name, "_copy")
		w.exec("DELETE FROM " + table)
		w.exec("INSERT INTO " + table + " SELECT * FROM " + name)
	}
}

// Who puts back the log as it was leaves a chain without a fault. The head that was kept
// elsewhere shows it, also after new entries.
func TestALogThatWasPutBackIsFoundByItsHead(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.write(5)
		w.chain()
		before := w.save()
		w.write(3)
		head := w.chain()
		require.Empty(t, w.verify(head, 1000))

		w.restore(before)
		require.Empty(t, w.verify(audit.Head{}, 1000))
		require.Equal(t, []string{audit.FaultCut}, w.verify(head, 1000))
		require.Equal(t, []string{audit.FaultCut}, w.verify(head, 2))
		w.write(4)
		w.chain()
		require.Empty(t, w.verify(audit.Head{}, 1000))
		require.Equal(t, []string{audit.FaultCut}, w.verify(head, 2))
	})
}

func TestRetentionKeepsTheChain(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.write(4)
		w.chain()
		middle := w.middle()
		w.write(3)
		head := w.chain()
		n, err := w.table.DeleteBefore(t.Context(), tenant, middle)
		require.NoError(t, err)
		require.EqualValues(t, 4, n)
		require.Empty(t, w.verify(head, 2))
		w.exec(fmt.Sprintf("DELETE FROM audit_log WHERE tenant_id = %d AND seq = 5", tenant))
		require.Equal(t, []string{audit.FaultMissing}, w.verify(audit.Head{}, 1000))
		n, err = w.table.DeleteBefore(t.Context(), tenant, time.Now().Add(time.Hour))
		require.NoError(t, err)
		require.Zero(t, n, "a gap stays visible")
	})
}

// middle is an instant after all entries so far. Ids of later entries are above it.
func (w *world) middle() time.Time {
	w.t.Helper()
	list, _, err := w.table.List(w.t.Context(), audit.Filter{Tenant: tenant, Limit: 1})
	require.NoError(w.t, err)
	after := list[0].At().Add(time.Millisecond)
	for domain.IDTime(storetest.NewID()).Before(after.Add(time.Millisecond)) { // ids have milliseconds
	}
	return after
}

// Two nodes may believe that they lead.
func TestTwoNodesChainSideBySide(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		stop := make(chan struct{})
		for range 2 {
			all.Go(func() {
				for {
					_, err := w.table.Chain(context.WithoutCancel(t.Context()))
					if err != nil {
						t.Error(err)
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		w.write(60)
		close(stop)
		all.Wait()
		w.chain()
		require.Empty(t, w.verify(audit.Head{}, 1000))
		v, err := w.table.Verify(t.Context(), tenant, 0, audit.Head{}, 1000)
		require.NoError(t, err)
		require.EqualValues(t, 60, v.Head.Seq)
		require.Zero(t, v.Unchained)
	})
}

// A transaction that is rolled back leaves no entry, one that is repeated leaves one, and so
// does an operation of two transactions.
func TestTheEntryBelongsToTheTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		pending := domain.NewPendingAudit(domain.AuditEntry{Tenant: tenant, Operation: "update-job", Outcome: domain.AuditDone})
		ctx := domain.WithAudit(t.Context(), pending)
		count := func() int {
			list, _, err := w.table.List(t.Context(), audit.Filter{Tenant: tenant, Limit: 10})
			require.NoError(t, err)
			return len(list)
		}
		refused := domain.Errorf(domain.CodeConflict, "no")
		require.ErrorIs(t, w.s.Run(ctx, "change", func(*db.Tx) error { return refused }), refused)
		require.Zero(t, count())
		require.True(t, pending.Missing())
		tries := 0
		require.NoError(t, w.s.RunRepeatable(ctx, "change", func(t *db.Tx) error {
			if tries++; tries < 3 {
				return db.ErrStale
			}
			t.Audited(domain.AuditObject{Kind: "job", ID: "1", After: strings.Repeat("é", domain.MaxAuditText)})
			return nil
		}))
		require.Equal(t, 1, count())
		require.False(t, pending.Missing())
		require.NoError(t, w.s.Run(ctx, "second change", func(*db.Tx) error { return nil }))
		require.Equal(t, 1, count())
		list, _, err := w.table.List(t.Context(), audit.Filter{Tenant: tenant, Limit: 10})
		require.NoError(t, err)
		require.Equal(t, "1", list[0].AuditObject.ID)
		require.True(t, strings.HasSuffix(list[0].After, "… [8192 of 16384 bytes]"), list[0].After[8000:])
	})
}

// build makes the add-on's parts for a node that leads.
func (w *world) build(dir string, logger *slog.Logger) addon.Parts {
	w.t.Helper()
	values, err := addon.Complete([]addon.AddOn{audit.AddOn()}, nil)
	require.NoError(w.t, err)
	parts, err := audit.AddOn().Build(addon.Node{
		Logger: logger, DB: w.s.DB, Secrets: w.box, Settings: values, DataDir: dir, Metrics: prometheus.NewRegistry(), Leads: func() bool { return true },
	})
	require.NoError(w.t, err)
	return parts
}

// told is a handler of logs that passes messages on.
type told struct {
	slog.Handler
	messages chan string
}

func (h told) Handle(_ context.Context, r slog.Record) error { h.messages <- r.Message; return nil }
func (h told) WithAttrs([]slog.Attr) slog.Handler            { return h }

// runUntil runs a node until it logs a message that contains a text.
func (w *world) runUntil(dir, text string) {
	w.t.Helper()
	h := told{slog.DiscardHandler, make(chan string, 100)}
	h.Handler = slog.NewTextHandler(os.Stderr, nil)
	ctx, cancel := context.WithCancel(w.t.Context())
	parts := w.build(dir, slog.New(h))
	var running sync.WaitGroup
	running.Go(func() { _ = parts.Run(ctx) })
	defer running.Wait()
	defer cancel()
	for {
		select {
		case m := <-h.messages:
			if strings.Contains(m, text) {
				return
			}
		case <-time.After(20 * time.Second):
			w.t.Errorf("the node does not say %q", text)
			return
		}
	}
}

// The node that leads chains, keeps the head in a file, and tells if the database is behind it.
func TestTheNodeKeepsTheHead(t *testing.T) {
	w := newWorld(t, "sqlite", gormtest.SQLite(t))
	dir := t.TempDir()
	w.write(3)
	before := w.save()
	w.runUntil(dir, "audit log head")
	file := filepath.Join(dir, "audit-heads.json")
	kept := map[string]audit.Head{}
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &kept))
	require.EqualValues(t, 3, kept["7"].Seq)
	require.Empty(t, w.verify(kept["7"], 1000))

	w.restore(before)
	w.exec(fmt.Sprintf("DELETE FROM audit_log WHERE tenant_id = %d", tenant))
	w.runUntil(dir, "put back or cut")
	evidence, err := filepath.Glob(file + ".*")
	require.NoError(t, err)
	require.Len(t, evidence, 1)
	saved, err := os.ReadFile(evidence[0])
	require.NoError(t, err)
	require.Equal(t, string(raw), string(saved))
}
