package resource

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Store keeps the documents of one kind.
type Store interface {
	// Create writes version 1 and returns it. CodeConflict: the name is taken, or the tenant has
	// as many documents as it may.
	Create(ctx context.Context, row Row) (Row, error)
	// Replace writes a row in place of its version row.Version, and returns the next version.
	// CodeRevisionMismatch: the document is at another version. CodeConflict: the name is taken.
	Replace(ctx context.Context, row Row) (Row, error)
	// Users lists what refers to a document, by name within a kind, up to limit.
	Users(ctx context.Context, tenant domain.TenantID, id int64, limit int) ([]User, error)
	// Deletable is the check of Delete, after the going documents are gone. CodeConflict: the
	// document is used.
	Deletable(ctx context.Context, row *Row, going Going) error
	// Delete moves a document to the deleted ones. version 0 is any. CodeConflict: it is used.
	Delete(ctx context.Context, tenant domain.TenantID, id, version int64, by string) error
	// Restore brings a deleted document back as a new version. CodeConflict: the name is taken.
	Restore(ctx context.Context, tenant domain.TenantID, id int64, by string) (Row, error)

	Find(ctx context.Context, tenant domain.TenantID, id int64) (Row, error)
	FindByName(ctx context.Context, tenant domain.TenantID, name string) (Row, error)
	// Names are the names of documents by id. A document that is not there is left out.
	Names(ctx context.Context, tenant domain.TenantID, ids []int64) (map[int64]string, error)
	// List lists by name, after a name. A page ends at limit rows or domain.MaxPageBytes.
	List(ctx context.Context, tenant domain.TenantID, after string, limit int) (rows []Row, more bool, err error)
	// Search finds documents by id and name. It reads a bounded number of rows.
	Search(ctx context.Context, q domain.SearchQuery) (domain.FoundPage, error)
	// Count counts documents, up to most.
	Count(ctx context.Context, tenant domain.TenantID, most int) (int, error)
	// ListVersions lists the newest first, below the version before; 0 = all.
	ListVersions(ctx context.Context, tenant domain.TenantID, id, before int64, limit int) (rows []Row, more bool, err error)
	// ListDeleted lists deleted documents, the last deleted first. Specs are left out.
	ListDeleted(ctx context.Context, tenant domain.TenantID, limit int) ([]Row, error)
}

// Options of Documents.
type Options struct {
	Kind    *Kind
	Store   Store
	Secrets Sealer // nil if the kind has no secrets
	NewID   func() int64
	Log     *slog.Logger
	// Uses are what these may refer to.
	Uses []Target
	// Check is a check beside those of the kind that needs a running node. row has the new
	// contents, and old those of before; nil: it is new. A nil Check checks nothing.
	Check func(ctx context.Context, old, row *Row) error
	// Changed is called after each commit of a new or changed document, and Deleted after its
	// deletion. They only nudge. nil: there is nothing to nudge.
	Changed, Deleted func(ctx context.Context, row *Row)
}

// Documents are the documents of a kind. It is safe for concurrent use.
type Documents struct{ o Options }

// New makes Documents.
func New(o Options) *Documents { return &Documents{o} }

// Kind is the kind of the documents.
func (d *Documents) Kind() *Kind { return d.o.Kind }

// Store is where they are kept.
func (d *Documents) Store() Store { return d.o.Store }

// Write is a document as a person writes it.
type Write struct {
	Name   string
	Labels map[string]string
	Spec   json.RawMessage
	// Secrets that are left out stay. An empty one is removed. The mark of a secret stands for
	// the secret itself.
	Secrets map[string]string
}

// Create writes a new document.
func (d *Documents) Create(ctx context.Context, tenant domain.TenantID, by string, w Write) (Row, error) {
	row := Row{Meta: Meta{ID: d.o.NewID(), Tenant: tenant, CreatedBy: by, UpdatedBy: by}}
	if err := d.fill(ctx, &row, nil, w, nil); err != nil {
		return Row{}, err
	}
	row, err := d.o.Store.Create(ctx, row)
	if err != nil {
		return Row{}, err
	}
	d.tell(ctx, &row, "created", by)
	return d.shown(ctx, row, nil)
}

// Replace writes a document in place of its version old.Version.
func (d *Documents) Replace(ctx context.Context, old Row, by string, w Write) (Row, error) {
	row := old
	row.UpdatedBy = by
	if err := d.fill(ctx, &row, &old, w, nil); err != nil {
		return Row{}, err
	}
	row, err := d.o.Store.Replace(ctx, row)
	if err != nil {
		return Row{}, err
	}
	d.tell(ctx, &row, "changed", by)
	return d.shown(ctx, row, nil)
}

// Delete deletes a document. version 0 is any.
func (d *Documents) Delete(ctx context.Context, row *Row, version int64, by string) error {
	if err := d.o.Store.Delete(ctx, row.Tenant, row.ID, version, by); err != nil {
		return err
	}
	d.o.Log.Info("document deleted", "kind", d.o.Kind.Noun, "tenant_id", row.Tenant, "id", row.ID, "name", row.Name, "by", by)
	if d.o.Deleted != nil {
		d.o.Deleted(ctx, row)
	}
	return nil
}

// Restore brings a deleted document back.
func (d *Documents) Restore(ctx context.Context, tenant domain.TenantID, id int64, by string) (Row, error) {
	row, err := d.o.Store.Restore(ctx, tenant, id, by)
	if err != nil {
		return Row{}, err
	}
	d.tell(ctx, &row, "restored", by)
	return d.shown(ctx, row, nil)
}

func (d *Documents) tell(ctx context.Context, row *Row, what, by string) {
	d.o.Log.Info("document written", "kind", d.o.Kind.Noun, "what", what, "tenant_id", row.Tenant, "id", row.ID, "name", row.Name, "version", row.Version, "by", by)
	if d.o.Changed != nil {
		d.o.Changed(ctx, row)
	}
}

// Find finds a document by its id, or else by its name. Names do not look like ids.
func (d *Documents) Find(ctx context.Context, tenant domain.TenantID, word string) (Row, error) {
	if !LooksLikeID(word) {
		row, err := d.o.Store.FindByName(ctx, tenant, word)
		return d.shown(ctx, row, err)
	}
	id, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return Row{}, domain.Errorf(domain.CodeNotFound, "there is no %s %s", d.o.Kind.Noun, word)
	}
	row, err := d.o.Store.Find(ctx, tenant, id)
	return d.shown(ctx, row, err)
}

// FindVersion finds a version of a document.
func (d *Documents) FindVersion(ctx context.Context, tenant domain.TenantID, word string, version int64) (Row, error) {
	row, err := d.Find(ctx, tenant, word)
	if err != nil {
		return Row{}, err
	}
	rows, _, err := d.o.Store.ListVersions(ctx, tenant, row.ID, version+1, 1)
	if err != nil {
		return Row{}, err
	}
	if len(rows) == 0 || rows[0].Version != version {
		return Row{}, domain.Errorf(domain.CodeNotFound, "the %s %q has no version %d", d.o.Kind.Noun, row.Name, version)
	}
	return d.shown(ctx, rows[0], nil)
}

// LooksLikeID tells whether a word is a decimal number.
func LooksLikeID(word string) bool {
	return word != "" && strings.Trim(word, "0123456789") == ""
}

// fill checks w, seals its secrets and puts it into row. old is nil for a new document.
func (d *Documents) fill(ctx context.Context, row, old *Row, w Write, coming Coming) error {
	k := d.o.Kind
	var c domain.Checker
	name := strings.TrimSpace(w.Name)
	c.Check(name != "" && len(name) <= domain.MaxNameLength && !domain.HasControl(name), "body.name", name, "must have 1 to 128 bytes in one line")
	c.Check(!LooksLikeID(name), "body.name", name, "must not consist of digits only: it would look like an id")
	c.Labels(w.Labels)
	if err := c.Err(); err != nil {
		return err
	}
	secrets, err := d.secrets(row, old, w)
	if err != nil {
		return err
	}
	change := draft{tenant: row.Tenant, old: old, name: name, spec: w.Spec, secrets: secrets}
	if err := k.rules.check(ctx, &change); err != nil {
		return err
	}
	row.Name, row.Labels, row.Problem = name, w.Labels, ""
	if row.Spec, err = d.resolve(ctx, row.Tenant, old, change.spec, coming); err != nil {
		return err
	}
	if d.o.Check != nil {
		if err := d.o.Check(ctx, old, row); err != nil {
			return err
		}
	}
	return d.seal(row, secrets)
}
