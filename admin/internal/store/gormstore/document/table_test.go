package document_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/document"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// A kind that the product does not have, whole: its type, its rules, its descriptor and its
// table. Nothing else knows it.

type siren struct {
	Loudness int      `json:"loudness" minimum:"1" maximum:"11"`
	Streets  []string `json:"streets,omitempty"`
	Host     string   `json:"host,omitempty"`
}

type sirenStatus struct {
	Streets int `json:"streets"`
}

var sirens = resource.Of(resource.Kind{
	Name: "Siren", Noun: "siren", Path: "sirens", Most: 3, Read: domain.PermRead, Edit: domain.PermEdit,
	About: "A siren wakes streets.", Purpose: "siren", Secrets: []resource.SecretField{{Name: "code", About: "Code that starts it"}},
}, resource.Rules[siren]{
	Complete: func(s *siren) { s.Host = strings.TrimSpace(s.Host) },
	Check: func(_ context.Context, d *resource.Draft[siren], c *domain.Checker) error {
		c.Check(d.Spec.Loudness >= 1 && d.Spec.Loudness <= 11, "body.spec.loudness", d.Spec.Loudness, "must be from 1 to 11")
		c.Check(d.Secrets["code"] != "", "body.secrets.code", nil, "is needed")
		return nil
	},
	SameReceiver: func(spec, old *siren) bool { return spec.Host == old.Host },
	Brief:        func(s *siren) { s.Streets = nil },
	Status:       func(d *resource.Document[siren]) any { return sirenStatus{len(d.Spec.Streets)} },
	Older: func(text []byte) (s siren, _ map[string]string, err error) {
		_, err = fmt.Sscanf(string(text), `{"level":%d}`, &s.Loudness)
		return s, nil, err
	},
})

// world is a tenant in a database with sirens.
type world struct {
	t      *testing.T
	ctx    context.Context
	s      *gormstore.Store
	table  *document.Table
	docs   *resource.Documents
	tenant domain.TenantID
}

func onBoth(t *testing.T, test func(*testing.T, *world)) {
	for driver, place := range map[string]func(testing.TB) string{
		"sqlite": gormtest.SQLite, "mysql": func(tb testing.TB) string { return testenv.Database(tb) },
	} {
		t.Run(driver, func(t *testing.T) {
			o := gormstore.Options{Driver: driver, DSN: place(t), NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler)}
			require.NoError(t, gormstore.Migrate(t.Context(), o))
			s, err := gormstore.Open(t.Context(), o)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			box, err := secret.New(make([]byte, secret.KeySize))
			require.NoError(t, err)
			table := &document.Table{DB: s.DB, Kind: sirens, Name: "connections"} // its columns are those of all kinds
			w := &world{t, t.Context(), s, table, resource.New(resource.Options{
				Kind: sirens, Store: table, Secrets: box, NewID: storetest.NewID, Log: slog.New(slog.DiscardHandler),
			}), domain.TenantID(storetest.NewID())}
			require.NoError(t, s.CreateTenant(w.ctx, domain.Tenant{ID: w.tenant, Name: "tenant " + w.tenant.String(), CreatedAt: time.Now()}))
			test(t, w)
		})
	}
}

func (w *world) code(want domain.Code, err error) {
	w.t.Helper()
	require.Equal(w.t, want, domain.CodeOf(err), "%v", err)
}

func write(name string, spec siren, code string) resource.Write {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	w := resource.Write{Name: name, Labels: map[string]string{"team": "night"}, Spec: raw, Secrets: map[string]string{}}
	if code != "" {
		w.Secrets["code"] = code
	}
	return w
}

func TestDocuments(t *testing.T) { onBoth(t, testDocuments) }

func testDocuments(t *testing.T, w *world) {
	made, err := w.docs.Create(w.ctx, w.tenant, "anna", write("北 street", siren{Loudness: 3, Streets: []string{"a", "b"}, Host: " h "}, "1234"))
	require.NoError(t, err)
	require.Equal(t, []any{int64(1), "anna", "anna", map[string]string{"team": "night"}}, []any{made.Version, made.CreatedBy, made.UpdatedBy, made.Labels})
	require.JSONEq(t, `{"loudness":3,"streets":["a","b"],"host":"h"}`, string(made.Spec))
	found, err := w.docs.Find(w.ctx, w.tenant, "北 street")
	require.NoError(t, err)
	require.Equal(t, made, found, "what was answered is what is stored")
	byID, err := w.docs.Find(w.ctx, w.tenant, fmt.Sprint(made.ID))
	require.NoError(t, err)
	require.Equal(t, made, byID)
	_, err = w.docs.Create(w.ctx, w.tenant, "bob", write("北 street", siren{Loudness: 1}, "1"))
	w.code(domain.CodeConflict, err)
	for name, wrong := range map[string]resource.Write{
		"looks like an id": write("77", siren{Loudness: 1}, "1"), "too loud": write("x", siren{Loudness: 12}, "1"),
		"no code": write("x", siren{Loudness: 1}, ""), "two lines": write("x\ny", siren{Loudness: 1}, "1"),
		"an unknown secret": {Name: "x", Spec: []byte(`{"loudness":1}`), Secrets: map[string]string{"code": "1", "key": "2"}},
	} {
		_, err = w.docs.Create(w.ctx, w.tenant, "bob", wrong)
		require.Equal(t, domain.CodeInvalid, domain.CodeOf(err), name)
	}

	// An edit keeps the secret that it leaves out, and a fingerprint stands for it.
	changed, err := w.docs.Replace(w.ctx, made, "bob", write("south", siren{Loudness: 4, Host: "h"}, ""))
	require.NoError(t, err)
	require.Equal(t, []any{int64(2), "anna", "bob", made.Marks, made.CreatedAt}, []any{changed.Version, changed.CreatedBy, changed.UpdatedBy, changed.Marks, changed.CreatedAt})
	_, err = w.docs.Replace(w.ctx, made, "bob", write("south", siren{Loudness: 4, Host: "h"}, ""))
	w.code(domain.CodeRevisionMismatch, err)
	changed, err = w.docs.Replace(w.ctx, changed, "bob", write("south", siren{Loudness: 4, Host: "h"}, changed.Marks["code"]))
	require.NoError(t, err)
	_, err = w.docs.Replace(w.ctx, changed, "bob", write("south", siren{Loudness: 4, Host: "thief"}, changed.Marks["code"]))
	w.code(domain.CodeInvalid, err)
	_, err = w.docs.Replace(w.ctx, changed, "bob", write("south", siren{Loudness: 4, Host: "h"}, "fingerprint:0123"))
	w.code(domain.CodeInvalid, err)
	changed, err = w.docs.Replace(w.ctx, changed, "bob", write("south", siren{Loudness: 4, Host: "other"}, "5678"))
	require.NoError(t, err)
	require.NotEqual(t, made.Marks, changed.Marks)

	// Other tenants see nothing.
	_, err = w.docs.Find(w.ctx, w.tenant+1, "south")
	w.code(domain.CodeNotFound, err)
	foreign := changed
	foreign.Tenant++
	_, err = w.table.Replace(w.ctx, foreign)
	w.code(domain.CodeNotFound, err)
	w.code(domain.CodeNotFound, w.docs.Delete(w.ctx, &foreign, 0, "bob"))
	rows, more, err := w.table.List(w.ctx, w.tenant+1, "", 10)
	require.NoError(t, err)
	require.Empty(t, rows)
	require.False(t, more)

	for _, name := range []string{"east", "west"} {
		_, err = w.docs.Create(w.ctx, w.tenant, "anna", write(name, siren{Loudness: 1}, "1"))
		require.NoError(t, err)
	}
	_, err = w.docs.Create(w.ctx, w.tenant, "anna", write("fourth", siren{Loudness: 1}, "1"))
	w.code(domain.CodeConflict, err)
	require.ErrorContains(t, err, "there are 3 sirens, which is the most")
	rows, more, err = w.table.List(w.ctx, w.tenant, "east", 1)
	require.NoError(t, err)
	require.Equal(t, []any{1, "south", true}, []any{len(rows), rows[0].Name, more})
}

func TestADeletedDocumentIsRestored(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		made, err := w.docs.Create(w.ctx, w.tenant, "anna", write("north", siren{Loudness: 3}, "1234"))
		require.NoError(t, err)
		w.code(domain.CodeRevisionMismatch, w.docs.Delete(w.ctx, &made, 7, "bob"))
		require.NoError(t, w.docs.Delete(w.ctx, &made, 1, "bob"))
		w.code(domain.CodeNotFound, w.docs.Delete(w.ctx, &made, 0, "bob"))
		gone, err := w.table.ListDeleted(w.ctx, w.tenant, 10)
		require.NoError(t, err)
		require.Equal(t, []any{1, "north", "bob"}, []any{len(gone), gone[0].Name, gone[0].UpdatedBy})
		back, err := w.docs.Restore(w.ctx, w.tenant, made.ID, "carl")
		require.NoError(t, err)
		require.Equal(t, []any{made.ID, int64(2), made.Spec, made.Marks, made.Sealed, "anna", "carl"}, []any{back.ID, back.Version, back.Spec, back.Marks, back.Sealed, back.CreatedBy, back.UpdatedBy})
		_, err = w.docs.Restore(w.ctx, w.tenant, made.ID, "carl")
		w.code(domain.CodeNotFound, err)

		// The name has another owner, or another tenant asks.
		require.NoError(t, w.docs.Delete(w.ctx, &back, 0, "bob"))
		_, err = w.docs.Create(w.ctx, w.tenant, "anna", write("north", siren{Loudness: 3}, "1"))
		require.NoError(t, err)
		_, err = w.docs.Restore(w.ctx, w.tenant, made.ID, "carl")
		w.code(domain.CodeConflict, err)
		_, err = w.docs.Restore(w.ctx, w.tenant+1, made.ID, "carl")
		w.code(domain.CodeNotFound, err)

		n, err := w.s.DeleteDocumentsBefore(w.ctx, time.Now().Add(-time.Hour), 10)
		require.NoError(t, err)
		require.Zero(t, n)
		_, err = w.s.DeleteDocumentsBefore(w.ctx, time.Now().Add(time.Hour), 100)
		require.NoError(t, err)
		gone, err = w.table.ListDeleted(w.ctx, w.tenant, 10)
		require.NoError(t, err)
		require.Empty(t, gone)
	})
}

// The deleted documents of a kind are bounded, and the oldest leaves first.
func TestDeletedDocumentsAreBounded(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		for i := range 103 {
			row, err := w.docs.Create(w.ctx, w.tenant, "anna", write(fmt.Sprint("s", i), siren{Loudness: 3}, "1"))
			require.NoError(t, err)
			require.NoError(t, w.docs.Delete(w.ctx, &row, 0, "anna"))
		}
		gone, err := w.table.ListDeleted(w.ctx, w.tenant, 1000)
		require.NoError(t, err)
		require.Len(t, gone, 100)
		require.Equal(t, "s102", gone[0].Name)
	})
}

func TestAnOlderTextIsConverted(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		id := storetest.NewID()
		require.NoError(t, w.s.Run(w.ctx, "insert", func(tx *db.Tx) error {
			_, err := tx.Exec(tx.Ctx, "INSERT INTO connections (id, tenant_id, name, version, spec, secrets, created_at, updated_at) VALUES (?, ?, 'old', 4, ?, ?, 1, 1)", id, int64(w.tenant), `{"level":9}`, []byte{})
			return err
		}))
		row, err := w.table.Find(w.ctx, w.tenant, id)
		require.NoError(t, err)
		d, err := resource.Read[siren](&row)
		require.NoError(t, err)
		require.Equal(t, []any{9, int64(4), "old"}, []any{d.Spec.Loudness, d.Version, d.Name})
		status, err := sirens.Status(&row)
		require.NoError(t, err)
		require.Equal(t, sirenStatus{0}, status)
	})
}
