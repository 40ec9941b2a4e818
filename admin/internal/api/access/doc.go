// Package access answers: who may act in a tenant?
//
// People by their accounts, which a tenant makes or invites, programs by API keys, and processes
// of an executor by join tokens, unless they are denied. How somebody logs in is package auth's.
package access
