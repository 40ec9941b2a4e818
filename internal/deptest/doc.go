// Package deptest answers: who may import whom?
//
// rules.go is the table of rooms, with the reason for each
// rule; check.go compares an import graph with it; the test runs it on what
// `go list` says of the modules. Code in test files is free: tests of a
// room may plug in the real neighbour.
//
// A new room is a new line in rules.go: a package without a room fails the
// test, because nobody has said yet what it may import.
package deptest
