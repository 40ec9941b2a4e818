// Package expand answers, a second time: when does a schedule fire?
//
// It exists to disagree with package schedule, and therefore shares nothing
// with it: no code, no tables, no way of thinking. Package schedule finds the
// next fire by jumping over fields; this one asks every second of the day
// whether it matches, keeps the answer as one bit per second, and lays the
// bits over the days that match and over the stretches of time in which the
// zone's clock runs straight. It finds clock changes by looking at the clock
// every quarter of an hour. What has to be equal is the meaning, which stands
// in package schedule's documentation.
//
// The engine never calls it; the checker (package verify) and the tests do.
package expand
