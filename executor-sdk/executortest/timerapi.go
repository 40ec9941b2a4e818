package executortest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
	"github.com/carillon-sched/carillon/executor-sdk/timers"
)

// timerBody is what a request about timers may hold.
type timerBody struct {
	callapi.TimerRequest
	Timers    []callapi.TimerRequest `json:"timers"`
	Keys      []string               `json:"keys"`
	KeyPrefix string                 `json:"keyPrefix"`
	Label     string                 `json:"label"`
}

// serve answers a request of package timers.
func (tt *timerTable) serve(r *http.Request) *http.Response {
	tt.admin.Start()
	tt.admin.mu.Lock()
	defer tt.admin.mu.Unlock()
	var body timerBody
	if r.Method == http.MethodPost {
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(raw, &body)
		}
		if err != nil {
			return refuse(r, http.StatusBadRequest, callapi.ProblemCodeMalformedJSON, err.Error())
		}
	}
	out, p := tt.answer(r, &body)
	if p != nil {
		return refuse(r, p.status, p.code, p.detail)
	}
	return answer(r, http.StatusOK, out)
}

// answer does what the request asks for. mu is held.
func (tt *timerTable) answer(r *http.Request, body *timerBody) (any, *problem) {
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/api/v1/"), "/")
	switch action := r.Method + " " + strings.Join(path[:min(len(path), 2)], "/"); {
	case len(path) >= 4 && path[0] == "timers":
		t, p := tt.change(path[2], path[3], strings.Join(path[4:], "/"), body.TimerRequest)
		if p != nil {
			return nil, p
		}
		return t.shown(""), nil
	case action == "POST timers":
		t, outcome, p := tt.set(body.TimerRequest)
		if p != nil {
			return nil, p
		}
		return t.shown(outcome), nil
	case action == "POST timers/batch":
		return tt.setAll(body.Timers), nil
	case action == "POST timers/cancel":
		return tt.cancelMany(body)
	case action == "GET timers":
		return tt.list(r.URL.Query())
	case action == "GET timers/count":
		handler, n := r.URL.Query().Get("handler"), int64(0)
		for _, t := range tt.byKey {
			if t.request.Handler == handler && t.pending() {
				n++
			}
		}
		return callapi.TimerCount{Pending: n}, nil
	case len(path) == 2 && path[0] == "timer-cancellations":
		if c, ok := tt.cancellations[path[1]]; ok {
			return c, nil
		}
	}
	return nil, &problem{http.StatusNotFound, callapi.ProblemCodeNotFound, "there is no such path"}
}

// cancelMany ends many. What the API does in steps is done at once. mu is held.
func (tt *timerTable) cancelMany(body *timerBody) (any, *problem) {
	out := callapi.TimerCancellation{Executor: body.Executor, Handler: body.Handler, KeyPrefix: body.KeyPrefix, Label: body.Label, Done: true}
	if !slices.ContainsFunc(slices.Collect(maps.Values(tt.byKey)), func(t *timer) bool { return t.request.Handler == body.Handler }) {
		return nil, &problem{http.StatusNotFound, callapi.ProblemCodeNotFound, "there are no timers of the handler " + strconv.Quote(body.Handler)}
	}
	cancel := func(t *timer) {
		if !t.ended() {
			tt.cancel(t)
			out.Found++
			out.Cancelled++
		}
	}
	switch {
	case body.Keys != nil:
		for _, key := range body.Keys {
			item := callapi.CancelledTimer{Key: key, Outcome: "not_found"}
			if t := tt.byKey[timerKey(body.Handler, key)]; t != nil {
				cancel(t)
				item.Outcome = t.cancelOutcome()
			}
			out.Items = append(out.Items, item)
		}
	case (body.KeyPrefix == "") == (body.Label == ""):
		return nil, invalid(errors.New("body.keys must be given, or keyPrefix, or label: one of the three"))
	default:
		for _, t := range tt.byKey {
			if t.request.Handler == body.Handler && t.matches(body.KeyPrefix, body.Label) {
				cancel(t)
			}
		}
		out.ID = strconv.FormatInt(tt.admin.newIDLocked(), 10)
		tt.cancellations[out.ID] = out
	}
	return out, nil
}

// cancelOutcome is what a cancel has done.
func (t *timer) cancelOutcome() string {
	switch {
	case t.state() == string(Cancelled):
		return string(timers.Cancelled)
	case !t.ended():
		return string(timers.Cancelling)
	default:
		return "already_finished"
	}
}

func (t *timer) matches(prefix, label string) bool {
	return strings.HasPrefix(t.request.Key, prefix) && (label == "" || slices.Contains(t.request.Labels, label))
}

// list is a page of a list. mu is held.
func (tt *timerTable) list(q url.Values) (any, *problem) {
	var bounds [2]time.Time
	for i, name := range []string{"from", "to"} {
		if text := q.Get(name); text != "" {
			var err error
			if bounds[i], err = time.Parse(time.RFC3339, text); err != nil {
				return nil, invalid(err)
			}
		}
	}
	state := cmp.Or(q.Get("state"), string(timers.Pending))
	var found []*timer
	for _, t := range tt.byKey {
		switch {
		case string(t.phase()) != state, q.Get("handler") != "" && t.request.Handler != q.Get("handler"), !t.matches(q.Get("keyPrefix"), q.Get("label")):
		case t.fireAt.Before(bounds[0]), !bounds[1].IsZero() && !t.fireAt.Before(bounds[1]):
		case q.Get("cursor") != "" && t.place() <= q.Get("cursor"):
		default:
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(x, y *timer) int { return cmp.Compare(x.place(), y.place()) })
	out := callapi.PageTimer{Items: []callapi.Timer{}}
	limit, err := strconv.Atoi(cmp.Or(q.Get("limit"), "50"))
	if err != nil || limit < 1 {
		return nil, invalid(errors.New("query.limit must be a number"))
	}
	if len(found) > limit {
		found = found[:limit]
		next := found[limit-1].place()
		out.NextCursor = &next
	}
	for _, t := range found {
		out.Items = append(out.Items, t.shown(""))
	}
	return out, nil
}

func (t *timer) phase() timers.State {
	switch {
	case t.pending():
		return timers.Pending
	case t.ended():
		return timers.Ended
	default:
		return timers.Claimed
	}
}

// place orders a list: pending ones by handler and key, others from the newest.
func (t *timer) place() string {
	if t.pending() {
		return timerKey(t.request.Handler, t.request.Key)
	}
	return fmt.Sprintf("%020d", math.MaxInt64-t.id)
}
