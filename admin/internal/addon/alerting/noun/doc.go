// Package noun answers: what are the nouns of alerting?
//
// It has incidents, rules, silences, settings, channels and deliveries, with their bounds and
// decisions. The core writes events (domain.AlertEvent) and knows none of these.
package noun
