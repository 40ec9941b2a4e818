// Package tenant answers: who belongs to a tenant, and how much may it have?
// Tenants, users, invitations and API keys; limits, quotas and retention.
package tenant
