// Package alertsql answers: what does alerting read and write?
//
// Alerts has the rules, silences, channels and settings that people edit, the look at
// conditions that no event tells of, and the way of an event: grouped into an incident,
// told to its receivers, one delivery each. What is decided on that way is package
// alerting's; here its rows are locked, loaded and saved.
package alertsql
