// Package api answers: what do you ask?
//
// It speaks HTTP: gin routes, huma describes each operation, checks what comes
// in against that description and writes the OpenAPI document. The rest of
// the package maps between API structs and nouns of package domain, and asks
// the store.
//
// Promises:
//   - A route has a policy or it does not compile (register), and the policy
//     is checked before the body is read. The tenant comes from the identity,
//     never from the request: an object of another tenant is "not found".
//   - Every error is application/problem+json with a stable code and the
//     request id; all wrong fields are listed at once. What is not the user's
//     fault is logged and called "internal".
//   - Requests are bounded: 1 MiB of body, 5 s to send it, pages of at most
//     200 items, waits of at most 5 minutes.
//   - What is read is compressed, and not sent again to who has it (ADR 0055).
//   - Ids are strings, instants RFC 3339 UTC with milliseconds, durations
//     strings such as "1m30s".
//
// The http.Server that serves it should set ReadHeaderTimeout to 5 s, leave
// WriteTimeout at 0 (runs and logs are waited for), and bound its headers to
// 32 KiB: see ServerTimeouts.
package api
