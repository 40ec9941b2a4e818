// Package access answers: who may act in a tenant?
//
// People by their accounts, which a tenant makes or invites, and programs by API
// keys. How somebody logs in is package auth's.
package access
