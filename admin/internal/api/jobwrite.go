package api

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/calendar"
	"github.com/carillon-sched/carillon/admin/internal/api/callback"
	"github.com/carillon-sched/carillon/admin/internal/api/catalogue"
	"github.com/carillon-sched/carillon/admin/internal/api/script"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

// JobWrite is a job as it is created or replaced. What is left out gets its
// default. Read-only parts of nested objects are accepted and ignored.
type JobWrite struct {
	Name   string            `json:"name" minLength:"1" maxLength:"128" doc:"Its name, unique in the tenant; not one that begins with call:, callback: or timer:, as those of the server's own jobs do"`
	Labels map[string]string `json:"labels,omitempty" maxProperties:"32" doc:"What it is grouped and found by; keys have 1 to 63 bytes without colon, equals sign, space or control character, values at most 128 bytes"`
	JobSettings
}

// JobSettings are what is written of a job beside its name and its labels. They are the spec of
// a job as a document.
type JobSettings struct {
	Description     string                  `json:"description,omitempty" maxLength:"4096" doc:"What it is for, for people"`
	Executor        callback.ExecutorChoice `json:"executor" doc:"The executor whose instances run it"`
	Handler         string                  `json:"handler" minLength:"1" maxLength:"128" doc:"Name of the handler that it runs"`
	Input           json.RawMessage         `json:"input,omitempty" doc:"Any JSON up to 256 KiB"`
	Script          *script.ScriptChoice    `json:"script,omitempty" doc:"What an agent is to run; for handlers script.LANGUAGE, which need it"`
	Schedule        ScheduleWrite           `json:"schedule" doc:"When it fires"`
	Misfire         *MisfireWrite           `json:"misfire,omitempty" doc:"What becomes of fire times that nobody could serve in time; default: they are skipped"`
	Routing         string                  `json:"routing,omitempty" enum:"round_robin,random,consistent_hash,least_loaded,least_frequently_used,least_recently_used,first,last,failover,busy_over" doc:"Default round_robin"`
	RoutingKey      string                  `json:"routingKey,omitempty" maxLength:"256" doc:"With consistent_hash: where the key stands in the input, as a JSON pointer such as /customer/id; empty or nothing there: the job is the key"`
	RequireLabels   string                  `json:"requireLabels,omitempty" maxLength:"1024" doc:"What the labels of an instance have to meet, for example: zone=eu, tier in (gold, silver), env!=prod, gpu, !spot"`
	PreferLabels    string                  `json:"preferLabels,omitempty" maxLength:"1024" doc:"What they should meet: others are used when none of those has room"`
	Blocking        string                  `json:"blocking,omitempty" enum:"serial,discard_later,cover_early,parallel" doc:"When an earlier run is not over: wait in order (the default of recurring schedules), drop the new one, stop the earlier one and take its place, or run beside it (the default without a schedule and of a single instant)"`
	Parallelism     int                     `json:"parallelism,omitempty" minimum:"0" doc:"Runs at once with blocking parallel; default 0: no limit"`
	MaxWaiting      int                     `json:"maxWaiting,omitempty" minimum:"0" maximum:"100000" doc:"How many runs may wait for earlier ones of the job; a fire that finds so many is discarded (queue_full). Runs that somebody asks for wait in any number. Default 1000, also for 0"`
	Retry           *RetryWrite             `json:"retry,omitempty" doc:"When an attempt fails; default: no further attempt"`
	SendRetry       *SendRetryWrite         `json:"sendRetry,omitempty" doc:"Sends that lead to nothing (refused, not answered, connection broken); they cost no attempt"`
	Timeout         string                  `json:"timeout,omitempty" doc:"Of one attempt; default 0s: none"`
	DispatchTimeout string                  `json:"dispatchTimeout,omitempty" doc:"Default 5m"`
	OnLost          string                  `json:"onLost,omitempty" enum:"auto,fail,retry" doc:"Default auto"`
	Priority        int                     `json:"priority,omitempty" minimum:"-100" maximum:"100" doc:"Default 0; among the tenant's waiting runs each point counts as one second of waiting"`
	OnSuccess       *callback.Callback      `json:"onSuccess,omitempty" doc:"What follows a run that succeeded; default: nothing"`
	OnFailure       *callback.Callback      `json:"onFailure,omitempty" doc:"What follows a run that failed for good; default: nothing"`
	LogLevel        string                  `json:"logLevel,omitempty" enum:"default,DEBUG,INFO,WARN,ERROR" doc:"Lowest level that is captured into the logs of runs; default: as the executor says"`
	Owner           *OwnerWrite             `json:"owner,omitempty" doc:"Whom alerts go to; default: nobody"`
	Alert           *AlertWrite             `json:"alert,omitempty" doc:"When and where alerts go; default: of failures, and of runs that no executor took"`
	Sharding        *Sharding               `json:"sharding,omitempty" doc:"Cut each fire into shards; default: each fire is one run"`
	State           string                  `json:"state,omitempty" enum:"enabled,paused" doc:"Only when creating, default enabled; later by pause and resume"`
}

// RetryWrite has defaults: one attempt, 10s, factor 1, at most 10m or the delay.
type RetryWrite struct {
	MaxAttempts int      `json:"maxAttempts,omitempty" minimum:"1" maximum:"100" doc:"How often it is tried, the first one included; default 1"`
	Delay       string   `json:"delay,omitempty" doc:"Wait before the second attempt; default 10s"`
	Backoff     *float64 `json:"backoff,omitempty" minimum:"1" maximum:"100" doc:"Multiplies the wait after each attempt; default 1"`
	MaxDelay    string   `json:"maxDelay,omitempty" doc:"Longest wait that backoff leads to; default 10m, or delay where that is longer"`
}

// SendRetryWrite has defaults: as many sends as the dispatch timeout allows, at
// the pace that the answers suggest.
type SendRetryWrite struct {
	MaxSends int      `json:"maxSends,omitempty" minimum:"0" maximum:"1000" doc:"Default 0: as many as the dispatch timeout allows"`
	Delay    string   `json:"delay,omitempty" doc:"Default 0s: as the instance's answer suggests"`
	Backoff  *float64 `json:"backoff,omitempty" minimum:"1" maximum:"100" doc:"Default 1"`
	MaxDelay string   `json:"maxDelay,omitempty" doc:"Default 1m"`
}

// OwnerWrite is who gets told.
type OwnerWrite struct {
	Name  string `json:"name,omitempty" maxLength:"128" doc:"Name of a person or a team"`
	Email string `json:"email,omitempty" maxLength:"254" doc:"Address that alerts go to"`
}

// AlertWrite has defaults: on failure and without executor, to the owner only.
type AlertWrite struct {
	OnFailure         *bool    `json:"onFailure,omitempty" doc:"Tell when a run failed for good, timed out, was lost, or never started; default false"`
	Emails            []string `json:"emails,omitempty" maxItems:"20" doc:"Addresses beside the owner's"`
	WebhookURL        string   `json:"webhookUrl,omitempty" maxLength:"2048" doc:"Address to post alerts to, http or https; default: none"`
	WebhookSecret     string   `json:"webhookSecret,omitempty" writeOnly:"true" maxLength:"1024" doc:"Signs the webhook's body; empty keeps the stored one"`
	WebhookSecretSet  bool     `json:"webhookSecretSet,omitempty" readOnly:"true" doc:"Written by the server; taken back so that what was read can be written"`
	IncludeNoExecutor *bool    `json:"includeNoExecutor,omitempty" doc:"Tell also when a run is due and no instance is online; default false"`
}

// spec reads a job's settings; what is wrong is collected in r. The name and the
// webhook's secret are left to the caller.
func (w *JobWrite) spec(r *reader, now time.Time) domain.JobSpec {
	s := domain.JobSpec{
		Name: strings.TrimSpace(w.Name), Description: strings.TrimSpace(w.Description),
		Labels:  w.Labels,
		Handler: r.Name("body.handler", w.Handler, domain.MaxNameLength), Input: r.JSON("body.input", w.Input),
		Schedule:        w.Schedule.read(r, "body.schedule", now),
		Misfire:         w.Misfire.read(r),
		Routing:         cmp.Or(domain.Routing(w.Routing), domain.RouteRoundRobin),
		Parallelism:     w.Parallelism,
		MaxWaiting:      w.MaxWaiting,
		Retry:           w.Retry.read(r),
		RoutingKey:      w.RoutingKey,
		Require:         r.Selector("body.requireLabels", w.RequireLabels),
		Prefer:          r.Selector("body.preferLabels", w.PreferLabels),
		SendRetry:       w.SendRetry.read(r),
		Timeout:         r.Duration("body.timeout", w.Timeout, 0),
		DispatchTimeout: r.Duration("body.dispatchTimeout", w.DispatchTimeout, domain.DefaultDispatchTimeout),
		OnLost:          cmp.Or(domain.OnLost(w.OnLost), domain.OnLostAuto), Priority: w.Priority,
		Alert:    w.Alert.read(),
		Sharding: w.Sharding.read(r),
	}
	if w.Owner != nil {
		s.Owner = domain.Owner{Name: strings.TrimSpace(w.Owner.Name), Email: strings.TrimSpace(w.Owner.Email)}
		if domain.HasControl(s.Owner.Name) {
			r.Fail("body.owner.name", nil, "must not contain control characters or line breaks")
		}
	}
	_ = r.Add(domain.CheckLabelsAndAlert(&s)) // which has no other errors than of fields
	s.Blocking = cmp.Or(domain.Blocking(w.Blocking), domain.DefaultBlocking(s.Schedule.Kind))
	if w.LogLevel != defaultLevel {
		s.LogLevel = w.LogLevel
	}
	return s
}

func (w *RetryWrite) read(r *reader) domain.Retry {
	out := domain.DefaultRetry
	if w == nil {
		return out
	}
	if w.MaxAttempts > 0 {
		out.MaxAttempts = w.MaxAttempts
	}
	if w.Backoff != nil {
		out.Backoff = *w.Backoff
	}
	out.Delay = r.Duration("body.retry.delay", w.Delay, out.Delay)
	out.MaxDelay = r.Duration("body.retry.maxDelay", w.MaxDelay, out.Bound().MaxDelay)
	return out
}

func (w *SendRetryWrite) read(r *reader) domain.SendRetry {
	if w == nil {
		return domain.SendRetry{}
	}
	out := domain.SendRetry{MaxSends: w.MaxSends, Delay: r.Duration("body.sendRetry.delay", w.Delay, 0)}
	if w.Backoff != nil {
		out.Backoff = *w.Backoff
	}
	out.MaxDelay = r.Duration("body.sendRetry.maxDelay", w.MaxDelay, domain.DefaultMaxSendDelay)
	if out == (domain.SendRetry{Backoff: 1, MaxDelay: domain.DefaultMaxSendDelay}) {
		return domain.SendRetry{} // what is read back unchanged
	}
	return out
}

// reader reads also what nouns are made of.
type reader struct{ web.Reader }

func (w *AlertWrite) read() domain.Alert {
	out := domain.DefaultAlert
	if w == nil {
		return out
	}
	if w.OnFailure != nil {
		out.OnFailure = *w.OnFailure
	}
	if w.IncludeNoExecutor != nil {
		out.IncludeNoExecutor = *w.IncludeNoExecutor
	}
	for _, e := range w.Emails {
		if e = strings.TrimSpace(e); e != "" {
			out.Emails = append(out.Emails, e)
		}
	}
	out.WebhookURL = strings.TrimSpace(w.WebhookURL)
	return out
}

// readJob checks everything about a job that was sent, and tells all that is
// wrong with it at once. old is the job that it replaces, empty for a new one.
func (js *jobs) readJob(ctx context.Context, id auth.Identity, w *JobWrite, old domain.Job, allow catalogue.Lenient) (domain.JobSpec, domain.Executor, error) {
	var r reader
	executor, missing := callback.ChooseExecutor(ctx, js.store, id.Tenant, id.Reach, "body.executor", w.Executor)
	if err := r.Add(missing); err != nil {
		return domain.JobSpec{}, executor, err
	}
	known := len(r.Fields)
	spec := w.spec(&r, js.now())
	// A job of the server's own may be edited under the name that it has.
	if old.Kind == domain.JobPlain || spec.Name != old.Spec.Name {
		if wrong := domain.WrongJobName(spec.Name); wrong != "" {
			r.Fail("body.name", nil, "%s", wrong)
		}
	}
	if err := script.Choose(ctx, js.store, id.Tenant, &r.Reader, w.Script, &spec); err != nil {
		return spec, executor, err
	}
	if executor.ID != 0 { // callbacks may name its handlers
		if err := js.chooseCallbacks(ctx, id, &r, w, &old, executor, &spec, allow); err != nil {
			return spec, executor, err
		}
	}
	if len(r.Fields) == known {
		// The rules of domain speak of values that could be read.
		if err := r.Add(domain.CheckSpec(&spec)); err != nil {
			return spec, executor, err
		}
	}
	var err error
	if spec.Schedule.Calendars, err = calendar.Choose(ctx, js.store, id.Tenant, &r.Reader, "body.schedule", w.Schedule.Calendars); err != nil {
		return spec, executor, err
	}
	compile(&r, "body.schedule", &spec.Schedule, "")
	if missing != nil && len(r.Fields) == known { // its code says more
		return spec, executor, missing
	}
	if err := r.Err(); err != nil {
		return spec, executor, err
	}
	if err = catalogue.CheckHandler(ctx, js.store, id.Tenant, executor, &spec, allow); err == nil && executor.BuiltIn {
		if err = checkFollowers(&spec); err == nil {
			err = builtin.Inputs(ctx, js.store, js.handlers, id.Tenant)(spec.Handler, spec.Input)
		}
	}
	if err == nil && !allow.Handler {
		err = js.checkHooks(ctx, id.Tenant, executor, &spec)
	}
	return spec, executor, err
}

// chooseCallbacks reads the callbacks of a job and collects mistakes of their fields in r.
func (js *jobs) chooseCallbacks(ctx context.Context, id auth.Identity, r *reader, w *JobWrite, old *domain.Job, own domain.Executor, spec *domain.JobSpec, allow catalogue.Lenient) error {
	c := callback.Chooser{Store: js.store, Handlers: js.handlers, ID: id, Own: own, Allow: allow}
	for _, one := range []struct {
		at  string
		in  *callback.Callback
		was domain.FollowUp
		to  *domain.FollowUp
	}{{"body.onSuccess", w.OnSuccess, old.Spec.OnSuccess, &spec.OnSuccess}, {"body.onFailure", w.OnFailure, old.Spec.OnFailure, &spec.OnFailure}} {
		if one.in == nil {
			continue
		}
		f, err := c.Choose(ctx, one.at, &one.in.CallbackTarget, one.was)
		if err == nil && f.Any() && old.Kind == domain.JobCallback {
			err = domain.Invalid(one.at, "no callback follows a callback: leave it out")
		}
		if err := r.Add(err); err != nil {
			return err
		}
		*one.to = f
	}
	return nil
}

// sealWebhook seals a new signing key; without one the old one is kept, as
// long as there is a webhook at all.
func (js *jobs) sealWebhook(tenant domain.TenantID, job domain.JobID, w *JobWrite, old []byte) ([]byte, error) {
	if w.Alert == nil || w.Alert.WebhookURL == "" {
		return nil, nil
	}
	if w.Alert.WebhookSecret == "" {
		return old, nil
	}
	return js.secrets.Seal(tenant, secret.PurposeJobWebhook, int64(job), []byte(w.Alert.WebhookSecret))
}
