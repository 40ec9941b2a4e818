package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/schema"
	"github.com/carillon-sched/carillon/proto"
)

// job is a declared job while its options are applied.
type job struct {
	name, description    string
	cron, zone           string
	dialect              CronDialect
	every                time.Duration
	input                any
	hasInput             bool
	retries              int
	retryDelay, timeout  time.Duration
	blocking             BlockingStrategy
	parallelism          int
	priority             int
	routing              RoutingStrategy
	misfire              MisfirePolicy
	owner                string
	onSuccess, onFailure string
}

// declaration checks what can be checked here and writes the job as the wire
// has it. Cron expressions and zones are the admin's to judge: it has one
// parser for all, and answers with a notice.
func (j *job) declaration(in *schema.Type) (*proto.JobDeclaration, error) {
	if err := checkName(j.name); err != nil {
		return nil, fmt.Errorf("job name %q: %w", j.name, err)
	}
	switch {
	case j.cron != "" && j.every != 0:
		return nil, errors.New("Cron and Every exclude each other")
	case j.every < 0 || j.retryDelay < 0 || j.timeout < 0:
		return nil, errors.New("Every, RetryDelay and Timeout must not be negative")
	case j.retries < 0:
		return nil, errors.New("Retries must not be negative")
	case j.parallelism < 0 || j.parallelism > math.MaxInt32:
		return nil, errors.New("Parallelism must not be negative")
	case j.parallelism > 0 && j.blocking != Parallel:
		return nil, errors.New("Parallelism needs Blocking(Parallel)")
	case j.priority < -100 || j.priority > 100:
		return nil, errors.New("Priority must be from -100 to 100")
	}
	for _, d := range []time.Duration{j.every, j.retryDelay, j.timeout} {
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
		Parallelism: int32(j.parallelism), Priority: int32(j.priority),
		OwnerEmail: j.owner, OnSuccess: j.onSuccess, OnFailure: j.onFailure,
	}
	if !j.hasInput {
		return d, nil
	}
	input, err := json.Marshal(j.input)
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
