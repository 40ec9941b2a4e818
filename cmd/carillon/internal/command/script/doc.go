// Package script answers: what do scripts say, and which may run?
package script
