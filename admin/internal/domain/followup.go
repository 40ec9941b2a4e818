package domain

import (
	"encoding/json"
	"strings"
)

// FollowUp is the callback of a job: the handler that runs after a run of the job has ended. Its
// zero value is none.
type FollowUp struct {
	Handler string
	// Executor has the handler; 0: the job's own executor.
	Executor ExecutorID
	// Request is the input of a handler of the built-in executor, as JSON. Its templates read the
	// end of the run. Empty: the end of the run is the input.
	Request string
	// Connection is the document that a request sends by; 0: none. The request has no name of it.
	Connection int64
}

// Any reports whether there is a callback.
func (f FollowUp) Any() bool { return f.Handler != "" }

// Own is the handler of a callback within the job's own executor; empty: it is another one.
func (f FollowUp) Own() string {
	if f.Executor != 0 {
		return ""
	}
	return f.Handler
}

// Target is the object outside the job that a callback needs; 0: none.
func (f FollowUp) Target() int64 {
	if f.Connection != 0 {
		return f.Connection
	}
	return int64(f.Executor)
}

// Input is the request of a callback with the end of a run. connection is the name of its
// connection; empty: it has none.
func (f FollowUp) Input(connection string, ended []byte) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(f.Request), &fields); err != nil {
		return nil, Errorf(CodeConflict, "read the request of the callback: %w", err)
	}
	fields["input"] = ended
	if connection != "" {
		name, err := json.Marshal(connection)
		if err != nil {
			return nil, Errorf(CodeConflict, "write the request of the callback: %w", err)
		}
		fields["connection"] = name
	}
	return json.Marshal(fields)
}

// MaxFollowUpRequest bounds a callback's request in bytes. Request and end of the run together
// are the input of one run.
const MaxFollowUpRequest = 8 << 10

func (c *checker) followUp(at string, f FollowUp) {
	c.check(len(f.Handler) <= MaxNameLength, at, f.Handler, "must have at most 128 bytes")
	c.check(len(f.Request) <= MaxFollowUpRequest, at, nil, "must have at most 8192 bytes with all its headers")
}

// FollowsNothing reports whether a job of this name is one of callbacks. No callback follows a
// callback, because it could follow itself without end.
func FollowsNothing(jobName string) bool { return strings.HasPrefix(jobName, JobCallback.NamePrefix()) }
