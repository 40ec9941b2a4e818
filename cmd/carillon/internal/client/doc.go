// Package client speaks the admin's HTTP API: it answers "how do I ask the
// server, and what did it say?".
//
// It is small on purpose: one method per question the command line has, typed
// where a command looks into the answer. Every answer also keeps the server's
// own bytes (Doc), so that `-o json` shows exactly what the API said, fields
// unknown to this version included.
//
// Errors of the server are *Problem; errors on the way are *TransportError.
// The package reads no environment and no files: who asks is an Authorizer's
// business.
package client
