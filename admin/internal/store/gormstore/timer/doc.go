// Package timer answers: how do applications set, find and cancel their timers?
//
// A pending timer is a row of its own, until a claim of the engine makes a run of it.
// All that is asked of a timer looks at both, in that order, by its key.
package timer
