package resource

import (
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
	changed := false
	for _, r := range t.Refs(&d.Spec) {
		for i, was := range r.Words {
			if r.Words[i], err = to(&r, i); err != nil {
				return nil, err
			}
			changed = changed || r.Words[i] != was
		}
	}
	if !changed {
		return spec, nil
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

// resolve puts ids in the place of names. The name of a coming document stays.
func (d *Documents) resolve(ctx context.Context, tenant domain.TenantID, spec json.RawMessage, coming Coming) (json.RawMessage, error) {
	return d.o.Kind.rules.rewrite(spec, func(r *Refs, i int) (string, error) {
		for _, of := range d.o.Uses {
			if of.o.Kind.Name != r.Kind {
				continue
			}
			row, err := of.Find(ctx, tenant, r.Words[i])
			switch {
			case domain.Is(err, domain.CodeNotFound) && coming[[2]string{r.Kind, r.Words[i]}]:
				return r.Words[i], nil
			case domain.Is(err, domain.CodeNotFound):
				return "", domain.Invalid(fmt.Sprintf("%s[%d]", r.At, i), "there is no %s %s", of.o.Kind.Noun, r.Words[i])
			}
			return strconv.FormatInt(row.ID, 10), err
		}
		return "", fmt.Errorf("%s refers to the kind %s, which is not known", d.o.Kind.Name, r.Kind)
	})
}

// show puts names in the place of ids. An id without a document stays.
func (d *Documents) show(ctx context.Context, tenant domain.TenantID, rows ...*Row) error {
	for _, of := range d.o.Uses {
		var ids []int64
		for _, row := range rows {
			some, err := d.o.Kind.References(row, of.o.Kind.Name)
			if err != nil {
				return err
			}
			ids = append(ids, some...)
		}
		if len(ids) == 0 {
			continue
		}
		names, err := of.o.Store.Names(ctx, tenant, ids)
		if err != nil {
			return err
		}
		for _, row := range rows {
			row.Spec, err = d.o.Kind.rules.rewrite(row.Spec, func(r *Refs, i int) (string, error) {
				id, err := strconv.ParseInt(r.Words[i], 10, 64)
				if name := names[id]; err == nil && r.Kind == of.o.Kind.Name && name != "" {
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
