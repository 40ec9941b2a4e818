// Package command is the command line of people and scripts that use a
// Carillon server: log in, look at jobs and runs, start and stop them, and,
// without a server, generate registration code and judge cron expressions.
//
// Data goes to standard output and nothing else does; talk goes to standard
// error. The exit code tells a script what happened:
//
//	0    done (with --wait: the run succeeded)
//	1    failed (with --wait: the run did not succeed)
//	2    the command line is wrong
//	3    the thing does not exist
//	4    not logged in, or not allowed
//	5    conflict: somebody changed it, it is finished, it exists already
//	124  --wait-timeout passed before the run ended
//	130  interrupted
//
// Commands that run a server live beside this package, in cmd/carillon.
package command
