package engine

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/run"
)

// batchValue is RunBatch with a value, which the batch completes when it is saved. With
// an error it is the zero value.
func batchValue[T any](ctx context.Context, s *core, step string, q run.Request, decide func(*Batch) (T, error)) (T, error) {
	var value T
	err := s.RunBatch(ctx, step, q, func(b *Batch) (err error) {
		value, err = decide(b)
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return value, nil
}

// batchResult is batchValue for a result that is no list.
func batchResult[T any](ctx context.Context, s *core, step string, q run.Request, decide func(*Batch) (*T, error)) (out T, err error) {
	p, err := batchValue(ctx, s, step, q, decide)
	if p != nil {
		out = *p
	}
	return out, err
}
