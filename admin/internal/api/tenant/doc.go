// Package tenant answers: which tenants are there, how much may each have, and where
// does it live?
//
// Its operations are for administrators of the platform, but for the quotas that a
// tenant sees of itself.
package tenant
