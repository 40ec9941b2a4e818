package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/timer"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestManyTimersAreCancelled(t *testing.T) {
	w, _ := withTimers(t)
	for _, key := range []string{"a-1", "a-2", "b-1"} {
		w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"key": key, "labels": []string{"red"}})).is(201)
	}
	cancel := func(change map[string]any) map[string]any {
		body := map[string]any{"executor": "shop", "handler": "reconcile"}
		for k, v := range change {
			body[k] = v
		}
		return body
	}
	out := into[timer.TimerCancellation](w.call("acme/operator", "POST", "/timers/cancel", cancel(map[string]any{"keys": []string{"a-1", "none", "", "a-1"}})).is(200))
	var outcomes []string
	for _, item := range out.Items {
		outcomes = append(outcomes, item.Outcome)
	}
	require.Equal(t, []string{"cancelled", "not_found", "invalid", "cancelled"}, outcomes)
	require.Equal(t, []any{int64(1), int64(1), true, ""}, []any{out.Found, out.Cancelled, out.Done, out.ID})

	out = into[timer.TimerCancellation](w.call("acme/operator", "POST", "/timers/cancel", cancel(map[string]any{"keys": []string{"a-1"}})).is(200))
	require.Equal(t, []any{"cancelled", int64(0), int64(0)}, []any{out.Items[0].Outcome, out.Found, out.Cancelled})

	begun := into[timer.TimerCancellation](w.call("acme/operator", "POST", "/timers/cancel", cancel(map[string]any{"keyPrefix": "a-"})).is(202))
	require.False(t, begun.Done)
	for {
		driven, err := w.store.DriveTimerCancellations(t.Context(), 10)
		require.NoError(t, err)
		if driven.Seen == 0 {
			break
		}
	}
	path := "/timer-cancellations/" + begun.ID
	done := into[timer.TimerCancellation](w.call("acme/operator", "GET", path, nil).is(200))
	require.True(t, done.Done)
	require.Equal(t, int64(1), done.Cancelled)
	require.Equal(t, []string{"shop", "reconcile", "a-", "acme-operator"}, []string{done.Executor, done.Handler, done.KeyPrefix, done.CreatedBy})
	require.NotNil(t, done.FinishedAt)
	require.Equal(t, int64(1), into[timer.TimerCount](w.call("acme/operator", "GET", "/timers/count", nil).is(200)).Pending)

	w.keyFor("refunds", "timer", "shop/refund")
	foreign := w.call("refunds", "GET", path, nil).problem(404, "not_found")
	none := w.call("refunds", "GET", "/timer-cancellations/1", nil).problem(404, "not_found")
	require.Equal(t, strings.ReplaceAll(foreign.Detail, begun.ID, "1"), none.Detail, "it does not tell whether there is one")
	w.call("refunds", "POST", "/timers/cancel", cancel(map[string]any{"keys": []string{"b-1"}})).problem(404, "not_found")
	w.call("acme/operator", "POST", "/timers/cancel", cancel(map[string]any{"handler": "refund", "label": "red"})).problem(404, "not_found")
	w.call("acme/operator", "POST", "/timers/cancel", cancel(map[string]any{"label": "red"})).is(202)
	w.call("acme/operator", "POST", "/timers/cancel", cancel(map[string]any{"keyPrefix": "."})).is(202) // no key, and yet keys may begin so

	many := make([]string, domain.MaxTimerBatch)
	for i := range many {
		many[i] = fmt.Sprint("many-", i)
	}
	require.Len(t, into[timer.TimerCancellation](w.call("acme/operator", "POST", "/timers/cancel", cancel(map[string]any{"keys": many})).is(200)).Items, len(many))
	for _, tt := range []struct {
		change   map[string]any
		location string
	}{
		{map[string]any{}, "body.keys"},
		{map[string]any{"keys": []string{"a"}, "label": "red"}, "body.keys"},
		{map[string]any{"keyPrefix": "a", "label": "red"}, "body.keys"},
		{map[string]any{"keys": append(slices.Clone(many), "x")}, "body.keys"},
		{map[string]any{"keyPrefix": strings.Repeat("x", 161)}, "body.keyPrefix"},
		{map[string]any{"keyPrefix": "a\nb"}, "body.keyPrefix"},
		{map[string]any{"keyPrefix": "a "}, "body.keyPrefix"},
		{map[string]any{"label": strings.Repeat("x", 65)}, "body.label"},
		{map[string]any{"label": "a\nb"}, "body.label"},
		{map[string]any{"executor": "", "label": "red"}, "body.executor"},
		{map[string]any{"handler": "", "label": "red"}, "body.handler"},
	} {
		p := w.call("acme/operator", "POST", "/timers/cancel", cancel(tt.change)).problem(422, "validation_failed")
		require.Equal(t, tt.location, p.Errors[0].Location)
	}
}
