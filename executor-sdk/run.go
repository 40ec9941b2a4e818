package executor

import "context"

// run is the attempt a handler's context belongs to.
type run struct {
	task Task
}

type runKey struct{}

func runFrom(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}
