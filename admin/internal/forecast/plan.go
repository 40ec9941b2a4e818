package forecast

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/bytecache"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/schedule"
)

// readOnce is how many schedules are read at once.
const readOnce = 200

// digest names a schedule by its contents.
type digest [16]byte

// digestOf leaves out jitter, which moves runs and no fire times.
func digestOf(s domain.ScheduleSpec) digest {
	s.JitterMax = 0
	text, _ := json.Marshal(s) // it has numbers, texts and times
	sum := sha256.Sum256(text)
	return digest(sum[:])
}

// plan is a schedule that answers.
type plan struct {
	spec domain.ScheduleSpec // without contents of calendars
	// schedule is nil if its fires are not known ahead.
	schedule *schedule.Schedule
}

// fires tells whether the plan fires in the same second or minute.
func (p *plan) fires(at time.Time, unit time.Duration) bool {
	if p.schedule == nil {
		return false
	}
	begin := at.Truncate(unit)
	next, ok := p.schedule.NextRun(begin.Add(-1))
	return ok && next.Before(begin.Add(unit))
}

// grouped finds the schedules of jobs, in the order of the jobs.
func (f *Forecaster) grouped(ctx context.Context, tenant domain.TenantID, jobs []store.ScheduledJob) ([]*group, error) {
	digests := make(map[store.JobRevision]digest, len(jobs))
	plans := map[digest]*plan{}
	var missing []store.JobRevision
	for _, j := range jobs {
		d, p, ok := f.cache.plan(tenant, j.JobRevision)
		if !ok {
			missing = append(missing, j.JobRevision)
			continue
		}
		digests[j.JobRevision], plans[d] = d, p
	}
	for len(missing) > 0 {
		n := min(len(missing), readOnce)
		found, err := f.source.FindSchedules(ctx, tenant, missing[:n])
		if err != nil {
			return nil, err
		}
		rest := missing[n:]
		for _, r := range missing[:n] {
			spec, ok := found[r]
			if !ok {
				if len(found) > 0 { // the answer was full, or the revision is gone
					rest = append(rest[:len(rest):len(rest)], r)
				}
				continue
			}
			d := digestOf(spec)
			if plans[d] == nil {
				plans[d] = &plan{spec: spec}
			}
			digests[r] = d
			f.cache.keep(tenant, r, d, plans[d])
		}
		missing = rest
	}
	var out []*group
	byDigest := map[digest]*group{}
	for _, j := range jobs {
		d, ok := digests[j.JobRevision]
		if !ok {
			continue // deleted meanwhile
		}
		if byDigest[d] == nil {
			p, err := f.compiled(ctx, tenant, plans[d])
			if err != nil {
				return nil, err
			}
			byDigest[d] = &group{digest: d, plan: p}
			out = append(out, byDigest[d])
		}
		byDigest[d].jobs = append(byDigest[d].jobs, j)
	}
	return out, nil
}

// compiled is a plan that answers. Plans with calendars are compiled each time, so that the cache
// does not hold versions of calendars.
func (f *Forecaster) compiled(ctx context.Context, tenant domain.TenantID, p *plan) (*plan, error) {
	if p.schedule != nil || p.spec.Kind == domain.ScheduleFixedDelay {
		return p, nil
	}
	spec := p.spec
	spec.Calendars = append([]domain.CalendarUse(nil), spec.Calendars...)
	for _, u := range timing.Uncompiled(&spec) {
		if err := f.source.FillCalendar(ctx, tenant, u); err != nil {
			return nil, err
		}
	}
	s, err := timing.Compile(&spec, "")
	if err != nil {
		return p, nil // it was checked when it was saved: a calendar may be gone
	}
	return &plan{p.spec, s}, nil
}

// Bounds of the cache. A value takes its size and overhead bytes.
const (
	cacheValues = 400_000
	cacheBytes  = 32 << 20
	overhead    = 250
	planSize    = 1 << 10
	weekHours   = 7 * 24
)

// cache keeps digests by revision, plans by digest, and fires by digest and week.
type cache struct {
	values *bytecache.Cache[cacheKey, any]
}

// cacheKey has the tenant, and a revision, a digest, or a digest with a week.
type cacheKey struct {
	tenant domain.TenantID
	store.JobRevision
	digest
	week int64 // since 1970, from 1
}

// week is the fires of each hour.
type week [weekHours]uint16

func newCache() *cache {
	return &cache{bytecache.New[cacheKey, any](cacheValues, cacheBytes)}
}

func (c *cache) plan(tenant domain.TenantID, r store.JobRevision) (digest, *plan, bool) {
	v, _ := c.values.Get(cacheKey{tenant: tenant, JobRevision: r})
	d, ok := v.(digest)
	if !ok {
		return digest{}, nil, false
	}
	v, _ = c.values.Get(cacheKey{tenant: tenant, digest: d})
	p, ok := v.(*plan)
	return d, p, ok
}

// keep keeps a plan. Without calendars it is compiled.
func (c *cache) keep(tenant domain.TenantID, r store.JobRevision, d digest, p *plan) {
	c.values.Add(cacheKey{tenant: tenant, JobRevision: r}, d, tenant, overhead)
	if _, ok := c.values.Get(cacheKey{tenant: tenant, digest: d}); ok {
		return
	}
	if len(p.spec.Calendars) == 0 && p.spec.Kind != domain.ScheduleFixedDelay {
		p.schedule, _ = timing.Compile(&p.spec, "") // nil: its fires are not known
	}
	c.values.Add(cacheKey{tenant: tenant, digest: d}, p, tenant, overhead+planSize+32*int64(len(p.spec.Instants)))
}

// week returns the fires of a group in a week. It returns false if there are not enough steps.
func (c *cache) week(tenant domain.TenantID, g *group, number int64, steps *int) (*week, bool) {
	key := cacheKey{tenant: tenant, digest: g.digest, week: number + 1}
	if v, ok := c.values.Get(key); ok {
		return v.(*week), true
	}
	w := &week{}
	begin := time.Unix(number*weekHours*3600, 0)
	for next := begin; ; {
		at, ok := g.plan.schedule.NextRun(next.Add(-1))
		if !ok {
			break
		}
		h := int(at.Sub(begin) / time.Hour)
		if h < 0 || h >= weekHours {
			break // it does not fire any more in this week
		}
		hour := begin.Add(time.Duration(h) * time.Hour)
		count, ok := g.plan.schedule.CountRuns(hour, hour.Add(time.Hour), steps)
		if !ok {
			return nil, false
		}
		w[h] = uint16(count) // at most 36,000, by schedule.MinEvery
		next = hour.Add(time.Hour)
	}
	c.values.Add(key, w, tenant, overhead+2*weekHours)
	return w, true
}
