// Package httpcall answers: how is an address called that a user has written?
//
// Agents, the admin nodes' callbacks and the webhooks of alerts share it. What a
// call may reach is checked twice: its host against patterns before anything is
// sent, and the network that the name leads to when it is dialled, so that no
// name can be bound to another address in between. No proxy of the environment is
// used and no redirect is followed. A call ends with its timeout, and of an answer
// no more is read than is kept.
package httpcall
