package timer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/catalogue"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// TimerRequest asks for one run of a handler. Its bounds are not in the schema:
// one timer of many that breaks them keeps no other one out.
type TimerRequest struct {
	Executor    string          `json:"executor" doc:"Its name"`
	Handler     string          `json:"handler" doc:"Name of the handler, as its instances register it"`
	Key         string          `json:"key,omitempty" doc:"Names the timer among those of its handler, 1 to 160 characters; default: the server makes one"`
	At          string          `json:"at,omitempty" doc:"When, RFC 3339, at most ten years ahead; an instant that has passed is now. Either this or after"`
	After       string          `json:"after,omitempty" doc:"How long from now, a duration such as 30m or 720h, at most ten years"`
	Input       json.RawMessage `json:"input,omitempty" doc:"Any JSON up to 256 KiB"`
	Policy      string          `json:"policy,omitempty" doc:"keep (default), replace or reject: what happens where the key is in use"`
	Labels      []string        `json:"labels,omitempty" doc:"Words to find it and to cancel it by, at most 8 of 1 to 64 characters"`
	MaxAttempts int             `json:"maxAttempts,omitempty" doc:"1 to 100, at most as many as the handler declares; default: as many, or 1 where it declares none"`
	Timeout     string          `json:"timeout,omitempty" doc:"Of one attempt, from 1ms to 168h, at most what the handler declares; default: that, or none"`
	StartWithin string          `json:"startWithin,omitempty" doc:"How long from its time it may wait for an instance, at most one year; default: as the handler declares, or 24h"`
	Note        string          `json:"note,omitempty" doc:"Why, up to 1024 characters; shown beside the run"`
	RequestID   string          `json:"requestId,omitempty" doc:"Names this request, up to 64 characters. Sent again with the same key it sets no second timer, also where the first one was cancelled meanwhile: the answer is kept. It is remembered with the timer, and with its run as long as that is the newest one of its key"`
}

// TimerBatch is what became of many timers.
type TimerBatch struct {
	Created  int              `json:"created" doc:"How many were set anew"`
	Kept     int              `json:"kept" doc:"How many were there already"`
	Replaced int              `json:"replaced" doc:"How many took the place of another one"`
	Rejected int              `json:"rejected" doc:"How many were refused as things are"`
	Invalid  int              `json:"invalid" doc:"How many are wrong in themselves"`
	Failed   int              `json:"failed" doc:"How many may be set or not: repeat them with the same keys"`
	Items    []TimerBatchItem `json:"items" doc:"In the order of the request"`
}

// TimerBatchItem is what became of one of them.
type TimerBatchItem struct {
	Key     string        `json:"key" doc:"As in the request, or as the server made it"`
	Outcome string        `json:"outcome" enum:"created,kept,replaced,rejected,invalid,failed" doc:"rejected: the key is in use, or the quota is used up; invalid: the request is wrong; failed: the database did not answer, it may be set or not, and the same with the same key tells"`
	FireAt  *string       `json:"fireAt" format:"date-time" doc:"The instant that it is set for; null: it is not"`
	State   string        `json:"state,omitempty" doc:"With kept: pending, or how far the run of the one that stays is"`
	Problem *TimerProblem `json:"problem,omitempty" doc:"With rejected, invalid and failed: why"`
}

// TimerProblem is why a timer of many was refused.
type TimerProblem struct {
	Code   string `json:"code" doc:"As in problem answers"`
	Title  string `json:"title" doc:"In a few words"`
	Detail string `json:"detail" doc:"What is wrong, for people; begins with the field, such as body.key"`
}

func timerProblemOf(p *web.Problem) *TimerProblem {
	return &TimerProblem{Code: p.Code, Title: p.Title, Detail: p.Detail}
}

type setTimerInput struct{ Body TimerRequest }

type setTimersInput struct {
	Body struct {
		Timers []TimerRequest `json:"timers" minItems:"1" maxItems:"10000" doc:"What is wrong with one of them is in its answer. A member that is not known, or of another type, is refused with all"`
	}
}

// reader reads also what timers are made of.
type reader struct{ web.Reader }

// timers is what the node remembers for requests about timers.
type timers struct {
	deps Deps
	// creations makes one transaction of the timers that many requests set at the
	// same time.
	creations *batch.Calls[store.SetTimer, store.SetTimerResult]
	// cancels does the same for timers that are cancelled by their key.
	cancels *batch.Calls[cancelOne, store.CancelTimerResult]
	targets *lru.Cache[timerTarget, knownTarget]
}

// timerTarget is whose timers are meant.
type timerTarget struct {
	tenant            domain.TenantID
	executor, handler string
}

// knownTarget is what a timer needs of its handler.
type knownTarget struct {
	job domain.JobID
	// handler is nil where nothing is registered of it, and maxAttempts is the
	// job's. Both count only where settable is true: otherwise only the job is
	// known.
	settable    bool
	handler     *domain.Handler
	maxAttempts int
	at          time.Time
}

const (
	// knownTargets bounds what is remembered of handlers.
	knownTargets = 10_000
	// targetAge is how old it may be: a schema or setting that has changed counts
	// for timers within that.
	targetAge = 2 * time.Second
	// maxTogether is how many timers of as many requests go together, and
	// togetherTime how long that may take.
	maxTogether  = 500
	togetherTime = 30 * time.Second
)

func newTimers(deps Deps) *timers {
	t := &timers{deps: deps}
	t.targets, _ = lru.New[timerTarget, knownTarget](knownTargets) // fails for a size of 0 only
	t.cancels = batch.NewCalls(maxTogether, togetherTime, t.cancelTogether)
	t.creations = batch.NewCalls(maxTogether, togetherTime, func(ctx context.Context, list []store.SetTimer) ([]store.SetTimerResult, error) {
		return t.set(ctx, list, false), nil
	})
	return t
}

// set sets timers, and tells the planner of timers that are due soon. For brief see
// store.SetTimersParams.
func (t *timers) set(ctx context.Context, list []store.SetTimer, brief bool) []store.SetTimerResult {
	results := t.deps.Store.SetTimers(ctx, store.SetTimersParams{Timers: list, Held: t.held(), Brief: brief})
	var first time.Time
	for i := range results {
		if r := &results[i]; r.Err == nil && r.Outcome != domain.TimerKept && (first.IsZero() || r.View.FireAt.Before(first)) {
			first = r.View.FireAt
		}
	}
	if !first.IsZero() {
		t.deps.TimersSet(first)
	}
	return results
}

func (t *timers) held() []int {
	return domain.Collect(t.deps.Held(), func(p *domain.PartitionTerm) int { return p.Partition })
}

func (t *timers) known(tenant domain.TenantID, executor, handler string, now time.Time) (knownTarget, bool) {
	k, ok := t.targets.Get(timerTarget{tenant, executor, handler})
	return k, ok && now.Sub(k.at).Abs() < targetAge // a clock may be set back
}

func (t *timers) job(tenant domain.TenantID, executor, handler string, now time.Time) (domain.JobID, bool) {
	k, ok := t.known(tenant, executor, handler, now)
	return k.job, ok
}

func (t *timers) remember(tenant domain.TenantID, executor, handler string, k knownTarget) {
	t.targets.Add(timerTarget{tenant, executor, handler}, k)
}

// targetFunc finds what timers of a handler need.
type targetFunc func(executor, handler string) (knownTarget, error)

// findTarget asks the database. It makes the job of the handler's timers where
// there is none.
func (a *api) findTarget(ctx context.Context, id auth.Identity) targetFunc {
	return func(executorName, handler string) (k knownTarget, err error) {
		if err := catalogue.MayCall(id, executorName, handler); err != nil {
			return k, err
		}
		k.at = a.deps.Now()
		executor, err := a.deps.Store.FindExecutorByName(ctx, id.Tenant, executorName)
		if domain.Is(err, domain.CodeNotFound) {
			return k, catalogue.NoSuchTarget(executorName, handler)
		}
		if err != nil {
			return k, err
		}
		k.handler, err = catalogue.Known(ctx, a.deps.Store, id.Tenant, executor, handler, catalogue.HintCall)
		if err != nil {
			return k, err
		}
		h := k.handler
		if h == nil {
			h = &domain.Handler{Name: handler}
		}
		job, err := a.deps.CallJob(ctx, executor, *h, domain.JobTimer)
		if err != nil {
			return k, err
		}
		k.job, k.maxAttempts, k.settable = job.ID, max(1, job.Spec.Retry.MaxAttempts), true
		a.timers.remember(id.Tenant, executorName, handler, k)
		return k, nil
	}
}

// readTimer checks all that is asked for.
func (a *api) readTimer(ctx context.Context, id auth.Identity, in *TimerRequest, find targetFunc, builtIn builtin.CheckFunc) (store.SetTimer, error) {
	tid := domain.TimerID(a.deps.NewID())
	t := store.SetTimer{Timer: domain.Timer{ID: tid, TenantID: id.Tenant, Key: in.Key, RequestedBy: id.Actor(), Trace: web.RequestOf(ctx).Trace}}
	var r reader
	r.Name("body.executor", in.Executor, domain.MaxNameLength)
	r.Name("body.handler", in.Handler, domain.MaxNameLength)
	if t.Key == "" {
		t.Key = domain.TimerKey(tid)
	} else {
		r.key("body.key", t.Key)
	}
	t.FireAt = r.fireAt(in.At, in.After, a.deps.Now())
	t.Input, t.Labels, t.Note = r.JSON("body.input", in.Input), r.labels(in.Labels), catalogue.Note(&r.Reader, in.Note)
	if utf8.RuneCountInString(in.Note) > maxNote {
		r.Fail("body.note", nil, "must have at most %d characters", maxNote)
	}
	if in.RequestID != "" {
		t.RequestID = r.Name("body.requestId", in.RequestID, domain.MaxTimerRequest)
	}
	t.Timeout = catalogue.AttemptTimeout(&r.Reader, in.Timeout)
	t.StartWithin = catalogue.StartWithin(&r.Reader, in.StartWithin, 0)
	if in.MaxAttempts < 0 || in.MaxAttempts > maxTimerAttempts {
		r.Fail("body.maxAttempts", in.MaxAttempts, "must be from 1 to %d", maxTimerAttempts)
	}
	var ok bool
	if t.Policy, ok = domain.ParseTimerPolicy(in.Policy); !ok {
		r.NoneOf("body.policy", in.Policy, []string{"keep", "replace", "reject"})
	}
	if err := r.Err(); err != nil {
		return t, err
	}
	target, err := find(in.Executor, in.Handler)
	if err != nil {
		return t, err
	}
	t.JobID = target.job
	h := target.handler
	if h == nil {
		h = &domain.Handler{Name: in.Handler}
	} else if err := catalogue.CheckInput(h, t.Input, ""); err != nil {
		return t, err
	}
	if in.Executor == domain.BuiltInExecutor {
		if err := builtIn(in.Handler, t.Input); err != nil {
			return t, err
		}
	}
	if in.MaxAttempts > 0 {
		t.MaxAttempts = catalogue.Attempts(in.MaxAttempts, target.maxAttempts, h)
	}
	return t, nil
}

const (
	maxNote          = 1024 // characters
	maxTimerAttempts = 100
)

// key checks a timer's key. One that is a step of a path would not arrive: clients
// take it out of addresses.
func (r *reader) key(location, key string) {
	_ = r.Add(domain.CheckTimerKey(location, key)) // all its errors have a field
	if key == "." || key == ".." {
		r.Fail(location, key, "must not be a dot, or two")
	}
}

// fireAt is the instant that is asked for in one of two ways.
func (r *reader) fireAt(at, after string, now time.Time) time.Time {
	switch {
	case at == "" && after == "":
		r.Fail("body.at", nil, "is missing: say when, with at or after")
	case at != "" && after != "":
		r.Fail("body.after", after, "must not be given beside at")
	case at != "":
		t := r.Instant("body.at", &at)
		if t.Before(now) {
			t = now.UTC().Truncate(time.Millisecond)
		}
		if t.Sub(now) > domain.MaxTimerDistance {
			r.Fail("body.at", at, "must be at most ten years ahead")
		}
		return t
	default:
		d := r.Duration("body.after", after, 0)
		if d < 0 || d > domain.MaxTimerDistance {
			r.Fail("body.after", after, "must be from 0s to ten years")
		}
		return now.Add(d).UTC().Truncate(time.Millisecond)
	}
	return time.Time{}
}

// labels are in the order of their text, none twice.
func (r *reader) labels(list []string) []string {
	if len(list) > domain.MaxTimerLabels {
		r.Fail("body.labels", nil, "has %d labels and may have %d", len(list), domain.MaxTimerLabels)
		return nil
	}
	for i, l := range list {
		r.label(fmt.Sprintf("body.labels[%d]", i), l)
	}
	out := slices.Clone(list)
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *reader) label(location, label string) {
	if n := utf8.RuneCountInString(label); strings.TrimSpace(label) == "" || n > domain.MaxTimerLabel || domain.HasControl(label) {
		r.Fail(location, label, "must have 1 to %d characters without control characters", domain.MaxTimerLabel)
	}
}

func (a *api) setTimer(ctx context.Context, id auth.Identity, in *setTimerInput) (*timerOutput, error) {
	ask, builtIn := a.findTarget(ctx, id), builtin.Inputs(ctx, a.deps.Store, a.deps.Handlers, id.Tenant)
	t, err := a.readTimer(ctx, id, &in.Body, func(executor, handler string) (knownTarget, error) {
		if k, ok := a.timers.known(id.Tenant, executor, handler, a.deps.Now()); ok && k.settable && id.Scope.Allows(executor, handler) {
			return k, nil
		}
		return ask(executor, handler)
	}, builtIn)
	if err != nil {
		return nil, err
	}
	result, err := a.timers.creations.Do(ctx, t)
	if err == nil && domain.Is(result.Err, domain.CodeNotFound) { // the job that was remembered is gone
		if t, err = a.readTimer(ctx, id, &in.Body, ask, builtIn); err == nil {
			result, err = a.timers.creations.Do(ctx, t)
		}
	}
	if err == nil {
		err = result.Err
	}
	if err == nil {
		err = a.fill(ctx, &result.View)
	}
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if result.Outcome == domain.TimerCreated {
		status = http.StatusCreated
	}
	out := timerOf(&result.View)
	out.Outcome = result.Outcome.String()
	return &timerOutput{Status: status, Body: out}, nil
}

// readOnce is how many timers of a batch are checked in one turn of the computations.
const readOnce = 100

func (a *api) setTimers(ctx context.Context, id auth.Identity, in *setTimersInput) (*struct{ Body TimerBatch }, error) {
	type found struct {
		target knownTarget
		err    error
	}
	targets, ask, builtIn := map[timerTarget]found{}, a.findTarget(ctx, id), builtin.Inputs(ctx, a.deps.Store, a.deps.Handlers, id.Tenant)
	find := func(executor, handler string) (knownTarget, error) {
		name := timerTarget{id.Tenant, executor, handler}
		f, known := targets[name]
		if !known {
			f.target, f.err = ask(executor, handler)
			targets[name] = f
		}
		return f.target, f.err
	}
	out := TimerBatch{Items: make([]TimerBatchItem, len(in.Body.Timers))}
	var list []store.SetTimer
	var at []int // of each in out.Items
	var failure error
	read := func(i int) {
		asked := &in.Body.Timers[i]
		out.Items[i].Key = asked.Key
		t, err := a.readTimer(ctx, id, asked, find, builtIn)
		if err != nil {
			a.refuseTimer(ctx, &out, i, err, &failure)
			return
		}
		out.Items[i].Key = t.Key
		list, at = append(list, t), append(at, i)
	}
	for from := 0; from < len(in.Body.Timers); from += readOnce {
		err := a.Compute(ctx, func() {
			for i := from; i < min(from+readOnce, len(in.Body.Timers)); i++ {
				read(i)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	for i, result := range a.timers.set(ctx, list, true) {
		if result.Err != nil {
			a.refuseTimer(ctx, &out, at[i], result.Err, &failure)
			continue
		}
		item := &out.Items[at[i]]
		item.Outcome, item.FireAt = result.Outcome.String(), web.InstantOrNull(result.View.FireAt)
		switch result.Outcome {
		case domain.TimerCreated:
			out.Created++
		case domain.TimerKept:
			out.Kept++
			item.State = timerOf(&result.View).State
		case domain.TimerReplaced:
			out.Replaced++
		}
	}
	if out.Failed == len(out.Items) {
		return nil, failure // so that it is repeated like any other request
	}
	return &struct{ Body TimerBatch }{out}, nil
}

// refuseTimer says what is wrong with one of many. failure is the first fault of
// ours, which is logged once, however many timers it has hit.
func (a *api) refuseTimer(ctx context.Context, out *TimerBatch, i int, err error, failure *error) {
	item := &out.Items[i]
	switch code := domain.CodeOf(err); code {
	case domain.CodeTimerExists, domain.CodeTimerStarted, domain.CodeQuotaExceeded:
		item.Outcome = "rejected"
		out.Rejected++
	default:
		if !web.OurFault(err) {
			item.Outcome = "invalid"
			out.Invalid++
			break
		}
		item.Outcome = "failed"
		out.Failed++
		if *failure == nil {
			*failure = a.Problem(ctx, err)
		}
		err = *failure
	}
	item.Problem = timerProblemOf(a.Problem(ctx, err))
}
