package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// The codes of a proto.StepAck.
const (
	codeStored     = "stored"
	codeFound      = "found"
	codeNone       = "none"
	codeNotRunning = "not_running"
	codeTooLarge   = "too_large"
)

// errGivenAway: the admin knows a newer attempt, or the end of this one.
var errGivenAway = fmt.Errorf("%w: the run was given away", ErrLeaseLost)

// Step runs fn once per run, under a name that is unique within the run: its
// result is stored by the admin before Step returns, and in later attempts
// (a retry, or an instance that took the run over) Step returns that result
// without calling fn.
//
//	receipt, err := executor.Step(ctx, "charge", func(ctx context.Context) (Receipt, error) {
//		return bank.Charge(ctx, order, executor.TaskFrom(ctx).Key())
//	})
//
// A step that fails stores nothing and is tried again by the next attempt. A
// process that dies after fn and before the result is stored calls fn again, so hand
// Task.Key to whatever fn calls.
//
// The result is JSON of at most 64 KiB, 200 steps and 1 MiB per run; it is
// kept as long as the run. Step waits until an admin node has stored it; the
// first attempt of a run asks nothing before fn, so that a step costs one round trip.
func Step[Out any](ctx context.Context, name string, fn func(ctx context.Context) (Out, error)) (Out, error) {
	var out Out
	r := runFrom(ctx)
	if r == nil {
		return out, errOutside
	}
	if err := r.beginStep(name); err != nil {
		return out, err
	}
	if r.task.Fence > 1 { // else nobody can have stored anything
		stored, found, err := r.readStep(ctx, name)
		if err != nil {
			return out, err
		}
		if found {
			err = decodeStep(name, stored, &out)
			return out, err
		}
	}
	out, err := fn(ctx)
	if err != nil {
		return out, err
	}
	encoded, err := proto.EncodeJSON(out)
	if err != nil {
		return out, Permanent(fmt.Errorf("step %q: encode result: %w", name, err))
	}
	stored, err := r.storeStep(ctx, name, encoded)
	if err != nil || stored == nil {
		return out, err
	}
	var other Out
	err = decodeStep(name, stored, &other)
	return other, err
}

// beginStep refuses names that cannot be meant.
func (r *run) beginStep(name string) error {
	if err := checkName(name); err != nil {
		return Permanent(fmt.Errorf("step name %q: %w", name, err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.steps[name] {
		return Permanent(fmt.Errorf("step %q is used twice in one attempt; in a loop put the item into the name", name))
	}
	if r.steps == nil {
		r.steps = map[string]bool{}
	}
	r.steps[name] = true
	return nil
}

func decodeStep(name string, stored []byte, out any) error {
	if err := json.Unmarshal(stored, out); err != nil {
		return Permanent(fmt.Errorf("step %q: the stored result does not fit any more: %w", name, err))
	}
	return nil
}

func (r *run) readStep(ctx context.Context, name string) (stored []byte, found bool, err error) {
	ack, err := r.ask(ctx, &proto.Step{Name: name, Action: proto.StepAction_STEP_ACTION_READ})
	if err != nil {
		return nil, false, err
	}
	switch ack.GetCode() {
	case codeFound:
		return ack.GetOutput(), true, nil
	case codeNone:
		return nil, false, nil
	case codeNotRunning:
		return nil, false, errGivenAway
	}
	return nil, false, fmt.Errorf("step %q: the admin answers %s: %s", name, ack.GetCode(), ack.GetMessage())
}

// storeStep returns the result that counts when it is another one than ours.
func (r *run) storeStep(ctx context.Context, name string, output []byte) ([]byte, error) {
	if len(output) > proto.MaxStep {
		return nil, Permanent(fmt.Errorf("step %q: the result has %d bytes, the limit is %d", name, len(output), proto.MaxStep))
	}
	// What fn did is done: its result is worth a few seconds more than the context has.
	ctx, cancel := outlive(ctx, storeGrace)
	defer cancel()
	ack, err := r.ask(ctx, &proto.Step{Name: name, Action: proto.StepAction_STEP_ACTION_STORE, Output: output})
	if err != nil {
		return nil, err
	}
	switch ack.GetCode() {
	case codeStored:
		return nil, nil
	case codeFound:
		return ack.GetOutput(), nil
	case codeNotRunning:
		return nil, errGivenAway
	case codeTooLarge:
		return nil, Permanent(fmt.Errorf("step %q: %s", name, ack.GetMessage()))
	}
	return nil, fmt.Errorf("step %q: the admin answers %s: %s", name, ack.GetCode(), ack.GetMessage())
}

// storeGrace is how long a result may wait to be stored after the attempt's
// context has ended; KillGrace is longer by default.
const storeGrace = 3 * time.Second

// outlive returns a context that ends d after ctx does, with its cause.
func outlive(ctx context.Context, d time.Duration) (context.Context, func()) {
	longer, end := context.WithCancelCause(context.WithoutCancel(ctx))
	timer := make(chan *time.Timer, 1)
	stop := context.AfterFunc(ctx, func() {
		timer <- time.AfterFunc(d, func() { end(context.Cause(ctx)) })
	})
	return longer, func() {
		if !stop() {
			(<-timer).Stop()
		}
		end(nil)
	}
}

func (r *run) ask(ctx context.Context, step *proto.Step) (*proto.StepAck, error) {
	step.ExecutionId, step.Fence = r.task.ExecutionID, r.task.Fence
	return r.process.steps.Ask(ctx, step)
}
