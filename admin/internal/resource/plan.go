package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Action is what an apply does with a document.
type Action string

// The actions. Same documents are not written.
const (
	ActionCreate Action = "create"
	ActionUpdate Action = "update"
	ActionSame   Action = "same"
)

// Step is what an apply does with one document.
type Step struct {
	Action Action
	// Old is the document that has the name now; nil: there is none.
	Old *Row
	// Changes are the fields that differ, in their order. A new document has none.
	Changes []Change

	write Write
}

// Change is a field that an apply changes. Before and After are JSON; empty: it is absent.
type Change struct {
	Path          string
	Before, After json.RawMessage
}

// maxChanges bounds the changes of one document in a plan.
const maxChanges = 100

// Plan checks a document and says what Do would do with it, after the coming documents. It
// writes nothing. Errors are those of Create and Replace.
func (d *Documents) Plan(ctx context.Context, tenant domain.TenantID, by string, w Write, coming Coming) (Step, error) {
	w.Name = strings.TrimSpace(w.Name)
	step := Step{Action: ActionCreate, write: w}
	row := Row{Meta: Meta{ID: d.o.NewID(), Tenant: tenant, CreatedBy: by, UpdatedBy: by}}
	if !LooksLikeID(w.Name) {
		old, err := d.o.Store.FindByName(ctx, tenant, w.Name)
		if err == nil {
			step.Old, row = &old, old
		} else if !domain.Is(err, domain.CodeNotFound) {
			return Step{}, err
		}
	}
	if err := d.fill(ctx, &row, step.Old, w, coming); err != nil {
		return Step{}, err
	}
	if step.Old == nil {
		return step, nil
	}
	before := *step.Old
	if err := d.show(ctx, tenant, &before, &row); err != nil {
		return Step{}, err
	}
	changes, err := compare(&before, &row)
	if err != nil {
		return Step{}, err
	}
	step.Action, step.Changes = ActionUpdate, changes
	if len(changes) == 0 {
		step.Action = ActionSame
	}
	return step, nil
}

// Do does what a step says. CodeRevisionMismatch: the document was changed after the plan.
func (d *Documents) Do(ctx context.Context, tenant domain.TenantID, by string, step *Step) (Row, error) {
	switch step.Action {
	case ActionSame:
		return *step.Old, nil
	case ActionUpdate:
		return d.Replace(ctx, *step.Old, by, step.write)
	}
	return d.Create(ctx, tenant, by, step.write)
}

// compare lists the fields in which two rows differ.
func compare(old, row *Row) ([]Change, error) {
	var c comparison
	before, after := map[string]any{}, map[string]any{}
	for _, side := range []struct {
		row *Row
		to  map[string]any
	}{{old, before}, {row, after}} {
		var spec any
		if err := json.Unmarshal(side.row.Spec, &spec); err != nil {
			return nil, fmt.Errorf("compare documents: %w", err)
		}
		side.to["spec"], side.to["labels"], side.to["secrets"] = spec, texts(side.row.Labels), texts(side.row.Marks)
	}
	for _, part := range []string{"labels", "spec", "secrets"} {
		c.values(part, before[part], after[part])
	}
	return c.changes, c.err
}

func texts(m map[string]string) any {
	out := map[string]any{}
	for key, value := range m {
		out[key] = value
	}
	return out
}

type comparison struct {
	changes []Change
	err     error
}

func (c *comparison) values(path string, before, after any) {
	if reflect.DeepEqual(before, after) || len(c.changes) >= maxChanges {
		return
	}
	old, wasObject := before.(map[string]any)
	now, isObject := after.(map[string]any)
	if !wasObject || !isObject {
		c.add(path, before, after)
		return
	}
	keys := maps.Clone(old)
	maps.Copy(keys, now)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		c.values(path+"."+key, old[key], now[key])
	}
}

func (c *comparison) add(path string, before, after any) {
	change := Change{Path: path}
	for _, side := range []struct {
		value any
		to    *json.RawMessage
	}{{before, &change.Before}, {after, &change.After}} {
		if side.value == nil {
			continue
		}
		raw, err := json.Marshal(side.value)
		if err != nil {
			c.err = err
			return
		}
		*side.to = raw
	}
	c.changes = append(c.changes, change)
}
