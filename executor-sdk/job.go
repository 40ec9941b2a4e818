package executor

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/callback"
	"github.com/carillon-sched/carillon/executor-sdk/internal/schema"
	"github.com/carillon-sched/carillon/proto"
)

// job is a declared job while its options are applied.
type job struct {
	name, description    string
	cron, zone           string
	dialect              CronDialect
	every, delay, jitter time.Duration
	at, startAt, endAt   time.Time
	instants             []time.Time
	windowFrom, windowTo string
	gap                  GapPolicy
	overlap              OverlapPolicy
	calendars            []string
	days                 CalendarDays
	late, window         time.Duration
	maxRuns              int
	input                any
	hasInput             bool
	retries              int
	hasRetries           bool
	retryDelay, timeout  time.Duration
	backoff              float64
	hasBackoff           bool
	maxRetryDelay        time.Duration
	dispatchTimeout      time.Duration
	onLost               LostPolicy
	labels               map[string]string
	alert                *proto.AlertDeclaration // nil: nothing is said
	hasEmails            bool
	hasWebhook           bool
	blocking             BlockingStrategy
	parallelism          int
	maxWaiting           int
	hasMaxWaiting        bool
	priority             int
	routing              RoutingStrategy
	routingKey           string
	requireLabels        string
	preferLabels         string
	maxSends             int
	hasSends             bool
	sendDelay            time.Duration
	misfire              MisfirePolicy
	owner                string
	ownedBy              Ownership
	removal              RemovalPolicy
	onSuccess, onFailure callback.Callback
	shards               *proto.Sharding
	fireTimeout          time.Duration
}

// declaration checks what can be checked here and writes the job as the wire
// has it. Cron expressions and zones are the admin's to judge: it has one
// parser for all, and answers with a notice.
func (j *job) declaration(in *schema.Type) (*proto.JobDeclaration, error) {
	if err := checkName(j.name); err != nil {
		return nil, fmt.Errorf("job name %q: %w", j.name, err)
	}
	if err := errors.Join(j.checkSchedule(), j.checkSharding(), j.checkRetry(), j.checkLabels(), j.checkAlert(), j.checkCallbacks()); err != nil {
		return nil, err
	}
	switch {
	case j.retryDelay < 0 || j.timeout < 0:
		return nil, errors.New("RetryDelay and Timeout must not be negative")
	case j.retries < 0:
		return nil, errors.New("Retries must not be negative")
	case j.parallelism < 0 || j.parallelism > math.MaxInt32:
		return nil, errors.New("Parallelism must not be negative")
	case j.parallelism > 0 && j.blocking != Parallel:
		return nil, errors.New("Parallelism needs Blocking(Parallel)")
	case j.hasMaxWaiting && (j.maxWaiting < 1 || j.maxWaiting > 100_000):
		return nil, errors.New("MaxWaiting must be from 1 to 100000")
	case j.hasSends && (j.maxSends < 1 || j.maxSends > 1000):
		return nil, errors.New("SendRetries must be from 0 to 999")
	case j.sendDelay < 0:
		return nil, errors.New("SendDelay must not be negative")
	case j.routingKey != "" && j.routing != ConsistentHash:
		return nil, errors.New("HashBy needs Routing(ConsistentHash)")
	case j.priority < -100 || j.priority > 100:
		return nil, errors.New("Priority must be from -100 to 100")
	}
	for _, d := range []time.Duration{
		j.every, j.delay, j.jitter, j.late, j.window, j.retryDelay, j.timeout, j.sendDelay, j.maxRetryDelay, j.dispatchTimeout,
	} {
		if d%time.Millisecond != 0 {
			return nil, fmt.Errorf("%s is no whole number of milliseconds", d)
		}
	}
	d := &proto.JobDeclaration{
		Name: j.name, Description: j.description,
		Cron: j.cron, Dialect: string(j.dialect), EveryMs: j.every.Milliseconds(), Zone: j.zone,
		MaxAttempts:  int32(j.retries) + 1,
		RetryDelayMs: j.retryDelay.Milliseconds(), TimeoutMs: j.timeout.Milliseconds(),
		Blocking: string(j.blocking), Routing: string(j.routing), Misfire: string(j.misfire),
		Parallelism: int32(j.parallelism), MaxWaiting: int32(j.maxWaiting), Priority: int32(j.priority),
		Ownership: string(j.ownedBy), Removal: string(j.removal),
		OwnerEmail: j.owner,
		DelayMs:    j.delay.Milliseconds(), AtMs: unixMilli(j.at), WindowFrom: j.windowFrom, WindowTo: j.windowTo,
		StartAtMs: unixMilli(j.startAt), EndAtMs: unixMilli(j.endAt), JitterMs: j.jitter.Milliseconds(),
		DstGap: string(j.gap), DstOverlap: string(j.overlap), Calendars: j.calendars, CalendarDays: string(j.days),
		MisfireThresholdMs: j.late.Milliseconds(), MisfireWindowMs: j.window.Milliseconds(), MisfireMaxRuns: int32(j.maxRuns),
		Sharding: j.shards,
		// Newer than version 1's first release:
		MaxRetryDelayMs: j.maxRetryDelay.Milliseconds(), DispatchTimeoutMs: j.dispatchTimeout.Milliseconds(),
		OnLost: string(j.onLost), Labels: j.labels, Alert: j.alert,
	}
	d.OnSuccess, d.SuccessTo = wireCallback(j.onSuccess)
	d.OnFailure, d.FailureTo = wireCallback(j.onFailure)
	if j.hasBackoff && j.backoff != 1 {
		d.RetryBackoffPermille = int32(math.Round(j.backoff * 1000))
	}
	d.RoutingKey, d.RequireLabels, d.PreferLabels = j.routingKey, j.requireLabels, j.preferLabels
	d.MaxSends, d.SendDelayMs = int32(j.maxSends), j.sendDelay.Milliseconds()
	if j.sendDelay > 0 {
		d.SendBackoffPermille = 2000
	}
	for _, at := range j.instants {
		d.InstantsMs = append(d.InstantsMs, unixMilli(at))
	}
	if !j.hasInput {
		return d, nil
	}
	input, err := proto.EncodeJSON(j.input)
	if err != nil {
		return nil, fmt.Errorf("encode Input: %w", err)
	}
	if len(input) > proto.MaxInput {
		return nil, fmt.Errorf("Input has %d bytes, the limit is %d", len(input), proto.MaxInput)
	}
	if err := in.Check(input); err != nil {
		return nil, fmt.Errorf("Input does not fit the handler: %w", err)
	}
	d.Input = input
	return d, nil
}

// checkRetry finds values out of range.
func (j *job) checkRetry() error {
	switch {
	case j.hasBackoff && !(j.backoff >= 1 && j.backoff <= 100): // also what is no number
		return fmt.Errorf("RetryBackoff(%v): must be from 1 to 100", j.backoff)
	case j.maxRetryDelay < 0 || j.maxRetryDelay > 24*time.Hour:
		return fmt.Errorf("MaxRetryDelay(%s): must be from 0s (the default) to 24h", j.maxRetryDelay)
	case j.dispatchTimeout < 0 || j.dispatchTimeout > 7*24*time.Hour:
		return fmt.Errorf("DispatchTimeout(%s): must be from 0s (the default) to 168h", j.dispatchTimeout)
	case j.onLost != "" && j.onLost != AutoLost && j.onLost != FailLost && j.onLost != RetryLost:
		return fmt.Errorf("OnLost(%q): must be auto, fail or retry", string(j.onLost))
	}
	return nil
}

// checkSchedule finds options that contradict each other.
func (j *job) checkSchedule() error {
	kinds := 0
	for _, set := range []bool{j.cron != "", j.every != 0, j.delay != 0, !j.at.IsZero(), len(j.instants) > 0} {
		if set {
			kinds++
		}
	}
	switch {
	case j.cron != "" && j.every != 0:
		return errors.New("Cron and Every exclude each other")
	case kinds > 1:
		return errors.New("Cron, Every, Delay, At and Instants exclude each other")
	case (j.windowFrom != "" || j.windowTo != "") && j.every == 0:
		return errors.New("Window needs Every: the pace inside of it")
	case j.every < 0 || j.delay < 0 || j.jitter < 0 || j.late < 0 || j.window < 0 || j.maxRuns < 0:
		return errors.New("Every, Delay, Jitter and the settings of Misfire must not be negative")
	case j.days != "" && len(j.calendars) == 0:
		return errors.New("Days needs Calendars")
	}
	return nil
}

// unixMilli is 0 for the zero time, which means none.
func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
