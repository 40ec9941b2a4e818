// Package pending answers: what is due now, and when is the next look worth
// while?
//
// Queue is the question, Wheel the answer that the scheduler's timer uses: a
// hierarchical time wheel. It was measured against a 4-ary heap and the
// runtime's own timers (package admin/bench/contender keeps both; ADR 0011 and
// `make bench ARGS="--scenario timers"` have the numbers).
//
// Nothing here reads a clock, starts a goroutine or locks: whoever holds one does,
// and Look is the loop in which he asks.
package pending

// Queue holds values until their instants. Instants are Unix nanoseconds. It
// is for one goroutine at a time.
type Queue[T any] interface {
	// Add takes a value to come out at an instant, which may have passed.
	Add(at int64, value T) Handle
	// Cancel takes a value back; false: it has come out already. The value is
	// let go at once.
	Cancel(h Handle) bool
	// PopDue appends the values whose instant is not after now to out, never
	// one before its instant: in the order of their milliseconds, but those
	// first that were added when their instant had passed. now may step back
	// between calls.
	PopDue(now int64, out []T) []T
	// Next returns an instant before which nothing comes due; it may be before
	// the first value's, when PopDue has something to sort by then. ok is
	// false when the queue is empty.
	Next() (at int64, ok bool)
	// Len is the number of values held.
	Len() int
}

// Handle names an added value, for Cancel. The zero Handle names none.
type Handle uint64
