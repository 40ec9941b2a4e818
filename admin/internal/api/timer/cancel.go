package timer

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

type rescheduleTimerInput struct {
	TimerPath
	Body struct {
		At    string `json:"at,omitempty" doc:"When, RFC 3339, at most ten years ahead; an instant that has passed is now. Either this or after"`
		After string `json:"after,omitempty" doc:"How long from now, a duration such as 30m or 720h, at most ten years"`
	}
}

func (a *api) registerTimerEdits() {
	web.Register(a.Server, web.May(domain.PermTimer).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/timers/{executor}/{handler}/{key}/cancel", ID: "cancel-timer", Unaudited: "timers are data", Tag: "timers", Summary: "Cancel a timer",
		Description: "A pending one ends at once, as one that has not started. A running handler is asked to stop: the state is cancelling until it has. 409 already_finished when it has ended.",
		Errors:      []int{http.StatusConflict},
	}, a.cancelTimer)
	web.Register(a.Server, web.May(domain.PermTimer).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/timers/{executor}/{handler}/{key}/reschedule", ID: "reschedule-timer", Unaudited: "timers are data", Tag: "timers", Summary: "Move a timer to another instant",
		Description: "As long as it has not started: 409 timer_started after that, already_finished when it has ended.",
		Errors:      []int{http.StatusConflict},
	}, a.rescheduleTimer)
}

// cancelKeys cancels timers, and tells running handlers.
func (t *timers) cancelKeys(ctx context.Context, p store.CancelTimersParams) []store.CancelTimerResult {
	results := t.deps.Store.CancelTimers(ctx, p)
	for i := range results {
		if run := results[i].View.Run; results[i].Err == nil && run != nil && run.State == domain.Cancelling {
			t.deps.Runner.SendCancel(*run)
		}
	}
	return results
}

// fill reads what the store has left out of a stored timer. Up to five hundred requests share a
// transaction, and their inputs at once would be 125 MiB. So each request takes a share first.
// The timer is set or cancelled by then.
func (a *api) fill(ctx context.Context, v *store.TimerView) error {
	if !v.Partial {
		return nil
	}
	err := a.HoldAnswer(ctx)
	if err == nil {
		err = a.deps.Store.FillTimer(ctx, v)
	}
	if err != nil {
		return domain.Errorf(domain.CodeUnavailable, "the timer %q is stored as asked, but its input cannot be read: ask for the timer: %w", v.Key, err)
	}
	return nil
}

// cancelOne asks for the end of one timer.
type cancelOne struct {
	of  cancelsOf
	key string
}

// cancelsOf is what cancels have in common that go into one transaction.
type cancelsOf struct {
	tenant domain.TenantID
	job    domain.JobID
	by     string
}

// cancelTogether cancels the timers of many requests. Requests of one job and one caller
// share a transaction. Requests for the same timer get the same answer.
func (t *timers) cancelTogether(ctx context.Context, list []cancelOne) ([]store.CancelTimerResult, error) {
	var groups batch.Groups[cancelsOf, int]
	for i := range list {
		groups.Add(list[i].of, i)
	}
	out := make([]store.CancelTimerResult, len(list))
	for _, g := range groups {
		keys := make([]string, len(g.Items))
		for n, i := range g.Items {
			keys[n] = list[i].key
		}
		for n, r := range t.cancelKeys(ctx, store.CancelTimersParams{Tenant: g.Key.tenant, Job: g.Key.job, By: g.Key.by, Keys: keys}) {
			out[g.Items[n]] = r
		}
	}
	return out, nil
}

func (a *api) cancelTimer(ctx context.Context, id auth.Identity, in *timerPathInput) (*struct{ Body Timer }, error) {
	job, err := a.timerJob(ctx, id, in.Executor, in.Handler)
	if err != nil {
		return nil, err
	}
	if err := domain.CheckTimerKey("path.key", in.Key); err != nil {
		return nil, err
	}
	result, err := a.timers.cancels.Do(ctx, cancelOne{cancelsOf{id.Tenant, job, id.Actor()}, in.Key})
	if err = cmp.Or(err, result.Err); err != nil {
		return nil, err
	}
	if err := a.fill(ctx, &result.View); err != nil {
		return nil, err
	}
	return &struct{ Body Timer }{timerOf(&result.View)}, nil
}

func (a *api) rescheduleTimer(ctx context.Context, id auth.Identity, in *rescheduleTimerInput) (*struct{ Body Timer }, error) {
	job, err := a.timerJob(ctx, id, in.Executor, in.Handler)
	if err != nil {
		return nil, err
	}
	var r reader
	r.key("path.key", in.Key)
	at := r.fireAt(in.Body.At, in.Body.After, a.deps.Now())
	if err := r.Err(); err != nil {
		return nil, err
	}
	v, err := a.deps.Store.RescheduleTimer(ctx, store.RescheduleTimerParams{
		Tenant: id.Tenant, Job: job, Key: in.Key, FireAt: at, By: id.Actor(), Held: a.timers.held(),
	})
	if err != nil {
		return nil, err
	}
	a.deps.TimersSet(v.FireAt)
	return &struct{ Body Timer }{timerOf(&v)}, nil
}

// CancelTimersRequest asks for the end of many timers of a handler.
type CancelTimersRequest struct {
	Executor  string   `json:"executor" minLength:"1" maxLength:"128" doc:"Its name"`
	Handler   string   `json:"handler" minLength:"1" maxLength:"128" doc:"Name of the handler"`
	Keys      []string `json:"keys,omitempty" maxItems:"10000" doc:"Keys of the timers. Either these, or keyPrefix, or label"`
	KeyPrefix string   `json:"keyPrefix,omitempty" maxLength:"160" doc:"Beginning of the keys"`
	Label     string   `json:"label,omitempty" maxLength:"64" doc:"One of the timers' labels"`
	FreeEnded bool     `json:"freeEnded,omitempty" doc:"With keys: the key of a timer that has ended is free afterwards, as that of a cancelled one is, so that one can be set anew"`
}

// TimerCancellation is how far a cancel of many timers is.
type TimerCancellation struct {
	ID         string           `json:"id,omitempty" doc:"With keyPrefix or label"`
	Executor   string           `json:"executor" doc:"Name of the executor"`
	Handler    string           `json:"handler" doc:"Name of the handler"`
	KeyPrefix  string           `json:"keyPrefix,omitempty" doc:"As asked for"`
	Label      string           `json:"label,omitempty" doc:"As asked for"`
	Found      int64            `json:"found" doc:"How many had not ended"`
	Cancelled  int64            `json:"cancelled" doc:"Those of them that were cancelled; running handlers were asked to stop"`
	Done       bool             `json:"done" doc:"Nothing is left to be cancelled"`
	CreatedAt  string           `json:"createdAt,omitempty" format:"date-time" doc:"With keyPrefix or label: when it was asked for"`
	CreatedBy  string           `json:"createdBy,omitempty" doc:"With keyPrefix or label: who asked for it"`
	FinishedAt *string          `json:"finishedAt" format:"date-time" doc:"When nothing was left; null: not yet, or with keys"`
	Items      []CancelledTimer `json:"items,omitempty" doc:"With keys: one for each, in their order"`
}

// CancelledTimer is what became of one key.
type CancelledTimer struct {
	Key     string        `json:"key" doc:"As in the request"`
	Outcome string        `json:"outcome" enum:"cancelled,cancelling,not_found,already_finished,invalid,failed" doc:"cancelled: now, or before the request, so that it can be repeated; cancelling: its handler runs, and was asked to stop; failed: the database did not answer"`
	Problem *TimerProblem `json:"problem,omitempty" doc:"With invalid and failed: why"`
}

func timerCancellationOf(c *domain.TimerCancellation, executor, handler string) TimerCancellation {
	return TimerCancellation{
		ID: c.ID.String(), Executor: executor, Handler: handler, KeyPrefix: c.KeyPrefix, Label: c.Label, Found: c.Found, Cancelled: c.Cancelled,
		Done: c.Done(), CreatedAt: web.Instant(c.CreatedAt), CreatedBy: c.CreatedBy, FinishedAt: web.InstantOrNull(c.FinishedAt),
	}
}

type cancelTimersInput struct{ Body CancelTimersRequest }

type timerCancellationOutput struct {
	Status int
	Body   TimerCancellation
}

func (a *api) registerTimerCancellations() {
	web.Register(a.Server, web.May(domain.PermTimer).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/timers/cancel", ID: "cancel-timers", Unaudited: "timers are data", Tag: "timers", Summary: "Cancel many timers",
		Description: "By up to 10,000 keys: 200 with one answer for each. By the beginning of the key, or a label: 202 with an id, and it is done in steps (get-timer-cancellation); those that are set later are not cancelled. The body may have 8 MiB.",
		Errors:      []int{http.StatusNotFound}, MaxBody: timerBody,
		Also: map[int]string{http.StatusAccepted: "By keyPrefix or label: it has begun"},
	}, a.cancelTimers)
	web.Register(a.Server, web.May(domain.PermTimer).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/timer-cancellations/{id}", ID: "get-timer-cancellation", Tag: "timers", Summary: "How far a cancel of many timers is",
		Description: "Of one by keyPrefix or label.",
	}, a.getTimerCancellation)
}

func (a *api) cancelTimers(ctx context.Context, id auth.Identity, in *cancelTimersInput) (*timerCancellationOutput, error) {
	b := &in.Body
	var r reader
	given := 0
	for _, is := range []bool{len(b.Keys) > 0, b.KeyPrefix != "", b.Label != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		r.Fail("body.keys", nil, "must be given, or keyPrefix, or label: one of the three")
	}
	switch prefix := b.KeyPrefix; {
	case domain.HasControl(prefix):
		r.Fail("body.keyPrefix", prefix, "must not contain control characters")
	case strings.HasSuffix(prefix, " "): // MySQL compares without them: the key without would be cancelled too
		r.Fail("body.keyPrefix", prefix, "must not end with a blank")
	}
	if b.Label != "" {
		r.label("body.label", b.Label)
	}
	if b.FreeEnded && len(b.Keys) == 0 {
		r.Fail("body.freeEnded", true, "goes with keys only")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	job, err := a.timerJob(ctx, id, b.Executor, b.Handler)
	if err != nil {
		return nil, err
	}
	if len(b.Keys) > 0 {
		out, err := a.cancelByKeys(ctx, id, job, b)
		return &timerCancellationOutput{Status: http.StatusOK, Body: out}, err
	}
	c, err := a.deps.Store.CreateTimerCancellation(ctx, domain.TimerCancellation{
		ID: domain.TimerCancellationID(a.deps.NewID()), TenantID: id.Tenant, JobID: job, KeyPrefix: b.KeyPrefix, Label: b.Label,
		CreatedBy: id.Actor(), CreatedAt: a.deps.Now(),
	})
	if err != nil {
		return nil, err
	}
	a.deps.Log.Info("timers are cancelled", "tenant_id", id.Tenant, "executor", b.Executor, "handler", b.Handler, "by", id.Actor())
	return &timerCancellationOutput{Status: http.StatusAccepted, Body: timerCancellationOf(&c, b.Executor, b.Handler)}, nil
}

func (a *api) cancelByKeys(ctx context.Context, id auth.Identity, job domain.JobID, b *CancelTimersRequest) (TimerCancellation, error) {
	out := TimerCancellation{Executor: b.Executor, Handler: b.Handler, Done: true, Items: make([]CancelledTimer, len(b.Keys))}
	var keys []string
	var at []int // of each in out.Items
	for i, key := range b.Keys {
		out.Items[i].Key = key
		if err := domain.CheckTimerKey("body.keys", key); err != nil {
			out.Items[i].Outcome, out.Items[i].Problem = "invalid", timerProblemOf(a.Problem(ctx, err))
			continue
		}
		keys, at = append(keys, key), append(at, i)
	}
	var failure error
	failed, counted := 0, map[string]bool{} // a key that comes twice is one timer
	for i, result := range a.timers.cancelKeys(ctx, store.CancelTimersParams{Tenant: id.Tenant, Job: job, By: id.Actor(), Keys: keys, FreeEnded: b.FreeEnded, Brief: true}) {
		item := &out.Items[at[i]]
		switch {
		case result.Err == nil:
			item.Outcome = result.View.Run.State.String()
			if !counted[item.Key] {
				out.Cancelled++
				out.Found++
			}
		case domain.Is(result.Err, domain.CodeNotFound):
			item.Outcome = "not_found"
		case domain.Is(result.Err, domain.CodeAlreadyFinished) && result.View.Run.State == domain.Cancelled:
			item.Outcome = "cancelled"
		case domain.Is(result.Err, domain.CodeAlreadyFinished):
			item.Outcome = "already_finished"
		default:
			if failure == nil {
				failure = a.Problem(ctx, result.Err)
			}
			failed++
			item.Outcome, item.Problem = "failed", timerProblemOf(a.Problem(ctx, failure))
		}
		counted[item.Key] = true
	}
	if failed == len(out.Items) {
		return out, failure
	}
	return out, nil
}

func (a *api) getTimerCancellation(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body TimerCancellation }, error) {
	cid, err := domain.ParseID[domain.TimerCancellationID](in.ID)
	if err != nil {
		return nil, err
	}
	var job store.JobView
	c, err := a.deps.Store.FindTimerCancellation(ctx, id.Tenant, cid)
	if err == nil {
		job, err = a.deps.Store.FindJob(ctx, id.Tenant, c.JobID)
	}
	if domain.Is(err, domain.CodeNotFound) || err == nil && !id.Scope.Allows(job.ExecutorName, job.Spec.Handler) {
		return nil, domain.Errorf(domain.CodeNotFound, "there is no timer cancellation %s that you may see", in.ID)
	}
	if err != nil {
		return nil, err
	}
	return &struct{ Body TimerCancellation }{timerCancellationOf(&c, job.ExecutorName, job.Spec.Handler)}, nil
}
