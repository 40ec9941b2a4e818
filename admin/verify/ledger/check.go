// Package ledger answers: does the database account for every fire time?
//
// It is the checker for production, where handlers write no witnesses: it
// compares the fire times that the jobs' revisions and state changes promise,
// expanded by package expand, with the rows that are there, and judges each
// row by itself. It reads twice, each time along an index and without keeping
// what it has read: the occurrences job by job, then the executions by id.
package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/verify"
)

// Options say what is judged.
type Options struct {
	// Since is how far back fire times are judged.
	Since time.Duration
	// Recent is how long before the present judging ends, so that what is on
	// its way is left alone; 0 = 1 min.
	Recent time.Duration
}

// jobsPerPage bounds what one round of the first pass holds: revisions, events
// and the fire times of one job at a time.
const jobsPerPage = 200

// maxUnplanned bounds what the second pass has to look at again.
const maxUnplanned = 100_000

// Check judges the fire times from Since ago to Recent ago.
func Check(ctx context.Context, from store.Ledger, o Options) (*verify.Report, error) {
	if o.Recent == 0 {
		o.Recent = time.Minute
	}
	a := &account{report: verify.NewReport(), jobs: map[domain.JobID]*jobLine{}, families: map[domain.ExecutionID]*family{}, unplanned: map[domain.ExecutionID]store.Occurrence{}}
	err := from.ReadLedger(ctx, func(r store.LedgerReader) error {
		a.now = r.Now()
		// Rows have whole milliseconds.
		a.from, a.to = a.now.Add(-o.Since).Truncate(time.Millisecond), a.now.Add(-o.Recent).Truncate(time.Millisecond)
		if err := a.readJobs(ctx, r); err != nil {
			return err
		}
		return a.readExecutions(ctx, r)
	})
	if err != nil {
		return nil, err
	}
	for id, o := range a.unplanned { // their rows were not found again
		a.phantom(o.JobID, id, o.FireAt)
	}
	a.judgeFamilies()
	a.sum()
	return a.report, nil
}

// account holds what is needed of all jobs at once: some bytes for each.
type account struct {
	report        *verify.Report
	now, from, to time.Time
	jobs          map[domain.JobID]*jobLine
	late, waited  lateness
	// uncertain counts jobs that were there before their events were kept.
	uncertain int
	// deleted counts jobs of which runs were deleted before their age.
	deleted int
	// forgotten counts jobs without their old revisions.
	forgotten int
	// imported counts runs that are not judged, because they were imported.
	imported int
	families map[domain.ExecutionID]*family
	// unplanned are rows of times at which the schedule does not fire, until the second
	// pass has seen them.
	unplanned map[domain.ExecutionID]store.Occurrence
}

// jobLine is what the second pass needs to know of a job.
type jobLine struct {
	jitter int64 // milliseconds
	// threshold is how late a fire time still counts as in time, in
	// milliseconds; 0 = not known.
	threshold int64
	single    bool
	from      int64        // runs of earlier fire times, Unix ms, may have been deleted; 0: none
	life      *verify.Life // only of jobs that were paused or deleted
	// granted and finished bound the last attempt of the run before, in Unix
	// ms; finished is 0 until it has ended.
	granted, finished int64
}

// readJobs is the first pass: are all fire times there, each once?
func (a *account) readJobs(ctx context.Context, r store.LedgerReader) error {
	var after domain.JobID
	for {
		page, err := r.Jobs(ctx, after, jobsPerPage)
		if err != nil || len(page) == 0 {
			return err
		}
		p := &pager{a: a, page: page}
		ids := make([]domain.JobID, len(page))
		for i := range page {
			ids[i] = page[i].ID
		}
		if err := r.Occurrences(ctx, ids, a.from, a.to, p.next); err != nil {
			return err
		}
		p.finish()
		after = page[len(page)-1].ID
	}
}

// pager goes through the occurrences of a page of jobs, which come in the
// order of the jobs.
type pager struct {
	a       *account
	page    []store.LedgerJob
	current *jobCheck // the job at page[0], once it was begun
}

// next takes one occurrence.
func (p *pager) next(o store.Occurrence) error {
	for p.page[0].ID != o.JobID {
		p.closeJob()
	}
	p.job().take(o)
	return nil
}

func (p *pager) job() *jobCheck {
	if p.current == nil {
		p.current = p.a.begin(&p.page[0])
	}
	return p.current
}

// closeJob ends the first job of what is left.
func (p *pager) closeJob() {
	p.job().finish()
	p.page, p.current = p.page[1:], nil
}

func (p *pager) finish() {
	for len(p.page) > 0 {
		p.closeJob()
	}
}

// jobCheck compares one job's targets with its occurrences, both in order.
type jobCheck struct {
	a       *account
	j       *store.LedgerJob
	targets []verify.Target // those that have not been passed
	from    time.Time       // runs of earlier fire times may have been deleted
	free    bool            // its fire times are not known in advance
	last    int64           // fire time of the last scheduled occurrence
}

// begin expands a job's targets up to where its trigger has been planned.
func (a *account) begin(j *store.LedgerJob) *jobCheck {
	a.report.Jobs++
	if forgetGaps(j) && j.RunsFrom.After(a.from) {
		a.forgotten++
	}
	c := &jobCheck{a: a, j: j, last: -1, from: a.from}
	if j.RunsFrom.After(a.from) {
		c.from = j.RunsFrom
		a.deleted++
	}
	calls := callsOf(j)
	if len(calls) == 0 {
		c.free = true
		a.uncertain++
		return c
	}
	life := verify.NewLife(j.ID.String(), calls)
	line := &jobLine{jitter: int64(life.Jitter() / 1000), threshold: int64(life.Threshold() / 1000), single: life.Single(), from: j.RunsFrom.UnixMilli()}
	if life.Stops() {
		line.life = life
	}
	a.jobs[j.ID] = line
	if life.Delayed() {
		c.free = true
		return c
	}
	if why := life.Unreadable(); why != "" {
		a.report.Need("readable schedule of job "+j.ID.String()+" ("+why+")", 1, 0)
		c.free = true
		return c
	}
	if j.Events[0].At.After(a.from) && j.Revisions[0].CreatedAt.Before(j.Events[0].At.Add(-time.Second)) {
		a.uncertain++
	}
	c.targets = life.Targets(verify.At(c.from), verify.At(a.to))
	c.overdue()
	return c
}

// overdue cuts off the targets that nobody has planned yet. That the trigger
// has not moved on is one finding, not one for each fire time.
func (c *jobCheck) overdue() {
	next := verify.At(c.j.NextFireAt)
	for i, t := range c.targets {
		if t.Fire < next {
			continue
		}
		if t.Must {
			c.a.find(verify.Unfinished, c.j.ID, 0, c.j.NextFireAt.UnixMilli(),
				"the trigger is overdue since %s: %d fire times wait to be planned", c.j.NextFireAt.Format(time.RFC3339), len(c.targets)-i)
		}
		c.targets = c.targets[:i]
		return
	}
}

// take compares one occurrence with the next targets.
func (c *jobCheck) take(o store.Occurrence) {
	c.a.report.Rows++
	if o.Part {
		return // it is judged with its family
	}
	if !o.Scheduled {
		c.a.report.Asked++
		return
	}
	fire := verify.Time(o.FireAt * 1000)
	if o.FireAt < c.from.UnixMilli() {
		return // one of those that were left
	}
	if o.FireAt == c.last {
		c.a.find(verify.Double, c.j.ID, o.ID, o.FireAt, "a second row of this fire time")
		return
	}
	c.last = o.FireAt
	if c.free {
		c.a.report.Expected++
		c.a.report.Accounted++
		return
	}
	c.pass(fire)
	if len(c.targets) == 0 || c.targets[0].Fire != fire {
		if len(c.a.unplanned) < maxUnplanned {
			c.a.unplanned[o.ID] = o
		} else {
			c.a.phantom(o.JobID, o.ID, o.FireAt)
		}
		return
	}
	if c.targets[0].Must {
		c.a.report.Expected++
		c.a.report.Accounted++
	} else {
		c.a.report.Possible++
	}
	c.targets = c.targets[1:]
}

// pass leaves the targets before a fire time behind: they have no row.
func (c *jobCheck) pass(fire verify.Time) {
	for len(c.targets) > 0 && c.targets[0].Fire < fire {
		t := c.targets[0]
		c.targets = c.targets[1:]
		if !t.Must {
			c.a.report.Possible++
			continue
		}
		c.a.report.Expected++
		c.a.find(verify.Missed, c.j.ID, 0, int64(t.Fire/1000), "no row of this fire time")
	}
}

func (c *jobCheck) finish() { c.pass(verify.At(c.a.to) + 1) }

func (a *account) phantom(job domain.JobID, run domain.ExecutionID, ms int64) {
	a.find(verify.Phantom, job, run, ms, "a row of a time at which the schedule does not fire")
}

// find adds a violation; ms is Unix.
func (a *account) find(kind verify.Kind, job domain.JobID, run domain.ExecutionID, ms int64, format string, args ...any) {
	f := verify.Finding{Kind: kind, Job: job.String(), At: time.UnixMilli(ms).UTC(), Detail: fmt.Sprintf(format, args...)}
	if run != 0 {
		f.Key = run.String()
	}
	a.report.Find(f)
}
