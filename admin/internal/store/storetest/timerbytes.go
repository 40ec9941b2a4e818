package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// largeTimers sets timers with inputs of more than store.MaxListedInput together, and
// returns their keys and inputs.
func (f *fixture) largeTimers(j store.JobView, at time.Time, prefix string) (keys []string, inputs map[string]string) {
	f.t.Helper()
	inputs = map[string]string{}
	for i := range 2*store.MaxListedInput/(250<<10) + 2 {
		timer := f.timer(j, fmt.Sprintf("%s%03d", prefix, i), at, domain.TimerKeep)
		timer.Labels = []string{"large"}
		timer.Input = fmt.Appendf(nil, "%q", slices.Repeat([]byte{byte('a' + i%26)}, 250<<10))
		f.setOK(domain.TimerCreated, timer)
		keys, inputs[timer.Key] = append(keys, timer.Key), string(timer.Input)
	}
	return keys, inputs
}

// requireInputs finds each timer with its input, in any state.
func (f *fixture) requireInputs(j store.JobView, state domain.State, inputs map[string]string) {
	f.t.Helper()
	for key, input := range inputs {
		v, err := f.s.FindTimer(f.ctx, f.tenant, j.ID, key)
		f.ok(err)
		require.NotNil(f.t, v.Run, key)
		require.Equal(f.t, state, v.Run.State, key)
		require.True(f.t, input == string(v.Input), key)
	}
}

// A cancel by keys ends all of them, and their runs have the inputs of the timers.
func testLargeTimersCancelled(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	keys, inputs := f.largeTimers(j, f.now().Add(time.Hour), "k/")
	for _, brief := range []bool{false, true} {
		for _, r := range f.s.CancelTimers(f.ctx, store.CancelTimersParams{Tenant: f.tenant, Job: j.ID, Keys: keys, By: "anna", Brief: brief, FreeEnded: brief}) {
			if brief { // the second time
				f.code(domain.CodeAlreadyFinished, r.Err)
				require.Empty(t, r.View.Run.Message)
				continue
			}
			f.ok(r.Err)
			require.Empty(t, r.View.Input)
			require.True(t, r.View.Partial)
			require.Equal(t, []string{"large"}, r.View.Labels)
			f.ok(f.s.FillTimer(f.ctx, &r.View))
			require.True(t, inputs[r.Key] == string(r.View.Input), r.Key)
			require.True(t, inputs[r.Key] == string(r.View.Run.Input), r.Key)
		}
		if !brief {
			f.requireInputs(j, domain.Cancelled, inputs)
		}
	}
	require.Zero(t, f.pending(j))
}

// The same for keys with a prefix, and for a label.
func testLargeTimersCancelledInSteps(t *testing.T, f *fixture) {
	for _, label := range []string{"", "large"} {
		j := f.timerJob(nil)
		keys, inputs := f.largeTimers(j, f.now().Add(time.Hour), "k/")
		prefix := "k/"
		if label != "" {
			prefix = ""
		}
		c, _ := f.cancelMany(j, prefix, label)
		require.Equal(t, []int64{int64(len(keys)), int64(len(keys))}, []int64{c.Found, c.Cancelled})
		f.requireInputs(j, domain.Cancelled, inputs)
	}
}

// Runs that have begun to wait are cancelled in parts too.
func testLargeRunsCancelledInSteps(t *testing.T, f *fixture) {
	for _, label := range []string{"", "large"} {
		j := f.timerJob(nil)
		keys, inputs := f.largeTimers(j, f.now(), "k/")
		for claimed := 0; claimed < len(keys); {
			n := len(f.claimTimers(time.Second))
			require.Positive(t, n)
			claimed += n
		}
		prefix := "k/"
		if label != "" {
			prefix = ""
		}
		c, _ := f.cancelMany(j, prefix, label)
		require.Equal(t, []int64{int64(len(keys)), int64(len(keys))}, []int64{c.Found, c.Cancelled})
		f.requireInputs(j, domain.Cancelled, inputs)
	}
}

// A timer that is kept is answered without its input, which is read by itself, also after
// the timer has become a run.
func testLargeTimersKept(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	timer := f.timer(j, "kept", f.now(), domain.TimerKeep)
	timer.Input, timer.Note = []byte(`{"large":true}`), "why"
	f.setOK(domain.TimerCreated, timer)
	again := f.timer(j, "kept", f.now(), domain.TimerKeep)
	pending := f.setOK(domain.TimerKept, again)
	require.True(t, pending.Partial)
	require.Empty(t, pending.Input)
	claimed := pending
	f.ok(f.s.FillTimer(f.ctx, &pending))
	require.Equal(t, []any{`{"large":true}`, "why", false}, []any{string(pending.Input), pending.Note, pending.Partial})
	require.Len(t, f.claimTimers(time.Second), 1)
	f.ok(f.s.FillTimer(f.ctx, &claimed))
	require.JSONEq(t, `{"large":true}`, string(claimed.Input))
	run := f.setOK(domain.TimerKept, again)
	require.Empty(t, run.Input)
	f.ok(f.s.FillTimer(f.ctx, &run))
	require.JSONEq(t, `{"large":true}`, string(run.Input))

	brief := f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: []store.SetTimer{again}, Brief: true})[0]
	f.ok(brief.Err)
	require.Equal(t, []any{domain.TimerKept, "", ""}, []any{brief.Outcome, brief.View.Note, brief.View.Handler})
	require.Equal(t, domain.Due, brief.View.Run.State)
}
