// Package auth answers: who are you, and what may you do?
//
// A Service turns credentials into an Identity: a user name and password into
// a session (a short access token and a rotating refresh token), an access
// token or an API key into the identity behind it, and an executor's join
// token into its tenant and executor. What an identity may do is a set of bits
// that comes from its role in the tenant.
//
// Promises:
//   - Access tokens are signed with Ed25519 and live for AccessTTL. Each node
//     signs with a key of its own, whose public half it publishes in the
//     store; every node accepts the tokens of every other. No other algorithm
//     is accepted, and a token names its key but never brings one.
//   - A change of password, a disabled account or a removed membership ends
//     all access within stateTTL on every node, and at once on the node where
//     it was made.
//   - Nothing that opens a door is stored: passwords as argon2id, all tokens
//     and keys (256 random bits) as SHA-256.
//   - An unknown user, a wrong password and a disabled account get the same
//     answer after the same work.
//   - Guessing is bounded per account and address together, and only failures
//     count (see failures): nobody is refused because of what others do. The work
//     that anybody can ask for is served in turn by address (see gate).
//
// The package speaks jwt; no jwt type crosses its wall.
package auth
