// Package route answers: what is told, to whom, and what became of it?
//
// Channels say by which means, rules and silences when, incidents what was told as
// one thing, and deliveries whom it has reached.
package route
