// Package verify answers: did every fire time come to exactly one run, on time
// and by the rules?
//
// It is a judge from outside. It believes neither the scheduler nor the
// scheduler's tables: it expands the schedules a second time (package expand),
// and compares what should have happened with what handlers themselves wrote
// down (the witnesses) and with the execution rows.
//
//	history files ─▶ Reader ─▶ History ─┐
//	                                    ├─▶ Check ─▶ Report ─▶ text, JSON, HTML
//	database ──────▶ package source ────┘
//
// docs/guide/verify.md describes the format of the files for those who write them.
// Nothing here reads a clock or a database; all of it is a function of the
// history.
package verify
