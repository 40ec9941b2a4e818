package jobs

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/callback"
	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
)

// writeCallback is c as the API wants it: nothing, a text, or an object.
func writeCallback(c callback.Callback) (callapi.Callback, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("the callback %w", err)
	}
	if c.IsZero() {
		return nil, nil
	}
	if c.Own() {
		return json.Marshal(c.Handler)
	}
	w := callapi.CallbackTarget{Handler: c.Handler, URL: c.URL, Headers: c.Headers}
	if c.Timeout > 0 {
		w.Timeout = c.Timeout.String()
	}
	if c.Executor != "" {
		w.Executor = &callapi.ExecutorChoice{Name: c.Executor}
	}
	if c.Connection != "" {
		w.Connection = &callapi.ConnectionChoice{Name: c.Connection}
		w.Target = &callapi.MessageTarget{
			Subject: c.Target.Subject, Exchange: c.Target.Exchange, RoutingKey: c.Target.RoutingKey, Topic: c.Target.Topic,
			PartitionKey: c.Target.PartitionKey, Stream: c.Target.Stream, MaxLength: c.Target.MaxLength, Create: c.Target.Create,
		}
	}
	return json.Marshal(w)
}

// callbackOf is a callback of a job as it stands. A kind that this package does not know is empty.
func callbackOf(raw callapi.Callback) (c callback.Callback) {
	if len(raw) == 0 || json.Unmarshal(raw, &c.Handler) == nil {
		return c
	}
	var w callapi.CallbackTarget
	if json.Unmarshal(raw, &w) != nil {
		return callback.Callback{}
	}
	c.Handler, c.URL, c.Headers = w.Handler, w.URL, w.Headers
	c.Timeout, _ = time.ParseDuration(w.Timeout) // zero where it is not said
	if w.Executor != nil {
		c.Executor = w.Executor.Name
	}
	if w.Connection != nil {
		c.Connection = w.Connection.Name
	}
	if t := w.Target; t != nil {
		c.Target = callback.Target{
			Subject: t.Subject, Exchange: t.Exchange, RoutingKey: t.RoutingKey, Topic: t.Topic,
			PartitionKey: t.PartitionKey, Stream: t.Stream, MaxLength: t.MaxLength, Create: t.Create,
		}
	}
	return c
}
