package executor

import (
	"fmt"

	"github.com/carillon-sched/carillon/executor-sdk/callback"
	"github.com/carillon-sched/carillon/proto"
)

// OnSuccess says what follows the job's run, or a call of the handler, when it succeeded. A text is
// a handler of this executor (HandleEnd). Other places are made by package callback:
//
//	executor.OnSuccess("day-closed")
//	executor.OnSuccess(callback.HandlerOf("billing", "booked"))
func OnSuccess[C string | callback.Callback](to C) JobOption {
	return jobOption(func(j *job) { j.onSuccess = callbackOf(to) })
}

// OnFailure is OnSuccess for a run, or a call, that finally failed. Its last attempt failed or timed
// out, or it was lost, or it never found an instance.
func OnFailure[C string | callback.Callback](to C) JobOption {
	return jobOption(func(j *job) { j.onFailure = callbackOf(to) })
}

func callbackOf[C string | callback.Callback](to C) callback.Callback {
	switch to := any(to).(type) {
	case callback.Callback:
		return to
	case string:
		return callback.Handler(to)
	}
	return callback.Callback{}
}

func (j *job) checkCallbacks() error {
	for _, c := range [...]struct {
		option string
		to     callback.Callback
	}{{"OnSuccess", j.onSuccess}, {"OnFailure", j.onFailure}} {
		if err := c.to.Check(); err != nil {
			return fmt.Errorf("%s: the callback %w", c.option, err)
		}
	}
	return nil
}

// These texts are on_success beside success_to. An admin that is older than success_to has no
// handler of the first name, and refuses the job. In Handler.calls it refuses the length.
const (
	needsNewer     = "a callback to another executor, an address or a connection, which needs a newer Carillon server"
	needsNewerCall = needsNewer + ": the calls of the handler are not taken with it either"
)

// wireCallback is c as a declaration has it: a handler, or something else.
func wireCallback(c callback.Callback) (own string, to *proto.Callback) {
	if c.Own() {
		return c.Handler, nil
	}
	to = &proto.Callback{
		Handler: c.Handler, Executor: c.Executor, Url: c.URL, TimeoutMs: c.Timeout.Milliseconds(), Headers: c.Headers, Connection: c.Connection,
	}
	if t := c.Target; t != (callback.Target{}) {
		to.Target = &proto.MessageTarget{
			Subject: t.Subject, Exchange: t.Exchange, RoutingKey: t.RoutingKey, Topic: t.Topic, PartitionKey: t.PartitionKey,
			Stream: t.Stream, MaxLength: t.MaxLength, Create: t.Create,
		}
	}
	return needsNewer, to
}
