package api

import (
	"context"
	"encoding/json"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Progress is how far a run is, as its handler says.
type Progress struct {
	Percent   float64 `json:"percent" minimum:"0" maximum:"100" doc:"How far it is, in percent"`
	Message   string  `json:"message" doc:"What it does, as the handler says; may be empty"`
	UpdatedAt string  `json:"updatedAt" format:"date-time" doc:"When the handler said so"`
}

// Step is a part of the handler that is done, and is not done again by later
// attempts.
type Step struct {
	Name     string          `json:"name" doc:"Its name, unique in the run"`
	Output   json.RawMessage `json:"output" doc:"What it gave; null: nothing"`
	StoredAt string          `json:"storedAt" format:"date-time" doc:"When it was stored"`
}

// progressOf returns nil when the run's newest attempt has told nothing.
func (a *API) progressOf(ctx context.Context, v store.ExecutionView) (*Progress, error) {
	if v.Fence == 0 {
		return nil, nil
	}
	p, err := a.deps.Store.FindProgress(ctx, v.TenantID, v.ID)
	if domain.Is(err, domain.CodeNotFound) || err == nil && p.Fence != v.Fence {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &Progress{Percent: float64(p.Permille) / 10, Message: p.Message, UpdatedAt: instant(p.UpdatedAt)}, nil
}

func (a *API) stepsOf(ctx context.Context, v store.ExecutionView) ([]Step, error) {
	list, err := a.deps.Store.ListSteps(ctx, v.TenantID, v.ID)
	if err != nil {
		return nil, err
	}
	out := make([]Step, len(list))
	for i, s := range list {
		out[i] = Step{Name: s.Name, Output: rawOrNull(s.Output), StoredAt: instant(s.StoredAt)}
	}
	return out, nil
}
