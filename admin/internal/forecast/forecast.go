package forecast

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

const (
	pageSize = 1000 // jobs
	// maxSteps bounds the fires and hours that one answer computes. A step takes about 0.5 µs.
	maxSteps = 4_000_000
	// shownFires is how many fire times of a job are listed.
	shownFires = 10
)

// Params say which fires are counted: From ≤ fire < To.
type Params struct {
	// Jobs are the filters, tenant and reach of the jobs. Order, state and page do not count.
	Jobs     store.ListJobsParams
	From, To time.Time
	// Bucket is the time of which the fires are counted together, from From on. The last one ends
	// at To.
	Bucket time.Duration
	// Listed is how many jobs are listed at most.
	Listed int
}

// Forecast is how often jobs fire.
type Forecast struct {
	Buckets []Bucket
	Fires   int64
	// Jobs fire at least once. Unpredicted have a fixed delay, or a schedule that cannot be read.
	Jobs, Unpredicted int
	// Listed are the jobs that fire first, in the order of their first fires.
	Listed []JobFires
}

// Bucket counts the fires of a time, and the jobs that fire in it.
type Bucket struct {
	At    time.Time
	Fires int64
	Jobs  int
}

// JobFires is a job with its number of fires and the first of them, at most shownFires.
type JobFires struct {
	store.ScheduledJob
	Fires int64
	First []time.Time
}

func (a *JobFires) compare(b *JobFires) int {
	return cmp.Or(a.First[0].Compare(b.First[0]), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Job, b.Job))
}

// Forecaster counts fires. It is safe for concurrent use.
type Forecaster struct {
	source store.Schedules
	cache  *cache
	steps  int // of an answer at most
}

// New returns a Forecaster with an empty cache.
func New(source store.Schedules) *Forecaster { return &Forecaster{source, newCache(), maxSteps} }

// Count counts fires. CodeInvalid: the answer needs more steps than maxSteps.
func (f *Forecaster) Count(ctx context.Context, p Params) (*Forecast, error) {
	c := counting{Params: p, cache: f.cache, steps: f.steps, out: &Forecast{}}
	for at := p.From; at.Before(p.To); at = at.Add(p.Bucket) {
		c.out.Buckets = append(c.out.Buckets, Bucket{At: at})
	}
	c.fires = make([]int64, len(c.out.Buckets))
	return c.out, f.pages(ctx, p.Jobs, c.group)
}

// group is the jobs of a page with the same schedule.
type group struct {
	digest digest
	plan   *plan
	jobs   []store.ScheduledJob
}

// pages tells count of all groups of jobs.
func (f *Forecaster) pages(ctx context.Context, p store.ListJobsParams, count func(g *group) error) error {
	p.Limit = pageSize
	for after := domain.JobID(0); ; {
		jobs, err := f.source.ListScheduled(ctx, p, after)
		if err != nil || len(jobs) == 0 {
			return err
		}
		groups, err := f.grouped(ctx, p.Tenant, jobs)
		if err != nil {
			return err
		}
		for _, g := range groups {
			if err := count(g); err != nil {
				return err
			}
		}
		if len(jobs) < pageSize {
			return ctx.Err()
		}
		after = jobs[len(jobs)-1].Job
	}
}

// counting is one answer while it is made.
type counting struct {
	Params
	cache *cache
	steps int // that are left
	fires []int64
	out   *Forecast
}

func (c *counting) group(g *group) error {
	if g.plan.schedule == nil {
		c.out.Unpredicted += len(g.jobs)
		return nil
	}
	if !c.count(g) {
		return domain.Invalid("query.to", "the jobs fire too often at uneven times for one answer: ask for a shorter time, or give a filter")
	}
	total := int64(0)
	for i, n := range c.fires {
		if n > 0 {
			total += n
			c.out.Buckets[i].Fires += n * int64(len(g.jobs))
			c.out.Buckets[i].Jobs += len(g.jobs)
		}
	}
	if total > 0 {
		c.out.Jobs += len(g.jobs)
		c.out.Fires += total * int64(len(g.jobs))
		c.list(g, total)
	}
	return nil
}

// count fills fires. It returns false if there are not enough steps.
func (c *counting) count(g *group) (ok bool) {
	whole := c.Bucket%time.Hour == 0 && c.From.Equal(c.From.Truncate(time.Hour))
	hours := hoursOf{counting: c, group: g}
	for i := range c.fires {
		from := c.out.Buckets[i].At
		to := from.Add(c.Bucket)
		if to.After(c.To) {
			to, whole = c.To, false
		}
		if whole {
			c.fires[i], ok = hours.count(from.Unix()/3600, to.Unix()/3600)
		} else {
			c.fires[i], ok = g.plan.schedule.CountRuns(from, to, &c.steps)
		}
		if !ok {
			return false
		}
	}
	return true
}

// hoursOf reads fires by hour, week by week.
type hoursOf struct {
	*counting
	*group
	number int64
	week   *week // with the number; nil: none was read
}

// count counts the fires of whole hours, since 1970.
func (h *hoursOf) count(from, to int64) (fires int64, ok bool) {
	for ; from < to; from++ {
		if number := from / weekHours; h.week == nil || number != h.number {
			if h.week, ok = h.cache.week(h.Jobs.Tenant, h.group, number, &h.steps); !ok {
				return 0, false
			}
			h.number = number
		}
		fires += int64(h.week[from%weekHours])
	}
	return fires, true
}

// list adds the jobs of a group to those that fire first.
func (c *counting) list(g *group, fires int64) {
	first := make([]time.Time, 0, min(fires, shownFires))
	for after := c.From.Add(-1); len(first) < cap(first); after = first[len(first)-1] {
		at, ok := g.plan.schedule.NextRun(after)
		if !ok {
			return
		}
		first = append(first, at.UTC())
		if n := len(c.out.Listed); len(first) == 1 && n == c.Listed && (n == 0 || at.After(c.out.Listed[n-1].First[0])) {
			return // all that are listed fire earlier
		}
	}
	for _, j := range g.jobs {
		one := JobFires{j, fires, first}
		at, _ := slices.BinarySearchFunc(c.out.Listed, one, func(a, b JobFires) int { return a.compare(&b) })
		if at == c.Listed {
			continue
		}
		if len(c.out.Listed) == c.Listed {
			c.out.Listed = c.out.Listed[:c.Listed-1]
		}
		c.out.Listed = slices.Insert(c.out.Listed, at, one)
	}
}

// Clash is how many jobs fire in the second of a fire time, and in its minute.
type Clash struct{ Second, Minute int }

// Clashes counts the jobs that fire together with each of some fire times. One job is left out.
func (f *Forecaster) Clashes(ctx context.Context, jobs store.ListJobsParams, fires []time.Time, but domain.JobID) ([]Clash, error) {
	out := make([]Clash, len(fires))
	err := f.pages(ctx, jobs, func(g *group) error {
		n := len(g.jobs)
		if slices.ContainsFunc(g.jobs, func(j store.ScheduledJob) bool { return j.Job == but }) {
			n--
		}
		for i, at := range fires {
			if g.plan.fires(at, time.Minute) {
				out[i].Minute += n
				if g.plan.fires(at, time.Second) {
					out[i].Second += n
				}
			}
		}
		return nil
	})
	return out, err
}
