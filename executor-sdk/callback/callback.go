// Package callback names what follows a run of a job: a handler of the job's own executor or of
// another one, an address, or a message. Options of handlers (executor.OnSuccess,
// executor.OnFailure) and specs of package jobs take it.
//
//	executor.OnSuccess(callback.HandlerOf("billing", "booked"))
//	executor.OnFailure(callback.URL("https://api.example.com/failed").Within(3 * time.Second))
//	jobs.Spec{OnSuccess: callback.Message("orders", callback.Target{Topic: "ended"})}
//
// The receiver gets the end of the run as JSON, with the fields of executor.Ended. A URL has to
// meet the tenant's policy. In jobs that code declares, everything but a handler of the job's own
// executor needs a permission of that executor (docs/guide/callbacks.md).
package callback

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// Callback is what follows a run. Its zero value is nothing.
type Callback struct {
	// Handler is a handler of Executor, by name; an empty Executor is the job's own.
	Handler, Executor string
	// URL is an http or https address that the admin nodes post to. It may hold templates such as
	// {{input.runId}} from its path on.
	URL string
	// Timeout bounds one call to URL, in milliseconds; 0 = 30 s, or less if the tenant's policy
	// says so.
	Timeout time.Duration
	// Headers are added to calls to URL. Readers of the run see them.
	Headers map[string]string
	// Connection publishes the message, by name.
	Connection string
	Target     Target
}

// Target says where on its broker a message belongs. Each broker has fields of its own.
type Target struct {
	Subject              string // NATS
	Exchange, RoutingKey string // RabbitMQ; no exchange: the queue that the key names
	Topic, PartitionKey  string // Kafka
	// Stream is of Redis. Of NATS it may name the stream that has the subject.
	Stream string
	// MaxLength trims a stream of Redis to about so many entries; 0 = not.
	MaxLength int64
	// Create makes a missing stream of Redis.
	Create bool
}

// Handler is a handler of the job's own executor (executor.HandleEnd).
func Handler(name string) Callback { return Callback{Handler: name} }

// HandlerOf is a handler of another executor of the tenant.
func HandlerOf(executor, name string) Callback { return Callback{Handler: name, Executor: executor} }

// URL is an address that the end of the run is posted to.
func URL(address string) Callback { return Callback{URL: address} }

// Message publishes the end of the run by a connection of the tenant.
func Message(connection string, to Target) Callback {
	return Callback{Connection: connection, Target: to}
}

// Within returns c with a timeout for each call of its URL.
func (c Callback) Within(timeout time.Duration) Callback {
	c.Timeout = timeout
	return c
}

// Header returns c with one more header for calls of its URL.
func (c Callback) Header(name, value string) Callback {
	headers := maps.Clone(c.Headers)
	if headers == nil {
		headers = map[string]string{}
	}
	headers[name] = value
	c.Headers = headers
	return c
}

// IsZero reports whether nothing follows.
func (c Callback) IsZero() bool {
	return c.Handler == "" && c.Executor == "" && c.URL == "" && c.Timeout == 0 && len(c.Headers) == 0 && c.Connection == "" && c.Target == Target{}
}

// Own reports whether c is nothing but a handler of the job's own executor, or nothing at all.
func (c Callback) Own() bool {
	c.Handler = ""
	return c.IsZero()
}

// Check finds fields that contradict each other. The admin judges all else.
func (c Callback) Check() error {
	kinds := 0
	for _, set := range []bool{c.Handler != "", c.URL != "", c.Connection != ""} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return errors.New("has more than one of Handler, URL and Connection: use one")
	case kinds == 0 && !c.IsZero():
		return errors.New("needs a Handler, a URL or a Connection")
	case c.Executor != "" && c.Handler == "":
		return fmt.Errorf("has the Executor %q without a Handler: leave it out", c.Executor)
	case c.URL == "" && (c.Timeout != 0 || len(c.Headers) > 0):
		return errors.New("has a Timeout or Headers without a URL: leave them out")
	case c.Connection == "" && c.Target != Target{}:
		return errors.New("has a Target without a Connection: leave it out")
	case c.Timeout < 0 || c.Timeout%time.Millisecond != 0:
		return fmt.Errorf("has the Timeout %s: use a whole number of milliseconds, from 1ms; 0 is the default", c.Timeout)
	}
	return nil
}

// String names the kind and the place, without what may hold a secret.
func (c Callback) String() string {
	switch {
	case c.URL != "":
		return "an address"
	case c.Connection != "":
		return fmt.Sprintf("a message by the connection %q", c.Connection)
	case c.Executor != "":
		return fmt.Sprintf("the handler %q of the executor %q", c.Handler, c.Executor)
	}
	return fmt.Sprintf("the handler %q", c.Handler)
}
