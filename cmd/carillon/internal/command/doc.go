// Package command is the command line of people and scripts that use a
// Carillon server: log in, look at jobs and runs, start and stop them, and,
// without a server, generate registration code and judge cron expressions.
//
// It puts the commands together. They are in the packages below, one for each
// noun; package cli has what they share, and the exit codes.
//
// Commands that run a server live beside this package, in cmd/carillon.
package command
