package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/tenant"
	"github.com/carillon-sched/carillon/admin/internal/api/timer"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func timerBodyOf(change map[string]any) map[string]any {
	body := map[string]any{"executor": "shop", "handler": "reconcile", "key": "order-77", "after": "30m"}
	for k, v := range change {
		if v == nil {
			delete(body, k)
		} else {
			body[k] = v
		}
	}
	return body
}

// withTimers is a world in which acme has an executor with handlers, and tells
// when timers were set.
func withTimers(t *testing.T) (w *world, set *[]time.Time) {
	set = &[]time.Time{}
	w = newWorld(t, func(d *Deps) { d.TimersSet = func(first time.Time) { *set = append(*set, first) } })
	shop := w.executor("acme", "shop")
	w.instance(shop, "one", "reconcile", "refund", "mail/send")
	return w, set
}

func TestTimersAreSet(t *testing.T) {
	w, set := withTimers(t)
	w.key("orders", "timer")
	at := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	body := timerBodyOf(map[string]any{
		"after": nil, "at": at.Format(time.RFC3339Nano), "input": map[string]any{"order": 77}, "labels": []string{"b", "a", "b"}, "note": "unpaid",
		"maxAttempts": 3, "timeout": "5s", "startWithin": "10m",
	})
	made := into[timer.Timer](w.call("orders", "POST", "/timers", body).is(http.StatusCreated).golden("timer"))
	require.Equal(t, "created", made.Outcome)
	require.Equal(t, "pending", made.State)
	require.Equal(t, web.Instant(at), made.FireAt)
	require.JSONEq(t, `{"order":77}`, string(made.Input))
	require.Equal(t, []string{"a", "b"}, made.Labels)
	require.Equal(t, "key:orders", made.CreatedBy)
	require.Equal(t, []any{3, "5s", "10m"}, []any{made.MaxAttempts, made.Timeout, made.StartWithin})
	require.Nil(t, made.Run)
	require.Equal(t, []time.Time{at}, *set, "the planner hears of it")

	made.Outcome = ""
	require.Equal(t, made, into[timer.Timer](w.call("orders", "GET", "/timers/shop/reconcile/order-77", nil).is(200)))

	later := timerBodyOf(map[string]any{"after": "48h"})
	kept := into[timer.Timer](w.call("orders", "POST", "/timers", later).is(http.StatusOK))
	require.Equal(t, []string{"kept", made.FireAt}, []string{kept.Outcome, kept.FireAt})
	require.Len(t, *set, 1, "nothing is new")
	with := func(policy string) map[string]any {
		return timerBodyOf(map[string]any{"after": "48h", "policy": policy})
	}
	w.call("orders", "POST", "/timers", with("keep")).is(http.StatusOK)
	w.call("orders", "POST", "/timers", with("reject")).problem(409, "timer_exists")
	replaced := into[timer.Timer](w.call("orders", "POST", "/timers", with("replace")).is(http.StatusOK))
	require.Equal(t, "replaced", replaced.Outcome)
	require.Greater(t, replaced.FireAt, made.FireAt)
	require.Empty(t, replaced.Labels)

	own := into[timer.Timer](w.call("orders", "POST", "/timers", timerBodyOf(map[string]any{"key": nil, "after": "0s"})).is(201))
	require.Regexp(t, `^[0-9]+$`, own.Key, "the server makes one")
	for _, past := range []string{"2020-01-01T00:00:00Z", "1970-01-01T00:00:00Z"} {
		begun := web.Instant(time.Now())
		late := into[timer.Timer](w.call("orders", "POST", "/timers", timerBodyOf(map[string]any{"key": past, "after": nil, "at": past})).is(201))
		require.GreaterOrEqual(t, late.FireAt, begun, "what has passed is now")
		late = into[timer.Timer](w.call("orders", "POST", "/timers/shop/reconcile/"+past+"/reschedule", map[string]any{"at": past}).is(200))
		require.GreaterOrEqual(t, late.FireAt, begun)
	}
	w.call("orders", "POST", "/timers", timerBodyOf(map[string]any{"executor": "shop "})).problem(404, "not_found")
	w.call("orders", "POST", "/timers", timerBodyOf(map[string]any{"handler": " reconcile"})).problem(422, "unknown_handler")

	count := into[timer.TimerCount](w.call("orders", "GET", "/timers/count", nil).is(200))
	require.Equal(t, timer.TimerCount{Pending: 4, ByHandler: []timer.HandlerTimerCount{{Executor: "shop", Handler: "reconcile", Pending: 4}}}, count)
	require.Empty(t, into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs", nil).is(200)).Items, "people's jobs are others")
	jobs := into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs?kind=timer", nil).is(200)).Items
	require.Equal(t, []string{"timer:shop/reconcile", "timer"}, []string{jobs[0].Name, jobs[0].Kind})

	abroad := into[timer.Timer](w.call("orders", "POST", "/timers", timerBodyOf(map[string]any{"key": "abroad", "after": nil, "at": "2031-07-01T02:00:00.007+02:00"})).is(201))
	require.Equal(t, "2031-07-01T00:00:00.007Z", abroad.FireAt, "an instant, whatever its offset")
}

// Names with slashes, spaces and plus signs go through addresses.
func TestTimersOfAnyName(t *testing.T) {
	w, _ := withTimers(t)
	for _, key := range []string{"a/b", "100%", "a b+c", "order=77&x", "ключ", "a%2Fb", "...", "#"} {
		body := timerBodyOf(map[string]any{"handler": "mail/send", "key": key})
		require.Equal(t, key, into[timer.Timer](w.call("acme/operator", "POST", "/timers", body).is(201)).Key)
		path := "/timers/shop/mail%2Fsend/" + url.PathEscape(key)
		require.Equal(t, key, into[timer.Timer](w.call("acme/operator", "GET", path, nil).is(200)).Key)
	}
	for _, path := range []string{
		"/timers/shop/reconcile/none", "/timers/shop/none/a%2Fb", "/timers/none/reconcile/a%2Fb", "/timers/%FF/%FF/x",
	} {
		w.call("acme/operator", "GET", path, nil).problem(404, "not_found")
	}
	for _, key := range []string{"%20", "%00", "%FF", strings.Repeat("x", 161)} {
		p := w.call("acme/operator", "GET", "/timers/shop/mail%2Fsend/"+key, nil).problem(422, "validation_failed")
		require.Equal(t, "path.key", p.Errors[0].Location)
	}
}

// boundsOfTimers are requests that are refused, with the field that is wrong, and
// beside each the nearest one that is not.
func boundsOfTimers() []struct {
	name        string
	wrong, good map[string]any
	location    string
} {
	ten, far := time.Now().Add(domain.MaxTimerDistance-time.Minute), time.Now().Add(domain.MaxTimerDistance+time.Minute)
	labels := make([]string, 9)
	for i := range labels {
		labels[i] = fmt.Sprint("label-", i)
	}
	x := func(n int) string { return strings.Repeat("ü", n) }
	type m = map[string]any
	return []struct {
		name        string
		wrong, good map[string]any
		location    string
	}{
		{"empty executor", m{"executor": ""}, m{}, "body.executor"},
		{"long executor", m{"executor": strings.Repeat("x", 129)}, m{}, "body.executor"},
		{"empty handler", m{"handler": " "}, m{}, "body.handler"},
		{"long handler", m{"handler": strings.Repeat("x", 129)}, m{}, "body.handler"},
		{"long key", m{"key": x(161)}, m{"key": x(160)}, "body.key"},
		{"key with a control character", m{"key": "a\nb"}, m{"key": "a b"}, "body.key"},
		{"key that ends in a blank", m{"key": "a "}, m{"key": "a b c"}, "body.key"},
		{"key that is a step up", m{"key": ".."}, m{"key": "..."}, "body.key"},
		{"key that is a step", m{"key": "."}, m{"key": ".a"}, "body.key"},
		{"no time", m{"after": nil}, m{}, "body.at"},
		{"two times", m{"at": "2030-01-01T00:00:00Z"}, m{}, "body.after"},
		{"no instant", m{"after": nil, "at": "tomorrow"}, m{"after": nil, "at": "2030-01-01T00:00:00+02:00"}, "body.at"},
		{"far instant", m{"after": nil, "at": far.Format(time.RFC3339)}, m{"after": nil, "at": ten.Format(time.RFC3339)}, "body.at"},
		{"no duration", m{"after": "soon"}, m{"after": "0s"}, "body.after"},
		{"negative duration", m{"after": "-1s"}, m{"after": "1ms"}, "body.after"},
		{"long duration", m{"after": "87841h"}, m{"after": "87839h"}, "body.after"},
		{"large input", m{"input": m{"a": strings.Repeat("x", web.MaxInput-7)}}, m{"input": m{"a": strings.Repeat("x", web.MaxInput-8)}}, "body.input"},
		{"unknown policy", m{"policy": "kepe"}, m{"policy": "keep"}, "body.policy"},
		{"many labels", m{"labels": labels}, m{"labels": labels[:8]}, "body.labels"},
		{"empty label", m{"labels": []string{"a", ""}}, m{"labels": []string{}}, "body.labels[1]"},
		{"long label", m{"labels": []string{x(65)}}, m{"labels": []string{x(64)}}, "body.labels[0]"},
		{"label with a control character", m{"labels": []string{"a\tb"}}, m{"labels": []string{"a b"}}, "body.labels[0]"},
		{"negative attempts", m{"maxAttempts": -1}, m{"maxAttempts": 1}, "body.maxAttempts"},
		{"many attempts", m{"maxAttempts": 101}, m{"maxAttempts": 100}, "body.maxAttempts"},
		{"short timeout", m{"timeout": "0s"}, m{"timeout": "1ms"}, "body.timeout"},
		{"long timeout", m{"timeout": "169h"}, m{"timeout": "168h"}, "body.timeout"},
		{"no wait", m{"startWithin": "0s"}, m{"startWithin": "1ms"}, "body.startWithin"},
		{"long wait", m{"startWithin": "8785h"}, m{"startWithin": "8784h"}, "body.startWithin"},
		{"long note", m{"note": x(1025)}, m{"note": x(1024)}, "body.note"},
		{"note with a control character", m{"note": "a\u0000b"}, m{"note": "a\nb"}, "body.note"},
	}
}

func TestBoundsOfTimers(t *testing.T) {
	w, _ := withTimers(t)
	var batch []map[string]any
	for i, tt := range boundsOfTimers() {
		w.run(t, tt.name, func(t *testing.T) {
			p := w.call("acme/operator", "POST", "/timers", timerBodyOf(tt.wrong)).problem(422, "validation_failed")
			require.Len(t, p.Errors, 1)
			require.Equal(t, tt.location, p.Errors[0].Location)
			good := timerBodyOf(tt.good)
			if _, own := tt.good["key"]; !own {
				good["key"] = fmt.Sprint("good-", i)
			}
			w.call("acme/operator", "POST", "/timers", good).is(201)
		})
		if tt.name != "large input" {
			batch = append(batch, timerBodyOf(tt.wrong))
		}
	}
	// All of them in one request, beside one that is right.
	batch = append(batch, timerBodyOf(map[string]any{"key": "right"}))
	out := into[timer.TimerBatch](w.call("acme/operator", "POST", "/timers/batch", map[string]any{"timers": batch}).is(200))
	require.Equal(t, timer.TimerBatch{Created: 1, Invalid: len(batch) - 1, Items: out.Items}, out)
	for i, item := range out.Items[:len(batch)-1] {
		require.Equal(t, "invalid", item.Outcome)
		require.Nil(t, item.FireAt)
		require.Equal(t, "validation_failed", item.Problem.Code, "%v", batch[i])
	}
	require.Equal(t, "created", out.Items[len(batch)-1].Outcome)

	p := w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"policy": "kepe", "timeout": "x", "labels": []string{""}})).problem(422, "validation_failed")
	require.Len(t, p.Errors, 3, "all that is wrong is told at once")
	require.Contains(t, fmt.Sprint(p.Errors), `did you mean "keep"?`)
	p = w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"handler": "refnud"})).problem(422, "unknown_handler")
	require.Contains(t, p.Detail, `did you mean "refund"?`)
	w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"executor": "nowhere"})).problem(404, "not_found")
	for _, body := range []any{timerBodyOf(map[string]any{"every": "1h"}), timerBodyOf(map[string]any{"key": 7}), map[string]any{}} {
		w.call("acme/operator", "POST", "/timers", body).problem(422, "validation_failed")
	}
	w.call("acme/operator", "POST", "/timers", "{").problem(400, "malformed_json")
}

func TestTimerInputsFitTheirHandlers(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	w.build(shop, "b1", "1.0.0", "reconcile", `{"type":"object","properties":{"order":{"type":"integer"}},"required":["order"]}`)
	p := w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"input": map[string]any{"order": "x"}})).problem(422, "unfit_input")
	require.Equal(t, "body.input.order", p.Errors[0].Location)
	w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"input": map[string]any{"order": 1}})).is(201)
	out := into[timer.TimerBatch](w.call("acme/operator", "POST", "/timers/batch", map[string]any{"timers": []any{
		timerBodyOf(map[string]any{"key": "bad", "input": 1}), timerBodyOf(map[string]any{"key": "good", "input": map[string]any{"order": 1}}),
	}}).is(200))
	require.Equal(t, "unfit_input", out.Items[0].Problem.Code)
	require.Equal(t, []int{1, 1}, []int{out.Created, out.Invalid})
}

func TestTimersInBatches(t *testing.T) {
	w, set := withTimers(t)
	w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"key": "there"})).is(201)
	out := into[timer.TimerBatch](w.call("acme/operator", "POST", "/timers/batch", map[string]any{"timers": []any{
		timerBodyOf(map[string]any{"key": "new", "after": nil, "at": "2031-01-01T00:00:00Z"}),
		timerBodyOf(map[string]any{"key": "there"}),
		timerBodyOf(map[string]any{"key": "there", "policy": "replace"}),
		timerBodyOf(map[string]any{"key": "there", "policy": "reject"}),
		timerBodyOf(map[string]any{"key": "x", "after": "never"}),
		timerBodyOf(map[string]any{"key": "y", "executor": "nowhere"}),
		timerBodyOf(map[string]any{"key": "z", "handler": "none"}),
		timerBodyOf(map[string]any{"key": "new"}), // twice in one request
	}}).is(200).golden("timer_batch"))
	var outcomes []string
	for _, item := range out.Items {
		outcomes = append(outcomes, item.Outcome)
	}
	require.Equal(t, []string{"created", "kept", "replaced", "rejected", "invalid", "invalid", "invalid", "kept"}, outcomes)
	require.Equal(t, []int{1, 2, 1, 1, 3, 0}, []int{out.Created, out.Kept, out.Replaced, out.Rejected, out.Invalid, out.Failed})
	require.Equal(t, "timer_exists", out.Items[3].Problem.Code)
	require.Contains(t, out.Items[4].Problem.Detail, "body.after")
	require.Equal(t, "not_found", out.Items[5].Problem.Code)
	require.Equal(t, "unknown_handler", out.Items[6].Problem.Code)
	require.Len(t, *set, 2, "once for a request")

	many := make([]any, domain.MaxTimerBatch)
	for i := range many {
		many[i] = timerBodyOf(map[string]any{"key": fmt.Sprint("many-", i), "input": map[string]any{"order": i, "customer": strings.Repeat("c", 40)}})
	}
	out = into[timer.TimerBatch](w.call("acme/operator", "POST", "/timers/batch", map[string]any{"timers": many}).is(200))
	require.Equal(t, domain.MaxTimerBatch, out.Created)
	require.Equal(t, "many-9999", out.Items[9999].Key)
	p := w.call("acme/operator", "POST", "/timers/batch", map[string]any{"timers": append(slices.Clone(many), many[0])}).problem(422, "validation_failed")
	require.Equal(t, "body.timers", p.Errors[0].Location)
	w.call("acme/operator", "POST", "/timers/batch", map[string]any{"timers": []any{}}).problem(422, "validation_failed")
	w.call("acme/operator", "POST", "/timers/batch", `{"timers":["`+strings.Repeat("x", 8<<20)+`"]}`).problem(413, "body_too_large")
}

// Keys that are for some handlers set, see and count timers of no other ones.
func TestTimersOfBoundKeys(t *testing.T) {
	w, _ := withTimers(t)
	bank := w.executor("acme", "bank")
	w.instance(bank, "two", "reconcile")
	for _, body := range []map[string]any{{}, {"handler": "refund"}, {"executor": "bank"}} {
		w.call("acme/operator", "POST", "/timers", timerBodyOf(body)).is(201)
	}
	w.keyFor("refunds", "timer", "shop/refund")
	w.key("bank-only", "operator", "bank")
	for who, own := range map[string]string{"refunds": "/timers/shop/refund/order-77", "bank-only": "/timers/bank/reconcile/order-77"} {
		for _, path := range []string{"/timers/shop/reconcile/order-77", "/timers/shop/refund/order-77", "/timers/bank/reconcile/order-77"} {
			if path == own {
				w.call(who, "GET", path, nil).is(200)
				continue
			}
			w.call(who, "GET", path, nil).problem(404, "not_found")
			parts := strings.Split(path, "/")
			body := timerBodyOf(map[string]any{"executor": parts[2], "handler": parts[3]})
			w.call(who, "POST", "/timers", body).problem(404, "not_found")
			out := into[timer.TimerBatch](w.call(who, "POST", "/timers/batch", map[string]any{"timers": []any{body}}).is(200))
			require.Equal(t, "not_found", out.Items[0].Problem.Code)
		}
		count := into[timer.TimerCount](w.call(who, "GET", "/timers/count", nil).is(200))
		require.Equal(t, int64(1), count.Pending)
		require.Len(t, count.ByHandler, 1)
	}
	require.Equal(t, int64(2), into[timer.TimerCount](w.call("acme/operator", "GET", "/timers/count?executor=shop", nil).is(200)).Pending)
	require.Equal(t, int64(1), into[timer.TimerCount](w.call("acme/operator", "GET", "/timers/count?executor=shop&handler=refund", nil).is(200)).Pending)
	require.Zero(t, into[timer.TimerCount](w.call("beta/operator", "GET", "/timers/count", nil).is(200)).Pending)
}

func TestQuotaOfTimers(t *testing.T) {
	w, _ := withTimers(t)
	w.call("platform", "PUT", "/tenants/"+w.tenants["acme"].String()+"/quotas", map[string]any{"items": []any{map[string]any{"kind": "timers", "limit": 2}}}).is(200)
	for _, key := range []string{"a", "b"} {
		w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"key": key})).is(201)
	}
	p := w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"key": "c"})).problem(409, "quota_exceeded")
	require.Equal(t, "timers", p.Quota.Kind)
	out := into[timer.TimerBatch](w.call("acme/operator", "POST", "/timers/batch", map[string]any{"timers": []any{timerBodyOf(map[string]any{"key": "d"}), timerBodyOf(map[string]any{"key": "a"})}}).is(200))
	require.Equal(t, []int{1, 1}, []int{out.Rejected, out.Kept})
	shown := into[web.Page[tenant.Quota]](w.call("acme/viewer", "GET", "/quotas", nil).is(200)).Items
	require.True(t, slices.ContainsFunc(shown, func(q tenant.Quota) bool { return q.Kind == "timers" && q.Limit == 2 && q.Used == 2 }), "%+v", shown)
}

func TestTimersAreCancelledAndMoved(t *testing.T) {
	w, set := withTimers(t)
	w.key("orders", "timer")
	w.call("orders", "POST", "/timers", timerBodyOf(map[string]any{"labels": []string{"red"}})).is(201)
	const path = "/timers/shop/reconcile/order-77"
	moved := into[timer.Timer](w.call("orders", "POST", path+"/reschedule", map[string]any{"at": "2031-02-03T04:05:06Z"}).is(200))
	require.Equal(t, []string{"2031-02-03T04:05:06.000Z", "pending"}, []string{moved.FireAt, moved.State})
	require.Len(t, *set, 2, "the planner hears of it")
	for _, tt := range []struct {
		body     map[string]any
		location string
	}{
		{map[string]any{}, "body.at"}, {map[string]any{"after": "-1s"}, "body.after"}, {map[string]any{"at": "x"}, "body.at"},
		{map[string]any{"at": "2031-02-03T04:05:06Z", "after": "1s"}, "body.after"}, {map[string]any{"after": "87841h"}, "body.after"},
	} {
		require.Equal(t, tt.location, w.call("orders", "POST", path+"/reschedule", tt.body).problem(422, "validation_failed").Errors[0].Location)
	}
	cancelled := into[timer.Timer](w.call("orders", "POST", path+"/cancel", nil).is(200))
	require.Equal(t, []string{"cancelled", "shop", "reconcile", "red"}, append([]string{cancelled.State, cancelled.Executor, cancelled.Handler}, cancelled.Labels...))
	require.NotNil(t, cancelled.Run)
	require.NotNil(t, cancelled.FinishedAt)
	require.Contains(t, cancelled.Message, "key:orders")
	w.call("orders", "POST", path+"/cancel", nil).problem(409, "already_finished")
	w.call("orders", "POST", path+"/reschedule", map[string]any{"after": "1h"}).problem(409, "already_finished")
	require.Equal(t, cancelled, into[timer.Timer](w.call("orders", "GET", path, nil).is(200)), "its key explains itself")
	require.Equal(t, "created", into[timer.Timer](w.call("orders", "POST", "/timers", timerBodyOf(nil)).is(201)).Outcome, "the key is free")
	for _, what := range []string{"/cancel", "/reschedule"} {
		for _, other := range []string{"/timers/shop/reconcile/none", "/timers/shop/none/order-77", "/timers/none/reconcile/order-77"} {
			w.call("orders", "POST", other+what, map[string]any{"after": "1h"}).problem(404, "not_found")
		}
	}
	w.keyFor("refunds", "timer", "shop/refund")
	w.call("refunds", "POST", path+"/cancel", nil).problem(404, "not_found")
	w.call("refunds", "POST", path+"/reschedule", map[string]any{"after": "1h"}).problem(404, "not_found")
}

func TestListsOfTimers(t *testing.T) {
	w, _ := withTimers(t)
	for i, body := range []map[string]any{
		{"key": "a-1", "labels": []string{"red"}}, {"key": "a-2", "after": "60m"}, {"key": "b-1"}, {"key": "c-1", "handler": "refund"},
	} {
		if i > 0 && body["after"] == nil {
			body["after"] = "10m"
		}
		w.call("acme/operator", "POST", "/timers", timerBodyOf(body)).is(201)
	}
	w.call("acme/operator", "POST", "/timers/shop/reconcile/b-1/cancel", nil).is(200)
	keys := func(who, query string) (out []string) {
		for cursor := ""; ; {
			page := into[web.Page[timer.Timer]](w.call(who, "GET", "/timers?limit=1&"+query+cursor, nil).is(200))
			for _, one := range page.Items {
				out = append(out, one.Key)
			}
			if page.NextCursor == nil {
				return out
			}
			cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
		}
	}
	w.keyFor("refunds", "timer", "shop/refund")
	soon := url.QueryEscape(time.Now().Add(20 * time.Minute).Format(time.RFC3339))
	for _, tt := range []struct {
		who, query string
		want       []string
	}{
		{"acme/operator", "", []string{"a-1", "a-2", "c-1"}},
		{"acme/operator", "handler=reconcile", []string{"a-1", "a-2"}},
		{"acme/operator", "executor=shop&handler=refund", []string{"c-1"}},
		{"acme/operator", "executor=nowhere", nil},
		{"acme/operator", "keyPrefix=a-", []string{"a-1", "a-2"}},
		{"acme/operator", "label=red", []string{"a-1"}},
		{"acme/operator", "from=" + soon, []string{"a-1", "a-2"}},
		{"acme/operator", "to=" + soon, []string{"c-1"}},
		{"acme/operator", "state=ended", []string{"b-1"}},
		{"acme/operator", "state=claimed", nil},
		{"refunds", "", []string{"c-1"}},
		{"refunds", "executor=shop&handler=reconcile", nil},
		{"refunds", "state=ended", nil},
		{"beta/operator", "", nil},
	} {
		require.Equal(t, tt.want, keys(tt.who, tt.query), "%s %s", tt.who, tt.query)
	}
	for query, location := range map[string]string{
		"from=x": "query.from", "to=x": "query.to", "from=2030-01-01T00:00:00Z&to=2030-01-01T00:00:00Z": "query.to", "state=gone": "query.state",
		"cursor=x": "query.cursor", "limit=201": "query.limit", "limit=0": "query.limit", "keyPrefix=" + strings.Repeat("x", 161): "query.keyPrefix", "label=" + strings.Repeat("x", 65): "query.label",
	} {
		require.Equal(t, location, w.call("acme/operator", "GET", "/timers?"+query, nil).problem(422, "validation_failed").Errors[0].Location)
	}
	page := into[web.Page[timer.Timer]](w.call("acme/operator", "GET", "/timers?limit=1", nil).is(200))
	w.call("acme/operator", "GET", "/timers?state=ended&cursor="+*page.NextCursor, nil).problem(422, "validation_failed")
}

// A request with a name sets no second timer after the first one was cancelled, alone and
// in a batch.
func TestRequestsOfTimersHaveNames(t *testing.T) {
	w, _ := withTimers(t)
	named := func(key, name string) map[string]any {
		return timerBodyOf(map[string]any{"key": key, "requestId": name})
	}
	alone := func(body map[string]any, status int) string {
		return into[timer.Timer](w.call("acme/operator", "POST", "/timers", body).is(status)).Outcome
	}
	batch := func(body map[string]any, _ int) string {
		return into[timer.TimerBatch](w.call("acme/operator", "POST", "/timers/batch", map[string]any{"timers": []any{body}}).is(200)).Items[0].Outcome
	}
	for key, send := range map[string]func(map[string]any, int) string{"alone": alone, "batch": batch} {
		require.Equal(t, "created", send(named(key, "a"), 201))
		w.call("acme/operator", "POST", "/timers/shop/reconcile/"+key+"/cancel", nil).is(200)
		require.Equal(t, "kept", send(named(key, "a"), 200))
		require.Equal(t, "created", send(named(key, "b"), 201))
	}
	w.call("acme/operator", "POST", "/timers", named("long", strings.Repeat("x", 65))).problem(422, "validation_failed")
}
