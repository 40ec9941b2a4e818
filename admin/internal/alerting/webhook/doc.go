// Package webhook answers: how is an alert posted to a user's address?
//
// The address is the user's, so it is not trusted: the connection is checked
// after the name is resolved (no rebinding), may not lead to loopback,
// private, link-local or metadata networks unless the operator allows them,
// takes no proxy from the environment and follows no redirect. One exchange
// ends after Timeout, and at most 64 KiB of the answer are read.
//
// The receiver need not trust the address of the sender either: a body is
// signed with the job's secret. docs/guide/alerts.md shows how to verify it.
package webhook
