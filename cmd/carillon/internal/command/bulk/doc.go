// Package bulk answers: how does a person do one thing with many jobs or runs?
//
// Commands of jobs and runs get selectors (selector.go, extend.go), and with one of them they
// ask for a bulk operation, wait for it and print what has failed (operation.go). The command
// carillon bulk shows operations and ends them (command.go).
package bulk
