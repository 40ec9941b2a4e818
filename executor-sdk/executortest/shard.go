package executortest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/proto"
)

// The roles of parts.
const (
	partBefore = "before"
	partShard  = "shard"
	partAfter  = "after"
)

// maxResults bounds what the hook behind the shards gets, in bytes of outputs
// and errors (docs of executor.ShardResults).
const maxResults = 60 << 10

// Shards lists the shards of a fire of a job with Shards or Broadcast, by their
// index, once they exist: hooks before them come first. Each is a run of its
// own, with attempts, log and output. Empty for other runs.
func (r *Run) Shards() []*Run {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	return r.partsLocked(partShard)
}

// Before is the run of the hook that BeforeShards names; nil when there is none
// (yet).
func (r *Run) Before() *Run { return r.hook(partBefore) }

// After is the run of the hook that AfterShards names; nil when there is none
// (yet).
func (r *Run) After() *Run { return r.hook(partAfter) }

func (r *Run) hook(role string) *Run {
	r.admin.mu.Lock()
	defer r.admin.mu.Unlock()
	if list := r.partsLocked(role); len(list) > 0 {
		return list[0]
	}
	return nil
}

// partsLocked are the parts with a role. mu is held, as in all that follows.
func (r *Run) partsLocked(role string) []*Run {
	var out []*Run
	for _, p := range r.parts {
		if p.part == role {
			out = append(out, p)
		}
	}
	return out
}

// isFamily reports whether the run goes in parts and on no instance itself.
func (r *Run) isFamily() bool { return r.parent == nil && r.job.decl.GetSharding().GetMode() != "" }

// spread begins a run with shards, or goes on when its first hook has
// succeeded. A broadcast that finds no instance waits for one.
func (r *Run) spread() {
	s := r.job.decl.GetSharding()
	if s.GetBefore() != "" && len(r.parts) == 0 {
		r.begin()
		r.bear(s.GetBefore(), partBefore, 0, 0, nil, r.input)
		return
	}
	var bound []*instance
	total := int(s.GetShards())
	if s.GetMode() == "broadcast" {
		if bound = r.admin.serving(r.job.handler); len(bound) == 0 {
			return
		}
		total = len(bound)
	}
	r.begin()
	for i := range total {
		var to *instance
		if bound != nil {
			to = bound[i]
		}
		r.bear(r.job.handler, partShard, i, total, to, r.input)
	}
}

// begin is the first move of a fire with shards, from which its timeout counts.
func (r *Run) begin() {
	if r.state == Running {
		return
	}
	r.state = Running
	ms := r.job.decl.GetSharding().GetTimeoutMs()
	if ms == 0 {
		return
	}
	r.timer = time.AfterFunc(time.Duration(ms)*time.Millisecond, func() {
		r.admin.mu.Lock()
		defer r.admin.mu.Unlock()
		if !r.state.Ended() && r.stopping == "" {
			r.stopping = TimedOut
			r.cancelParts("timeout", "the shards had not ended when the time for all of them was over")
		}
	})
}

// serving lists the instances that a broadcast reaches.
func (a *Admin) serving(handler string) []*instance {
	var out []*instance
	for _, i := range a.instances {
		if i.deliver != nil && !i.draining && i.handlers[handler] != nil {
			out = append(out, i)
		}
	}
	return out
}

// bear makes a part: a run with the attempts of the job, and without callbacks
// and a place in its queue.
func (r *Run) bear(handler, role string, index, total int, bound *instance, input []byte) {
	d := r.job.decl
	part := r.admin.newRun(&job{admin: r.admin, name: r.job.name, handler: handler, decl: &proto.JobDeclaration{
		Name: d.GetName(), MaxAttempts: d.GetMaxAttempts(), RetryDelayMs: d.GetRetryDelayMs(), TimeoutMs: d.GetTimeoutMs(),
		RetryBackoffPermille: d.GetRetryBackoffPermille(), MaxRetryDelayMs: d.GetMaxRetryDelayMs(), OnLost: d.GetOnLost(),
		Blocking: string(executor.Parallel),
	}}, r.fireAt, r.cause, r.who, input)
	part.parent, part.part, part.index, part.total, part.bound = r, role, index, total, bound
	r.parts = append(r.parts, part)
	r.admin.runs = append(r.admin.runs, part)
}

// gone says what becomes of a broadcast's shard whose instance takes no more
// runs: it is missed, or any may take it.
func (r *Run) gone() {
	if r.parent.job.decl.GetSharding().GetOnGone() == string(executor.MoveShard) {
		r.bound = nil
		return
	}
	state := Missed
	if r.fence > 0 { // it ran there
		state = Failed
	}
	r.result = &proto.Result{ErrorKind: "instance_gone", Error: "the instance that the shard was for has gone"}
	r.end(state)
}

// advance moves a fire on when none of its parts lives.
func (r *Run) advance() {
	if r.state.Ended() || slices.ContainsFunc(r.parts, func(p *Run) bool { return !p.state.Ended() }) {
		return
	}
	s := r.job.decl.GetSharding()
	before, shards, after := r.partsLocked(partBefore), r.partsLocked(partShard), r.partsLocked(partAfter)
	fail := func(reason, text string) {
		r.result = &proto.Result{ErrorKind: reason, Error: text}
		r.end(Failed)
	}
	good := 0
	for _, p := range shards {
		if p.state == Succeeded {
			good++
		}
	}
	results := fmt.Sprintf("%d of %d shards succeeded", good, len(shards))
	switch {
	case r.stopping != "":
		r.end(r.stopping)
	case len(before) > 0 && before[0].state != Succeeded:
		fail("before_hook", "the hook before the shards ended as "+string(before[0].state))
	case len(shards) == 0:
		r.spread()
	case s.GetAfter() != "" && len(after) == 0:
		r.bear(s.GetAfter(), partAfter, 0, 0, nil, r.results(shards, good))
	case len(after) > 0 && after[0].state != Succeeded:
		fail("after_hook", results+"; the hook after them ended as "+string(after[0].state))
	case good < len(shards):
		fail("shards_failed", results)
	default:
		r.end(Succeeded)
	}
}

// results is the input of the hook behind the shards.
func (r *Run) results(shards []*Run, good int) []byte {
	out := executor.ShardResults{RunID: fmt.Sprint(r.id), FireAt: r.fireAt.UTC(), Total: len(shards), Succeeded: good}
	size := 0
	for _, p := range shards {
		one := executor.ShardResult{Index: p.index, State: string(p.state), Output: p.result.GetOutput(), Error: p.result.GetError()}
		if size += len(one.Output) + len(one.Error); size > maxResults {
			size -= len(one.Output) + len(one.Error)
			one.Output, one.Error = nil, ""
			out.Omitted++
		}
		out.Shards = append(out.Shards, one)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		r.admin.t.Errorf("executortest: results of the shards: %v", err)
	}
	return raw
}

// cancelParts ends what still lives of a fire, and with its last part the fire.
func (r *Run) cancelParts(reason, message string) {
	for _, p := range r.parts {
		p.cancel(reason, message)
	}
	if len(r.parts) == 0 {
		r.end(r.stopping)
	}
}
