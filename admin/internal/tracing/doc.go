// Package tracing answers: what did a run go through, for those who follow it
// across systems?
//
// It writes OpenTelemetry spans about a run, as whoever asked for it, the admin
// nodes and the executor saw it:
//
//	(request of the caller)
//	└─ trigger            planned by a schedule, or asked for; its context is
//	   │                  stored with the run (domain.Trace)
//	   └─ attempt         one per attempt; its span id is computed from the run's
//	      ├─ offer        context and the fence, so that every node and the
//	      ├─ grant        executor name the same one (domain.Trace.Attempt)
//	      ├─ handler      written by the executor, with what the handler adds
//	      ├─ result
//	      └─ alert
//
// What lies more than FarApart apart is not one trace but two that link to each
// other: a run that was asked for ahead of its time, an alert that waited.
//
// The standard OTEL_* variables configure it, and without them it is off: New
// returns nil, all methods of a nil Tracer do nothing, and a run carries the
// context that its caller gave, if any. Whether a trace is recorded is decided
// once, at its beginning; runs that are not recorded cost a look at a string.
package tracing
