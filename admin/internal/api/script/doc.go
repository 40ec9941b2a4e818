// Package script answers: what do agents run, and may they?
//
// Jobs name scripts: Choose finds these, and refuses what the tenant's policy does
// not allow.
package script
