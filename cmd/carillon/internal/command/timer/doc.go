// Package timer answers: which single runs are set for an instant?
package timer
