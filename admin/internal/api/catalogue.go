package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// lenient says what of a request is believed although the catalogue does not
// have it: a job may be made before its application is deployed.
type lenient struct{ handler, input bool }

// checkHandler refuses a handler that the executor's instances never
// registered, and an input that does not fit it. A job that fires needs an
// input that fits; one that runs when asked may get it then.
func (a *API) checkHandler(ctx context.Context, tenant domain.TenantID, executor domain.Executor, spec *domain.JobSpec, allow lenient) error {
	h, err := a.knownHandler(ctx, tenant, executor, spec.Handler)
	switch {
	case domain.Is(err, domain.CodeUnknownHandler) && allow.handler:
		return nil
	case err != nil || h == nil || allow.input || spec.Input == nil && spec.Schedule.Kind == domain.ScheduleNone:
		return err
	}
	return checkInput(h, spec.Input, "")
}

// knownHandler finds one by name. An executor without any catalogue is believed:
// its application may come later, and nothing is known of the handler then.
func (a *API) knownHandler(ctx context.Context, tenant domain.TenantID, executor domain.Executor, name string) (*domain.Handler, error) {
	known, err := a.deps.Store.ListHandlers(ctx, tenant, executor.ID)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(known))
	for _, h := range known {
		if h.Name == name {
			return &h, nil
		}
		names = append(names, h.Name)
	}
	if len(names) == 0 {
		return nil, nil
	}
	message := fmt.Sprintf("no instance of the executor %q has registered a handler %q", executor.Name, name)
	hint := "save with allowUnknownHandler=true if it comes later"
	if near := nearest(name, names); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return nil, &domain.Error{
		Code: domain.CodeUnknownHandler, Message: message + "; " + hint,
		Fields: []domain.FieldError{{Location: "body.handler", Message: message, Value: name, Position: -1, Hint: hint}},
	}
}

// nearest returns up to three names that are close to name, in quotes, the
// closest first.
func nearest(name string, names []string) []string {
	type scored struct {
		name  string
		score int
	}
	var near []scored
	lower := strings.ToLower(name)
	for _, n := range names {
		other := strings.ToLower(n)
		score := distance(lower, other)
		if strings.Contains(other, lower) || strings.Contains(lower, other) {
			score = min(score, 2)
		}
		if score <= max(2, len(name)/3) {
			near = append(near, scored{n, score})
		}
	}
	slices.SortFunc(near, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.name, b.name))
	})
	out := make([]string, 0, 3)
	for _, s := range near[:min(3, len(near))] {
		out = append(out, fmt.Sprintf("%q", s.name))
	}
	return out
}

// distance is the number of bytes to insert, delete, replace or swap with
// their neighbour (optimal string alignment).
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
