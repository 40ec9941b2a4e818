// Package forecast answers: how often will the jobs of a tenant fire, and which of them?
//
// It reads pages of jobs, counts a page and keeps names only. Jobs with the same schedule are
// counted once. Schedules by job and revision, and their fires by hour, stay in a cache that is
// bounded in bytes. A revision names the versions of its calendars, so that an edit of a
// calendar is a new revision.
//
// Fires are those of the schedules of enabled jobs, less those that calendars exclude. Jitter,
// maintenance and pauses that are still to come do not count.
package forecast
