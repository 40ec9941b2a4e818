// Package ical answers: which days and windows does an iCalendar file name?
//
// It reads the part of RFC 5545 that holiday calendars are made of: VEVENT with
// DTSTART, DTEND or DURATION, SUMMARY and STATUS, days and instants, in UTC, in
// an IANA zone (TZID) or floating. It is strict: what it does not understand
// (a recurrence rule, an unknown zone) is an error with its line, because a
// holiday that is silently left out is a job that runs on a holiday.
//
// It is our own reader because the libraries for it give a tree of properties;
// their meaning, which is most of this package, would still be ours, and one of
// them brings an engine for recurrence that is not used here.
package ical
