// Package client is who asks the admin's HTTP API for the command line: it adds
// credentials to the requests of internal/apiclient, renews them, keeps the
// cookies of a session, and shows requests as curl commands.
//
// The package reads no environment and no files: who asks is an Authorizer's
// business.
package client
