// Package timer answers: which handlers run once, at which instant, for a program
// that asked for it?
package timer
