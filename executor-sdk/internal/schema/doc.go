// Package schema answers one question: what does a Go type look like as JSON?
//
// It reads a type once, when its handler is registered, into a plan, and
// serves three needs from that plan: the JSON Schema (2020-12) of an input,
// the one of an output, and a strict decoder for inputs.
//
// The two schemas of one type differ where encoding/json is asymmetric: a
// time.Duration may come in as "1h30m" and goes out as nanoseconds. What
// encoding/json makes of a value always fits the input's: a nil slice is null.
//
// Struct tags, besides json:
//
//	doc:"…"           description of the field
//	required:"true"   the input must name the field
//	enum:"a,b,c"      the only values allowed; on a slice, of its items; a field
//	                  that is not required may also have its zero value
//
// The decoder is stricter than encoding/json, because a job's input is typed
// in by people: unknown, repeated and missing fields, wrong types, values
// outside an enum and null for a field that cannot be null are errors, and
// each error says where.
package schema
