// Package builtin answers: what may the built-in executor do for a tenant?
//
// Its handler http calls back the hosts that the tenant's policy allows. Add-ons bring further
// handlers. Inputs judges what they are given.
package builtin
