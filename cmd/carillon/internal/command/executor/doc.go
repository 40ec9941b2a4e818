// Package executor answers: which processes run work, and which may register?
// Executors, their instances, join tokens and denials.
package executor
