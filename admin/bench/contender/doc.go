// Package contender answers: what else could the scheduler's timer have been?
//
// It holds the structures that package pending's wheel was measured against: a
// 4-ary heap, and the runtime's own timers. Nothing but the bench's scenario
// timers and the wheel's tests uses them.
package contender
