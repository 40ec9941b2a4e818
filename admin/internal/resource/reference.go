package resource

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Refs are references of a document to documents of one kind. They are written as names or ids,
// stored as ids, and shown as names.
type Refs struct {
	// Kind is the name of the kind of the documents that are referred to, and At the location
	// of the list, such as body.spec.channels.
	Kind, At string
	// Words are the names or ids. They are part of the spec, and replaced in it.
	Words []string
}

// Target are what documents may refer to: documents of a kind, or jobs and executors of the engine.
type Target struct {
	// Kind is the name of their kind, and Noun the same in messages.
	Kind, Noun string
	// Find finds the id of a name, or else of an id. CodeNotFound: there is none.
	Find func(ctx context.Context, tenant domain.TenantID, word string) (int64, error)
	// Names are what is shown of ids. An id that is not there is left out.
	Names func(ctx context.Context, tenant domain.TenantID, ids []int64) (map[int64]string, error)
	// Loose targets are deleted while documents refer to them. Such a reference stays until it is
	// written anew, and a plan of the deletion names the documents.
	Loose bool
}

// Target are the documents as a target of others.
func (d *Documents) Target() Target {
	find := func(ctx context.Context, tenant domain.TenantID, word string) (int64, error) {
		row, err := d.Find(ctx, tenant, word)
		return row.ID, err
	}
	names := func(ctx context.Context, tenant domain.TenantID, ids []int64) (map[int64]string, error) {
		return d.o.Store.Names(ctx, tenant, ids)
	}
	return Target{Kind: d.o.Kind.Name, Noun: d.o.Kind.Noun, Find: find, Names: names}
}

// Coming are documents that an apply is about to write, by kind and name. Documents of the same
// apply may refer to them.
type Coming map[[2]string]bool

// replacing gives the word in the place of r.Words[i].
type replacing func(r *Refs, i int) (string, error)

// rewrite replaces the words of references.
func (t typed[S]) rewrite(spec json.RawMessage, to replacing) (json.RawMessage, error) {
	if t.Refs == nil {
		return spec, nil
	}
	d, err := Read[S](&Row{Spec: spec})
	if err != nil {
		return nil, err
	}
	for _, r := range t.Refs(&d.Spec) {
		for i := range r.Words {
			if r.Words[i], err = to(&r, i); err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(d.Spec)
}

// References are the ids that a stored document refers to, of documents of a kind.
func (k *Kind) References(row *Row, kind string) (ids []int64, err error) {
	_, err = k.rules.rewrite(row.Spec, func(r *Refs, i int) (string, error) {
		if id, err := strconv.ParseInt(r.Words[i], 10, 64); err == nil && r.Kind == kind {
			ids = append(ids, id)
		}
		return r.Words[i], nil
	})
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// resolve puts ids in the place of names. The name of a coming document stays. old is the replaced
// document. nil: it is new.
func (d *Documents) resolve(ctx context.Context, tenant domain.TenantID, old *Row, spec json.RawMessage, coming Coming) (json.RawMessage, error) {
	return d.o.Kind.rules.rewrite(spec, func(r *Refs, i int) (string, error) {
		n := slices.IndexFunc(d.o.Uses, func(of Target) bool { return of.Kind == r.Kind })
		if n < 0 {
			return "", fmt.Errorf("%s refers to the kind %s, which is not known", d.o.Kind.Name, r.Kind)
		}
		of := d.o.Uses[n]
		id, err := of.Find(ctx, tenant, r.Words[i])
		if domain.Is(err, domain.CodeNotFound) {
			if coming[[2]string{r.Kind, r.Words[i]}] {
				return r.Words[i], nil
			}
			if id, err = d.kept(ctx, tenant, old, of, r.Words[i]); err == nil && id == 0 {
				return "", domain.Invalid(fmt.Sprintf("%s[%d]", r.At, i), "there is no %s %s", of.Noun, r.Words[i])
			}
		}
		return strconv.FormatInt(id, 10), err
	})
}

// kept is the id behind a word that a document shows of a deleted target. 0: it shows no such word.
func (d *Documents) kept(ctx context.Context, tenant domain.TenantID, old *Row, of Target, word string) (int64, error) {
	if old == nil || !of.Loose {
		return 0, nil
	}
	stored, err := d.o.Store.Find(ctx, tenant, old.ID) // old may have names in place of ids
	if err != nil {
		return 0, err
	}
	ids, err := d.o.Kind.References(&stored, of.Kind)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	names, err := of.Names(ctx, tenant, ids)
	for _, id := range ids {
		if err == nil && cmp.Or(names[id], strconv.FormatInt(id, 10)) == word {
			return id, nil
		}
	}
	return 0, err
}

// ReferTo are the documents that refer to objects of a kind with loose references, by the ids of
// the objects.
func (d *Documents) ReferTo(ctx context.Context, tenant domain.TenantID, kind string) (map[int64][]User, error) {
	out := map[int64][]User{}
	if !slices.ContainsFunc(d.o.Uses, func(of Target) bool { return of.Loose && of.Kind == kind }) {
		return out, nil
	}
	for after := ""; ; {
		rows, more, err := d.o.Store.List(ctx, tenant, after, 100)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			ids, err := d.o.Kind.References(&rows[i], kind)
			if err != nil {
				return nil, err
			}
			for _, id := range ids {
				out[id] = append(out[id], User{SetMember{d.o.Kind.Name, rows[i].ID}, d.o.Kind.Noun, rows[i].Name})
			}
			after = rows[i].Name
		}
		if !more || len(rows) == 0 {
			return out, nil
		}
	}
}

// show puts names in the place of ids. An id without a document stays.
func (d *Documents) show(ctx context.Context, tenant domain.TenantID, rows ...*Row) error {
	for _, of := range d.o.Uses {
		var ids []int64
		for _, row := range rows {
			some, err := d.o.Kind.References(row, of.Kind)
			if err != nil {
				return err
			}
			ids = append(ids, some...)
		}
		if len(ids) == 0 {
			continue
		}
		names, err := of.Names(ctx, tenant, ids)
		if err != nil {
			return err
		}
		for _, row := range rows {
			row.Spec, err = d.o.Kind.rules.rewrite(row.Spec, func(r *Refs, i int) (string, error) {
				id, err := strconv.ParseInt(r.Words[i], 10, 64)
				if name := names[id]; err == nil && r.Kind == of.Kind && name != "" {
					return name, nil
				}
				return r.Words[i], nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// shown is a row as answers have it.
func (d *Documents) shown(ctx context.Context, row Row, err error) (Row, error) {
	if err == nil {
		err = d.show(ctx, row.Tenant, &row)
	}
	if err != nil {
		return Row{}, err
	}
	return row, nil
}

// List lists documents by name, after a name.
func (d *Documents) List(ctx context.Context, tenant domain.TenantID, after string, limit int) ([]Row, bool, error) {
	rows, more, err := d.o.Store.List(ctx, tenant, after, limit)
	if err != nil {
		return nil, false, err
	}
	each := make([]*Row, len(rows))
	for i := range rows {
		each[i] = &rows[i]
	}
	return rows, more, d.show(ctx, tenant, each...)
}
