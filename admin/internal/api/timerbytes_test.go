package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/timer"
)

// keyedWrites are the operations that change timers by their keys. The database hands out at
// most so many bytes for one of them, with any stored timers.
var keyedWrites = map[string]int64{
	"set-timer": 1 << 20, "set-timers": 1 << 20, "cancel-timer": 1 << 20, "cancel-timers": 1 << 20, "reschedule-timer": 1 << 20,
}

// The database hands out no inputs of stored timers for a write of many of them. A write of
// one timer answers with its input.
func TestWritesByKeyAreBounded(t *testing.T) {
	described := New(describedDeps())
	writes := map[string]string{}
	operations(described.Document(), func(method, path string, op *huma.Operation) {
		if method != http.MethodGet && strings.Contains(path, "/timers") {
			writes[op.OperationID] = path
		}
	})
	require.Len(t, writes, len(keyedWrites), "each write of timers has a bound here: %v", writes)
	w, _ := withTimers(t)
	w.key("orders", "timer")
	const many = 40
	large := strings.Repeat("x", 250<<10)
	body := func(i int, change map[string]any) map[string]any {
		out := timerBodyOf(map[string]any{"key": fmt.Sprint("large-", i), "after": "2h"})
		for k, v := range change {
			out[k] = v
		}
		return out
	}
	input := map[string]any{"input": map[string]any{"s": large}}
	for i := range many {
		w.call("orders", "POST", "/timers", body(i, input)).is(http.StatusCreated)
	}
	batch := func(policy string) map[string]any {
		list, keys := make([]any, many), make([]string, many)
		for i := range many {
			list[i] = body(i, map[string]any{"policy": policy})
			keys[i] = fmt.Sprint("large-", i)
		}
		if policy == "" {
			return map[string]any{"executor": "shop", "handler": "reconcile", "keys": keys, "freeEnded": true}
		}
		return map[string]any{"timers": list}
	}
	tried := map[string]bool{}
	do := func(id, path string, body any) answer {
		tried[id] = true
		before := w.handed.Bytes()
		a := w.call("orders", http.MethodPost, path, body)
		require.LessOrEqual(t, w.handed.Bytes()-before, keyedWrites[id], "%s: %.100s", id, a.body)
		return a
	}
	one := func(a answer) {
		require.JSONEq(t, fmt.Sprintf(`{"s":%q}`, large), string(into[timer.Timer](a).Input))
	}
	one(do("set-timer", "/timers", body(0, nil)).is(http.StatusOK))
	one(do("reschedule-timer", "/timers/shop/reconcile/large-0/reschedule", map[string]any{"after": "3h"}).is(http.StatusOK))
	require.Equal(t, many, into[timer.TimerBatch](do("set-timers", "/timers/batch", batch("keep")).is(http.StatusOK)).Kept)
	require.Equal(t, many, into[timer.TimerBatch](do("set-timers", "/timers/batch", batch("reject")).is(http.StatusOK)).Rejected)
	one(do("cancel-timer", "/timers/shop/reconcile/large-0/cancel", nil).is(http.StatusOK))
	require.EqualValues(t, many-1, into[timer.TimerCancellation](do("cancel-timers", "/timers/cancel", batch("")).is(http.StatusOK)).Cancelled)
	one(w.call("orders", "GET", "/timers/shop/reconcile/large-1", nil).is(http.StatusOK))
	for i := range many {
		w.call("orders", "POST", "/timers", body(i, input)).is(http.StatusCreated)
	}
	require.Equal(t, many, into[timer.TimerBatch](do("set-timers", "/timers/batch", batch("replace")).is(http.StatusOK)).Replaced)
	for id := range keyedWrites {
		require.True(t, tried[id], id)
	}
}
