// Package job answers: what is defined, and who changes it? Jobs from files, their
// schedules, backfills, and what applications propose.
package job
