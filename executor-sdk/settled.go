package executor

import "context"

// OnSettled has f called once, when an admin node has acknowledged the end of the attempt that
// ctx belongs to, or nothing is owed for it any more. Until then its result is in memory and
// in the journal. A handler that bounds the bytes of its results gives them back in f. f must
// not wait, and must not call this package. It is not called if the process ends first.
// Outside of a handler f is called at once.
func OnSettled(ctx context.Context, f func()) {
	r := runFrom(ctx)
	if r == nil || r.process == nil {
		f()
		return
	}
	r.process.runner.OnSettled(r.task.ExecutionID, r.task.Fence, f)
}
