// Package timing answers: what does a job's schedule mean?
//
// It is the one place where the noun (domain.ScheduleSpec) meets the engine
// (package schedule), so that preview, UI and fires come from the same
// function.
package timing

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/schedule"
)

// Compile makes a schedule that answers. The error is a *schedule.SpecError.
// seed makes the jitter of jobs differ; it is the job's id (Seed).
func Compile(s *domain.ScheduleSpec, seed string) (*schedule.Schedule, error) {
	calendars, err := compileCalendars(s.Calendars)
	if err != nil {
		return nil, err
	}
	return schedule.Compile(schedule.Spec{
		Kind: schedule.Kind(s.Kind), Expr: s.Expr, Dialect: schedule.Dialect(s.Dialect),
		Every: s.Every, Anchor: s.Anchor, At: s.At, Instants: s.Instants,
		WindowFrom: s.WindowFrom, WindowTo: s.WindowTo, Zone: s.Zone, StartAt: s.StartAt, EndAt: s.EndAt,
		DST:       schedule.DST{Gap: schedule.GapPolicy(s.Gap), Overlap: schedule.OverlapPolicy(s.Overlap)},
		Calendars: calendars, Days: schedule.DayRule(s.Days), JitterMax: s.JitterMax, JitterSeed: seed,
	})
}

// Seed is what makes a job's jitter its own. It never changes: runs that were
// planned keep their time.
func Seed(job domain.JobID) string { return job.String() }

// RunAt is when the run of a scheduled fire was to start: the fire time plus the
// jitter of the revision that it was planned by.
func RunAt(job domain.JobID, jitterMax time.Duration, fireAt time.Time) time.Time {
	return schedule.RunAt(Seed(job), jitterMax, fireAt)
}

// Next returns the first fire time after now, or domain.Never. A schedule that
// cannot be compiled fires never; it was checked when it was saved. For a fixed
// delay now is the end of the run before.
func Next(now time.Time, spec *domain.JobSpec) time.Time {
	compiled, err := Compile(&spec.Schedule, "")
	if err != nil {
		return domain.Never
	}
	return orNever(compiled.Next(now))
}

// NextRun is Next without the fire times that calendars exclude.
func NextRun(now time.Time, spec *domain.JobSpec) time.Time {
	compiled, err := Compile(&spec.Schedule, "")
	if err != nil {
		return domain.Never
	}
	return orNever(compiled.NextRun(now))
}

func orNever(t time.Time, ok bool) time.Time {
	if !ok {
		return domain.Never
	}
	return t
}

// Cache keeps compiled schedules by job revision; revisions never change. It
// is safe for concurrent use.
type Cache struct {
	compiled *lru.Cache[revision, *schedule.Schedule]
}

type revision struct {
	job    domain.JobID
	number int64
}

// NewCache returns a Cache of at most size schedules.
func NewCache(size int) (*Cache, error) {
	compiled, err := lru.New[revision, *schedule.Schedule](size)
	return &Cache{compiled}, err
}

func (c *Cache) get(job domain.JobID, number int64, spec *domain.JobSpec) (*schedule.Schedule, error) {
	key := revision{job, number}
	if s, ok := c.compiled.Get(key); ok {
		return s, nil
	}
	s, err := Compile(&spec.Schedule, Seed(job))
	if err == nil {
		c.compiled.Add(key, s)
	}
	return s, err
}
