// Package mail answers: how is an alert sent as a mail?
//
// One connection per mail: alerts are rare, and a kept one is mostly stale
// when it is needed. The whole exchange ends after Timeout, whatever the
// server does, and at most 64 KiB of its answers are read.
//
// A mail has a plain and an HTML part in the server's alert language. Its
// Message-ID is derived from the dedupe key, so that mail programs show a
// mail that had to be sent twice once.
package mail
