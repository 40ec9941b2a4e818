// Package access answers: who may get in, and as whom?
//
// It has tenants, their users and memberships, invitations, API keys and the tokens by
// which processes join, the authorities that vouch for them and the denials that shut
// them out, and what a file makes of all these at the first start.
package access
