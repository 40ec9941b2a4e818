package admin

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/schedule"
)

type nexter interface {
	Next(after time.Time) (time.Time, bool)
}

type temp struct {
	s    domain.ScheduleSpec
	cron *schedule.Cron
	loc  *time.Location
}

func (c temp) Next(after time.Time) (time.Time, bool) {
	if !c.s.StartAt.IsZero() && after.Before(c.s.StartAt) {
		after = c.s.StartAt.Add(-time.Millisecond)
	}
	var t time.Time
	ok := false
	switch c.s.Kind {
	case domain.ScheduleCron:
		t, ok = c.cron.NextIn(after, c.loc, schedule.DST{})
	case domain.ScheduleFixedRate:
		n := after.Sub(c.s.Anchor)/c.s.Every + 1
		t, ok = c.s.Anchor.Add(n*c.s.Every), true
	case domain.ScheduleOnce:
		t, ok = c.s.At, c.s.At.After(after)
	}
	if ok && !c.s.EndAt.IsZero() && t.After(c.s.EndAt) {
		ok = false
	}
	return t, ok
}

func compile(s domain.ScheduleSpec) (nexter, error) {
	c := temp{s: s}
	var err error
	if s.Kind == domain.ScheduleCron {
		if c.cron, err = schedule.Parse(s.Expr, schedule.Dialect(s.Dialect)); err != nil {
			return nil, domain.Errorf(domain.CodeInvalidCron, "%w", err)
		}
	}
	if c.loc, err = time.LoadLocation(s.Zone); err != nil {
		return nil, domain.Invalid("body.schedule.zone", "%s", err)
	}
	return c, nil
}

func checkSchedule(s domain.ScheduleSpec) error { _, err := compile(s); return err }

func nextFire(domain.JobID) store.NextFireFunc {
	return func(now time.Time, spec *domain.JobSpec) time.Time {
		c, err := compile(spec.Schedule)
		if err != nil {
			return domain.Never
		}
		if t, ok := c.Next(now); ok {
			return t
		}
		return domain.Never
	}
}

type revisionKey struct {
	job      domain.JobID
	revision int64
}

var compiledCache, _ = lru.New[revisionKey, nexter](32768)

func planFires(job domain.JobID, revision int64, spec *domain.JobSpec, next, now, horizon time.Time, limit int) ([]scheduler.Fire, time.Time) {
	key := revisionKey{job, revision}
	c, ok := compiledCache.Get(key)
	if !ok {
		var err error
		if c, err = compile(spec.Schedule); err != nil {
			return nil, domain.Never
		}
		compiledCache.Add(key, c)
	}
	threshold := spec.Misfire.Threshold
	if threshold <= 0 {
		threshold = domain.DefaultMisfireThreshold
	}
	var out []scheduler.Fire
	for !next.After(horizon) && len(out) < limit {
		f := scheduler.Fire{At: next}
		following, more := c.Next(next)
		if now.Sub(next) > threshold {
			f.Missed = domain.ReasonMisfire
			if spec.Misfire.Policy == domain.MisfireOnceNow {
				if more && !following.After(now) {
					f.Missed = domain.ReasonCoalesced
				} else {
					f.Missed, f.Misfire = "", true
				}
			}
		}
		out = append(out, f)
		if !more {
			return out, domain.Never
		}
		next = following
	}
	return out, next
}
