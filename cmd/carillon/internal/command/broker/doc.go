// Package broker answers: to which message brokers may jobs publish, and does a
// message arrive?
package broker
