// Package login keeps credentials between commands: it answers "as whom do I
// ask this server?".
//
// One file in the user's configuration folder holds contexts: servers with a name
// each, and a session or where an API key is. It is readable by the user only
// (0600). The password is never stored: a
// session is an access token of some minutes and the refresh cookie that gives
// the next one. The server ends the whole session when a cookie is used twice,
// so commands that run side by side take turns renewing (lock file).
package login
