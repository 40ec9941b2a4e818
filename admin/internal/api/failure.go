package api

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

const failuresText = "groupBy adds the jobs, executors, labels or errors with the most failures. These are runs that failed, timed out or were lost. They count by the hour of their end, within some seconds after it."

// FailureGroup is what runs that ended badly have in common.
type FailureGroup struct {
	ID          string `json:"id,omitempty" doc:"Id of the job or executor; absent for labels and errors"`
	Name        string `json:"name" doc:"Name of the job or executor, key=value of a label, or the text of an error with marks in place of numbers, ids, quoted strings, paths and times. Empty: it is deleted, or it is one of many errors of a job"`
	Fingerprint string `json:"fingerprint,omitempty" doc:"Of an error: runs can be filtered by it. Absent for other groups, and for errors beyond the first 16 of a job in an hour, which count together"`
	Failures    int64  `json:"failures" doc:"How many runs failed, timed out or were lost"`
	Ended       int64  `json:"ended,omitempty" doc:"How many runs of the job or executor ended, those that ended well included; absent for labels and errors"`
	Jobs        int64  `json:"jobs" doc:"How many jobs the failures belong to"`
	LastRunID   string `json:"lastRunId" doc:"Id of the newest of these runs. It may be deleted"`
	LastAt      string `json:"lastAt" format:"date-time" doc:"The minute in which one ended last"`
}

func failureGroupOf(c *store.FailureCount) FailureGroup {
	out := FailureGroup{Name: c.Name, Failures: c.Runs, Ended: c.Ended, Jobs: c.Jobs, LastRunID: c.LastRun.String(), LastAt: web.Instant(c.LastAt)}
	if c.ID != 0 {
		out.ID = domain.JobID(c.ID).String()
	}
	if c.Error != 0 {
		out.Fingerprint = c.Error.String()
	}
	return out
}

func (ss *statistics) failures(ctx context.Context, id auth.Identity, in *statisticsInput) ([]FailureGroup, error) {
	span, err := in.params(ss.now())
	if err != nil {
		return nil, err
	}
	list, err := ss.store.ListFailures(ctx, store.ListFailuresParams{
		Tenant: id.Tenant, Within: id.Reach, By: store.FailureGroup(in.GroupBy), From: span.From, To: span.To, Limit: in.Top,
	})
	return domain.Collect(list, failureGroupOf), err
}
