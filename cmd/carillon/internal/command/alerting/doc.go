// Package alerting answers: who is told of what, by which means, and what became of
// it? Channels, rules, silences, incidents and deliveries.
package alerting
