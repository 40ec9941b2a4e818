// Package session answers one question: how do bytes reach the admin nodes?
//
// A Fleet holds one session to every admin node: it starts from the addresses
// in the configuration, follows the node list that the nodes push, and comes
// back after a failure with a pause that grows and is random in full.
//
// One session is a Link: a TCP connection (TLS if configured), the preface and
// the hello with the join token, and only then yamux, with exactly two
// streams. Heartbeats and registration go over the control stream; offers,
// answers and results over the command stream, many in one frame. Logs have a
// connection of their own (DialLogs), so that they never delay a heartbeat.
//
// Fates, as the traps of yamux demand:
//
//   - Every write has a deadline, at the stream and below it at the
//     connection; any error of a write, a read or a frame ends the session,
//     nothing is repeated on it.
//   - A write that succeeded means nothing: only acknowledgements count, and
//     they are the runner's business.
//   - A peer that is connected but silent is noticed by TCP (15 s) and
//     by the heartbeat (3 unanswered), each for its own layer.
//   - A peer that does not read lets the outbox grow to its bound; then the
//     session ends.
//
// Package runner judges what is said; this package only carries it.
package session
