package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Action is what an apply does with a document.
type Action string

// The actions. Same documents are not written.
const (
	ActionCreate Action = "create"
	ActionUpdate Action = "update"
	ActionSame   Action = "same"
	ActionDelete Action = "delete"
)

// Step is what an apply does with one document.
type Step struct {
	Action Action
	Name   string
	// ID and Version are those of the document that has the name now. 0: there is none. After a
	// write they are those that were written.
	ID, Version int64
	// Seen is what the step was compared with, if Version does not stand for all of it.
	Seen string
	// Changes are the fields that differ, in their order. A new document has none.
	Changes []Change
	// Fires are next fire times, if the step changes them. nil: it does not.
	Fires *Fires
	// Warnings do not keep an apply from it. Refused does: the document stays as it is.
	Warnings []Warning
	Refused  error
	// New is the document as it will be; nil: its kind has another store.
	New *Row
	// Work is what the kind needs to do it.
	Work any
}

// Fires are the next fire times before and after a step, at most FiresShown. Paused: the job does
// not fire at them until it is resumed.
type Fires struct {
	Before, After []time.Time
	Paused        bool
}

// FiresShown is how many fire times a plan shows.
const FiresShown = 3

// Warning is a reason to look twice. Code is stable.
type Warning struct{ Code, Text string }

// SetMember is a document of a set.
type SetMember struct {
	Kind string
	ID   int64
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
	step := Step{Action: ActionCreate, Name: w.Name}
	work := documentWork{write: w}
	row := Row{Meta: Meta{ID: d.o.NewID(), Tenant: tenant, CreatedBy: by, UpdatedBy: by}}
	if !LooksLikeID(w.Name) {
		old, err := d.o.Store.FindByName(ctx, tenant, w.Name)
		if err == nil {
			work.old, row = &old, old
			step.ID, step.Version = old.ID, old.Version
		} else if !domain.Is(err, domain.CodeNotFound) {
			return Step{}, err
		}
	}
	if err := d.fill(ctx, &row, work.old, w, coming); err != nil {
		return Step{}, err
	}
	step.New, step.Work = &row, work
	if work.old == nil {
		return step, nil
	}
	before := *work.old
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

// documentWork is what Do needs beside the step. old is nil for a new document.
type documentWork struct {
	old   *Row
	write Write
}

// DeleteStep is the step that deletes a document at its version, after the going documents are
// gone. It is refused while the document is used.
func (d *Documents) DeleteStep(ctx context.Context, row Row, going Going) (Step, error) {
	step := Step{Action: ActionDelete, Name: row.Name, ID: row.ID, Version: row.Version, Work: documentWork{old: &row}}
	step.Refused = d.o.Store.Deletable(ctx, &row, going)
	if step.Refused != nil && !domain.Is(step.Refused, domain.CodeConflict) {
		return Step{}, step.Refused
	}
	return step, nil
}

// Do does what a step says. CodeRevisionMismatch: the document was changed after the plan.
func (d *Documents) Do(ctx context.Context, tenant domain.TenantID, by string, step *Step) error {
	work, is := step.Work.(documentWork)
	if !is || step.Action == ActionSame {
		return nil
	}
	if step.Action == ActionDelete {
		return d.Delete(ctx, work.old, work.old.Version, by)
	}
	var row Row
	var err error
	if step.Action == ActionUpdate {
		row, err = d.Replace(ctx, *work.old, by, work.write)
	} else {
		row, err = d.Create(ctx, tenant, by, work.write)
	}
	if err == nil {
		step.ID, step.Version = row.ID, row.Version
	}
	return err
}

// compare lists the fields in which two rows differ.
func compare(old, row *Row) ([]Change, error) {
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
	return Compare(before, after)
}

// Compare lists the differences of two documents: of their labels, specs and secrets.
func Compare(before, after map[string]any) ([]Change, error) {
	var c comparison
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
