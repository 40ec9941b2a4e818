// Package web answers: how is a request answered, whatever it is about?
//
// It speaks HTTP: gin routes, huma describes each operation, checks what comes
// in against that description and writes the OpenAPI document. It knows no noun;
// package api, and those beside this one, register the operations of all of them here.
//
// Promises:
//   - A route has a policy or it does not compile (Register), and the policy
//     is checked before the body is read. Nobody else gets at the router, and
//     policies are made here only: the zero value panics at construction.
//   - Every error is application/problem+json with a stable code and the
//     request id; all wrong fields are listed at once. What is not the user's
//     fault is logged and called "internal".
//   - Requests are bounded: 1 MiB of body, 5 s to send it, pages of at most
//     200 items, waits of at most 5 minutes.
//   - What is read is compressed, and not sent again to who has it (ADR 0055).
//
// The http.Server that serves it should set ReadHeaderTimeout to 5 s, leave
// WriteTimeout at 0 (runs and logs are waited for), and bound its headers to
// 32 KiB: see ServerTimeouts.
package web
