// Package catalogue answers: may this handler be asked for this?
//
// Jobs, runs, calls and timers name handlers: what is known of one, whether an input
// fits it, and what a request may say of its run, is decided here for all of them.
package catalogue
