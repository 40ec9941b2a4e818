package api

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/timer"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// failingTimers is a store that gives some timers another answer, by their keys.
type failingTimers struct {
	Store
	answers map[string]error
}

func (f failingTimers) SetTimers(ctx context.Context, p store.SetTimersParams) []store.SetTimerResult {
	out := f.Store.SetTimers(ctx, p)
	for i, t := range p.Timers {
		if err := f.answers[t.Key]; err != nil {
			out[i] = store.SetTimerResult{Err: err}
		}
	}
	return out
}

// A database that does not answer is told apart from a request that is wrong.
func TestTimersThatMayBeSetOrNot(t *testing.T) {
	silent := domain.Errorf(domain.CodeUnavailable, "no answer")
	contended := domain.Errorf(domain.CodeUnavailable, "set timers: %w: deadlock", domain.ErrContended)
	w := newWorld(t, func(d *Deps) {
		d.Store = failingTimers{d.Store, map[string]error{"a": silent, "b": silent, "d": contended}}
	})
	w.instance(w.executor("acme", "shop"), "one", "reconcile")
	w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"key": "a"})).problem(503, "unavailable")
	others := w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"key": "d"})).problem(503, "unavailable")
	require.Equal(t, "others change the same rows all the time; try again in a moment", others.Detail)
	batch := func(keys ...string) map[string]any {
		list := []any{}
		for _, key := range keys {
			list = append(list, timerBodyOf(map[string]any{"key": key}))
		}
		return map[string]any{"timers": list}
	}
	out := into[timer.TimerBatch](w.call("acme/operator", "POST", "/timers/batch", batch("a", "c", "b")).is(200))
	require.Equal(t, []int{1, 2}, []int{out.Created, out.Failed})
	require.Equal(t, []string{"failed", "created", "failed"}, []string{out.Items[0].Outcome, out.Items[1].Outcome, out.Items[2].Outcome})
	require.Equal(t, "unavailable", out.Items[2].Problem.Code)
	w.call("acme/operator", "POST", "/timers/batch", batch("a", "b")).problem(503, "unavailable")
}

// withoutJob is a store in which the second timers that are set belong to a job that
// does not exist.
type withoutJob struct {
	Store
	asked int
}

func (s *withoutJob) SetTimers(ctx context.Context, p store.SetTimersParams) []store.SetTimerResult {
	if s.asked++; s.asked == 2 {
		p.Timers = slices.Clone(p.Timers)
		p.Timers[0].JobID++
	}
	return s.Store.SetTimers(ctx, p)
}

// The job that a node remembers of a handler may be gone. No time passes here, in which
// it would be forgotten.
func TestAJobThatIsGoneIsMadeAnew(t *testing.T) {
	var gone *withoutJob
	now := time.Now()
	w := newWorld(t, func(d *Deps) {
		gone = &withoutJob{Store: d.Store}
		d.Store, d.Now = gone, func() time.Time { return now }
	})
	w.instance(w.executor("acme", "shop"), "one", "reconcile")
	w.call("acme/operator", "POST", "/timers", timerBodyOf(nil)).is(201)
	w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"key": "next"})).is(201)
	require.Equal(t, 3, gone.asked)
}
