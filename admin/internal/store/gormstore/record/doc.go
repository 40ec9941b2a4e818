// Package record answers: which rows do several packages of the store know?
//
// It has the rows of tables that the engine moves and the console shows, with
// their mapping to package domain, the lists of executions, the documents in
// their columns (specs of jobs, calendars) with the cache of revisions, and the
// counts that quotas bound. A row that only one package knows stands there.
package record
