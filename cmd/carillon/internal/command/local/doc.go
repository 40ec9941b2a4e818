// Package local answers: what does this binary know by itself? Cron expressions,
// registration code, licences, and its version.
package local
