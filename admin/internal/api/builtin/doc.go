// Package builtin answers: what may the built-in executor do for a tenant?
//
// Its handlers publish messages through the tenant's connections, and call back the
// hosts that the tenant's policy allows. Inputs judges what they are given.
package builtin
