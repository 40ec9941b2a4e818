package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// Outcome is what became of a document that Make was given.
type Outcome struct {
	Made bool
	// Differs are the fields in which the document that is there is another one. It stays.
	Differs []resource.Change
	// Err is why it was not made.
	Err error
}

// makeTries bounds how often Make looks again after another node was faster.
const makeTries = 8

// Make creates those documents of a tenant that are not there, kind by kind, and leaves the
// others as they are. A wrong document keeps no other one from it. Several nodes may make the
// same at once: each document is made once. With trial, kinds that compute long are only
// checked. err is a fault of the server.
func Make(ctx context.Context, s *web.Server, id auth.Identity, documents []json.RawMessage, trial bool) ([]Outcome, error) {
	ctx = s.Records(ctx, id, "provision")
	kinds := s.Kinds().List()
	m := &making{id: id, trial: trial, made: map[*entry]bool{}}
	m.entries = opened(ctx, s, id, documents, kinds, true)
	for i := range kinds {
		if err := m.kind(ctx, &kinds[i]); err != nil {
			return nil, err
		}
	}
	out := make([]Outcome, len(documents))
	for i, e := range m.entries {
		out[i] = Outcome{Made: m.made[e], Err: e.err}
		if e.err == nil && !out[i].Made {
			out[i].Differs = e.step.Changes
		}
	}
	return out, nil
}

// making is one call of Make.
type making struct {
	request
	id    auth.Identity
	trial bool
	made  map[*entry]bool
}

func (m *making) kind(ctx context.Context, k *web.DocumentKind) error {
	of := m.of(k)
	for try := 1; len(of) > 0; try++ {
		steps, wrong, err := k.Planner.Plan(ctx, m.id, writesOf(of), &web.PlanRequest{AllowUnknownHandler: true, AllowUnfitInput: true})
		if err != nil {
			return err
		}
		var missing []*entry
		for i, e := range of {
			e.step, e.err = steps[i], cmp.Or(e.unknown, wrong[i], steps[i].Refused)
			if e.err == nil && (e.step.Action == resource.ActionCreate || k.Partial && onlyAdds(e.step.Changes)) {
				missing = append(missing, e)
			}
		}
		if len(missing) == 0 || m.trial && k.Local && k.Computes {
			return nil
		}
		of = nil
		for i, err := range k.Planner.Do(ctx, m.id, stepsOf(missing)) {
			if e := missing[i]; err == nil {
				m.made[e] = true
			} else if try < makeTries {
				of = append(of, e) // another node may have made it meanwhile
			} else if web.OurFault(err) {
				return err
			} else {
				e.err = err
			}
		}
	}
	return nil
}

// onlyAdds reports whether changes set what had no value, and nothing else.
func onlyAdds(changes []resource.Change) bool {
	return len(changes) > 0 && !slices.ContainsFunc(changes, func(c resource.Change) bool { return len(c.Before) > 0 })
}

func stepsOf(entries []*entry) []*resource.Step {
	out := make([]*resource.Step, len(entries))
	for i, e := range entries {
		out[i] = &e.step
	}
	return out
}
