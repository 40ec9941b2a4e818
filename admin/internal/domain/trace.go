package domain

import (
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
)

// Trace is a W3C trace context (traceparent, version 00): where in which trace
// something belongs. Empty = in none. What is not empty is valid.
type Trace string

// Layout of a traceparent: version-trace-span-flags, in hex.
const (
	traceSize    = 55
	traceIDFrom  = 3
	traceIDTo    = traceIDFrom + 32
	spanIDFrom   = traceIDTo + 1
	spanIDTo     = spanIDFrom + 16
	flagsFrom    = spanIDTo + 1
	flagSampled  = 1
	noTraceID    = "00000000000000000000000000000000"
	noSpanID     = "0000000000000000"
	traceVersion = "00"
)

// ParseTrace reads a traceparent; anything that is none is no trace. A later
// version is read as far as this one knows it, as its specification demands.
func ParseTrace(s string) Trace {
	if len(s) > traceSize && s[:2] != traceVersion && s[traceSize] == '-' {
		s = s[:traceSize]
	}
	if len(s) != traceSize || s[2] != '-' || s[traceIDTo] != '-' || s[spanIDTo] != '-' || s[:2] == "ff" {
		return ""
	}
	for i := range len(s) {
		dash := i == 2 || i == traceIDTo || i == spanIDTo
		if c := s[i]; !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	if s[traceIDFrom:traceIDTo] == noTraceID || s[spanIDFrom:spanIDTo] == noSpanID {
		return ""
	}
	return Trace(traceVersion + s[2:])
}

// NewTrace builds a trace context; zero ids make none.
func NewTrace(trace [16]byte, span [8]byte, sampled bool) Trace {
	flags := "-00"
	if sampled {
		flags = "-01"
	}
	return ParseTrace(traceVersion + "-" + hex.EncodeToString(trace[:]) + "-" + hex.EncodeToString(span[:]) + flags)
}

// ID returns the trace's id, 32 hex digits, or "".
func (t Trace) ID() string {
	if t == "" {
		return ""
	}
	return string(t[traceIDFrom:traceIDTo])
}

// Sampled reports whether somebody records the trace.
func (t Trace) Sampled() bool {
	if t == "" {
		return false
	}
	flags, err := hex.DecodeString(string(t[flagsFrom:]))
	return err == nil && flags[0]&flagSampled != 0
}

// IDs returns both ids as bytes, zero for no trace.
func (t Trace) IDs() (trace [16]byte, span [8]byte) {
	if t != "" {
		_, _ = hex.Decode(trace[:], []byte(t[traceIDFrom:traceIDTo])) // ParseTrace has looked
		_, _ = hex.Decode(span[:], []byte(t[spanIDFrom:spanIDTo]))
	}
	return trace, span
}

// UnrecordedTrace tells whoever gets it that the run is not recorded.
func UnrecordedTrace(id ExecutionID) Trace {
	var trace [16]byte
	var span [8]byte
	binary.BigEndian.PutUint64(span[:], uint64(id)|1)
	copy(trace[8:], span[:])
	binary.BigEndian.PutUint64(trace[:8], 0xca21110) // ids of traces have two halves that are not zero
	return NewTrace(trace, span, false)
}

// Attempt is the place of an attempt below a run's trace. It is computed, so
// that the node that offers, the executor and the node that takes the result
// name the same span, and nothing has to be stored for it.
func (t Trace) Attempt(fence int64) Trace { return t.below(fence) }

// PartTrace is the place of a run below which its attempts are: its own trace,
// or for a part of a family, which has its parent's, a computed place below it.
func PartTrace(e *Execution) Trace {
	if !e.IsPart() {
		return e.Trace
	}
	return e.Trace.below(int64(e.ID)) // ids are larger than any fence
}

// AttemptTrace is the place of a run's current attempt.
func AttemptTrace(e *Execution) Trace { return PartTrace(e).Attempt(e.Fence) }

func (t Trace) below(number int64) Trace {
	if t == "" {
		return ""
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(t[:flagsFrom])) // never fails
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], uint64(number))
	_, _ = sum.Write(raw[:])
	var span [8]byte
	binary.BigEndian.PutUint64(span[:], sum.Sum64()|1) // never zero
	trace, _ := t.IDs()
	return NewTrace(trace, span, t.Sampled())
}
