// Package webhook answers: how is an alert posted to a user's address?
//
// How the address is reached, and where it may not lead, is package post's.
// The receiver need not trust the address of the sender either: a body is
// signed with the job's or the channel's secret. docs/guide/alerts.md shows how
// to verify it.
package webhook
