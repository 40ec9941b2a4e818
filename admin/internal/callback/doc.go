// Package callback answers: how does an admin node call an address for a tenant, or
// publish a message, without an agent or an application?
//
// Each tenant that may has a built-in executor, and each node is an instance of it
// (docs/adr/0070): an executor of the SDK in this process, whose connection to the
// gateway is memory. Offers, grants, results, cancels, timeouts, retries, logs and
// what becomes of a run when the node dies are therefore those of every executor.
//
// What is special about calling others' addresses is here: policies, and limits by
// tenant and receiver, which is a host and port, or a connection to a broker. A
// receiver that does not answer holds no more than its own slots; runs beyond that
// are put off, which costs them no attempt.
package callback
