package timer

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Timer is one run of a handler at one instant that an application asked for.
type Timer struct {
	Executor    string          `json:"executor" doc:"Name of the executor"`
	Handler     string          `json:"handler" doc:"Name of the handler"`
	Key         string          `json:"key" doc:"Names it among the timers of its handler"`
	State       string          `json:"state" enum:"pending,due,offered,running,cancelling,retry_wait,succeeded,failed,timed_out,cancelled,lost,missed,discarded,excluded" doc:"pending: its time has not come; otherwise the state of its run"`
	FireAt      string          `json:"fireAt" format:"date-time" doc:"The instant that it was set for"`
	Outcome     string          `json:"outcome,omitempty" enum:"created,kept,replaced" doc:"What setting it has done; absent in all other answers"`
	Input       json.RawMessage `json:"input" doc:"What the handler gets; null: nothing"`
	Labels      []string        `json:"labels" doc:"Words to find it by"`
	MaxAttempts int             `json:"maxAttempts,omitempty" doc:"How often it may be tried; absent: as its handler declares"`
	Timeout     string          `json:"timeout,omitempty" doc:"Of one attempt; absent: as its handler declares"`
	StartWithin string          `json:"startWithin,omitempty" doc:"How long it may wait for an instance; absent: as its handler declares, and for a timer that has a run"`
	Note        string          `json:"note" doc:"Why; empty: not said"`
	CreatedAt   string          `json:"createdAt" format:"date-time" doc:"When it was set; one that had a run and was moved counts as set when it was moved"`
	CreatedBy   string          `json:"createdBy" doc:"The user or key that has set it"`
	Run         *string         `json:"run" doc:"Id of its run; null while it is pending"`
	FinishedAt  *string         `json:"finishedAt" format:"date-time" doc:"When its run ended; null: not yet"`
	Reason      string          `json:"reason" doc:"Code of why its run is in this state; empty when the state alone says it"`
	Message     string          `json:"message" doc:"The same for people, such as who has cancelled it"`
	Error       string          `json:"error,omitempty" doc:"What the handler said of its failure; absent without one"`
}

func timerOf(v *store.TimerView) Timer {
	out := Timer{
		Executor: v.ExecutorName, Handler: v.Handler, Key: v.Key, State: "pending", FireAt: web.Instant(v.FireAt),
		Input: web.RawOrNull(v.Input), Labels: web.EmptyIfNil(v.Labels), MaxAttempts: v.MaxAttempts, Note: v.Note,
		CreatedAt: web.Instant(v.CreatedAt()), CreatedBy: v.RequestedBy,
	}
	if v.Timeout > 0 {
		out.Timeout = domain.DurationText(v.Timeout)
	}
	if v.StartWithin > 0 {
		out.StartWithin = domain.DurationText(v.StartWithin)
	}
	if run := v.Run; run != nil {
		out.State, out.Run, out.FinishedAt = run.State.String(), web.IDOrNull(run.ID), web.InstantOrNull(run.FinishedAt)
		out.Reason, out.Message, out.Error = string(run.Reason), run.Message, run.Error
	}
	return out
}

// TimerCount is how many timers are pending.
type TimerCount struct {
	Pending   int64               `json:"pending" doc:"Of all those below"`
	ByHandler []HandlerTimerCount `json:"byHandler" doc:"Of each handler that ever had a timer, by executor and handler"`
}

// HandlerTimerCount is how many timers of a handler are pending.
type HandlerTimerCount struct {
	Executor string `json:"executor" doc:"Name of the executor"`
	Handler  string `json:"handler" doc:"Name of the handler"`
	Pending  int64  `json:"pending" doc:"How many are pending, exactly"`
}

// TimerPath names one timer; a slash in a name is sent as %2F. It is exported
// because huma passes over embedded fields that are not, as TimerFilter is.
type TimerPath struct {
	Executor string `path:"executor" doc:"Name of the executor"`
	Handler  string `path:"handler" doc:"Name of the handler, percent-encoded"`
	Key      string `path:"key" doc:"Key of the timer, percent-encoded"`
}

// TimerFilter says of which handlers.
type TimerFilter struct {
	Executor string `query:"executor" maxLength:"128" doc:"Name of the executor; default: all"`
	Handler  string `query:"handler" maxLength:"128" doc:"Name of the handler; default: all"`
}

type timerPathInput struct{ TimerPath }

type countTimersInput struct{ TimerFilter }

type timerOutput struct {
	Status int
	Body   Timer
}

func (a *api) registerTimers() {
	web.Register(a.Server, web.May(domain.PermTimer).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/timers", ID: "set-timer", Unaudited: "timers are data", Tag: "timers", Summary: "Run a handler once, at an instant",
		Description: "At most one timer of a handler with a key is pending or under way. policy says what happens where there is one: keep answers it (also one that has ended, unless it was cancelled, so that a request that is repeated makes no second timer), replace puts the new one in its place unless it has started, reject refuses the new one. 409 timer_exists with reject, timer_started with replace.",
		Status:      http.StatusCreated, Errors: []int{http.StatusNotFound, http.StatusConflict},
		Also: map[int]string{http.StatusOK: "A timer of this key was there: it was kept or replaced, as outcome says"},
	}, a.setTimer)
	web.Register(a.Server, web.May(domain.PermTimer).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/timers/batch", ID: "set-timers", Unaudited: "timers are data", Tag: "timers", Summary: "Set up to 10,000 timers",
		Description: "One answer for each, in their order. A timer that cannot be set keeps no other one out. Give keys: then the request can be repeated when its answer was lost. The body may have 8 MiB.",
		MaxBody:     timerBody,
	}, a.setTimers)
	web.Register(a.Server, web.May(domain.PermTimer).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/timers/count", ID: "count-timers", Tag: "timers", Summary: "Count the pending timers",
		Description: "In all and by handler; the counts are exact.",
	}, a.countTimers)
	web.Register(a.Server, web.May(domain.PermTimer).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/timers/{executor}/{handler}/{key}", ID: "get-timer", Tag: "timers", Summary: "One timer",
		Description: "The pending one of this key, or else the newest that has a run.",
	}, a.getTimer)
}

// timerBody bounds requests with 10,000 timers or keys, in bytes.
const timerBody = 8 << 20

func (a *api) getTimer(ctx context.Context, id auth.Identity, in *timerPathInput) (*struct{ Body Timer }, error) {
	job, err := a.timerJob(ctx, id, in.Executor, in.Handler)
	if err != nil {
		return nil, err
	}
	if err := domain.CheckTimerKey("path.key", in.Key); err != nil {
		return nil, err
	}
	v, err := a.deps.Store.FindTimer(ctx, id.Tenant, job, in.Key)
	return web.AnswerOf(v, err, timerOf)
}

// Counts are those of the handlers that the filter and the identity's scope leave.
func Counts(ctx context.Context, from store.Timers, id auth.Identity, f TimerFilter) ([]store.TimerCount, error) {
	all, err := from.CountTimers(ctx, id.Tenant)
	out := all[:0]
	for _, c := range all {
		if (f.Executor == "" || c.ExecutorName == f.Executor) && (f.Handler == "" || c.Handler == f.Handler) && id.Scope.Allows(c.ExecutorName, c.Handler) {
			out = append(out, c)
		}
	}
	return out, err
}

func (a *api) countTimers(ctx context.Context, id auth.Identity, in *countTimersInput) (*struct{ Body TimerCount }, error) {
	counts, err := Counts(ctx, a.deps.Store, id, in.TimerFilter)
	if err != nil {
		return nil, err
	}
	out := TimerCount{ByHandler: []HandlerTimerCount{}}
	for _, c := range counts {
		out.Pending += c.Pending
		out.ByHandler = append(out.ByHandler, HandlerTimerCount{Executor: c.ExecutorName, Handler: c.Handler, Pending: c.Pending})
	}
	return &struct{ Body TimerCount }{out}, nil
}

// timerJob finds the job of a handler's timers, which there is when one was ever
// set.
func (a *api) timerJob(ctx context.Context, id auth.Identity, executor, handler string) (domain.JobID, error) {
	if job, ok := a.timers.job(id.Tenant, executor, handler, a.deps.Now()); ok && id.Scope.Allows(executor, handler) {
		return job, nil
	}
	if executor == "" || handler == "" {
		return 0, errNoTimers(executor, handler)
	}
	counts, err := Counts(ctx, a.deps.Store, id, TimerFilter{Executor: executor, Handler: handler})
	if err != nil {
		return 0, err
	}
	if len(counts) == 0 {
		return 0, errNoTimers(executor, handler)
	}
	a.timers.remember(id.Tenant, executor, handler, knownTarget{job: counts[0].Job, at: a.deps.Now()})
	return counts[0].Job, nil
}

func errNoTimers(executor, handler string) error {
	return domain.Errorf(domain.CodeNotFound, "there are no timers of a handler %q of an executor %q that you may see", handler, executor)
}

type listTimersInput struct {
	web.PageParams
	TimerFilter
	State     string `query:"state" enum:"pending,claimed,ended" default:"pending" doc:"pending: their time has not come; claimed: their runs have not ended; ended: their runs have ended, or they were cancelled"`
	KeyPrefix string `query:"keyPrefix" maxLength:"160" doc:"Beginning of the key"`
	Label     string `query:"label" maxLength:"64" doc:"One of the labels"`
	From      string `query:"from" doc:"Only those set for this instant or later"`
	To        string `query:"to" doc:"Only those set for an earlier instant"`
}

func (a *api) registerTimerLists() {
	web.Register(a.Server, web.May(domain.PermTimer).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/timers", ID: "list-timers", Large: true, Tag: "timers", Summary: "List timers",
		Description: "Pending ones by handler and key, others from the newest. A page reads only so much: it may have fewer than limit, or none, and yet a nextCursor.",
	}, a.listTimers)
}

var timerStates = map[string]store.TimersState{"pending": store.TimersPending, "claimed": store.TimersClaimed, "ended": store.TimersEnded}

func (a *api) listTimers(ctx context.Context, id auth.Identity, in *listTimersInput) (*web.PageOutput[Timer], error) {
	list := "timers:" + in.State
	at, err := web.DecodeCursor(in.Cursor, list)
	if err != nil {
		return nil, err
	}
	var r reader
	p := store.ListTimersParams{
		Tenant: id.Tenant, State: timerStates[in.State], KeyPrefix: in.KeyPrefix, Label: in.Label,
		From: r.Instant("query.from", &in.From), To: r.Instant("query.to", &in.To), Limit: in.Limit,
	}
	if !p.From.IsZero() && !p.To.IsZero() && !p.From.Before(p.To) {
		r.Fail("query.to", in.To, "must be later than from")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if p.State == store.TimersPending {
		p.After = store.TimerCursor{Job: domain.JobID(at.ID), Key: at.Name, Run: domain.ExecutionID(at.At)}
	} else {
		p.After.Run = domain.ExecutionID(at.ID)
	}
	if in.Executor != "" || in.Handler != "" || id.Scope.Bounded() {
		counts, err := Counts(ctx, a.deps.Store, id, in.TimerFilter)
		if err != nil || len(counts) == 0 {
			return web.OnePage[Timer](nil), err
		}
		p.Jobs = domain.Collect(counts, func(c *store.TimerCount) domain.JobID { return c.Job })
	}
	page, err := a.deps.Store.ListTimers(ctx, p)
	if err != nil {
		return nil, err
	}
	out := web.OnePage(domain.Collect(page.Timers, timerOf))
	if next := page.Next; next != nil {
		c := web.Cursor{List: list, Name: next.Key, ID: int64(next.Job), At: int64(next.Run)}
		if p.State != store.TimersPending {
			c = web.Cursor{List: list, ID: int64(next.Run)}
		}
		out.Body.NextCursor = c.Encode()
	}
	return out, nil
}
