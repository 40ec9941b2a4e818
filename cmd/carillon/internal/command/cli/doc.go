// Package cli answers: what do all commands of the command line share? The
// settings and the session with a server, how objects are found by name, how
// input is read and people are asked, how answers are printed, and the exit codes.
//
// Data goes to standard output and nothing else does; talk goes to standard
// error. The exit code tells a script what happened:
//
//	0    done (with --wait: the run succeeded)
//	1    failed (with --wait: the run did not succeed)
//	2    the command line is wrong, or the server does not take a value of it
//	3    the thing does not exist
//	4    not logged in, or not allowed
//	5    conflict: somebody changed it, it is finished, it exists already
//	124  --wait-timeout passed before the run ended
//	130  interrupted
package cli
