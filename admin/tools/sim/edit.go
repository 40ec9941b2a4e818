package sim

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// period is a time, by the database's clock, in which a revision of a job was
// in force: the fire times in (from, to] are its own.
type period struct {
	revision int64
	from, to time.Time // to zero = still
}

// setState is SetJobState.
func (d *database) setState(p store.SetJobStateParams) error {
	j := d.jobs[p.ID]
	if j.state == domain.JobDeleted {
		return domain.Errorf(domain.CodeNotFound, "no such job")
	}
	now := d.clock()
	next := domain.Never
	switch {
	case p.State == domain.JobEnabled && j.state == domain.JobEnabled:
		next = j.trigger.NextFireAt
	case p.State == domain.JobEnabled:
		next = d.firstFire(j, p.Next(now, j.spec()))
		j.periods = append(j.periods, period{revision: j.trigger.Revision, from: now})
	default:
		d.closePeriod(now, j)
		d.settleTrigger(now, j, p.Plan)
		d.takeBack(j, p.State)
	}
	j.state = p.State
	j.trigger.NextFireAt = next
	return nil
}

// update is UpdateJob.
func (d *database) update(p store.UpdateJobParams) error {
	j := d.jobs[p.ID]
	if j.state == domain.JobDeleted {
		return domain.Errorf(domain.CodeNotFound, "no such job")
	}
	now := d.clock()
	d.closePeriod(now, j)
	d.settleTrigger(now, j, p.Plan)
	d.takeBack(j, domain.JobEnabled)
	spec := p.Spec
	j.specs = append(j.specs, &spec)
	j.trigger.Revision++
	j.trigger.NextFireAt = domain.Never
	if j.state == domain.JobEnabled {
		j.trigger.NextFireAt = d.firstFire(j, p.Next(now, &spec))
		j.periods = append(j.periods, period{revision: j.trigger.Revision, from: now})
	}
	return nil
}

func (d *database) closePeriod(now time.Time, j *jobRow) {
	if j.state == domain.JobEnabled {
		j.periods[len(j.periods)-1].to = now
	}
	for i := range j.periods { // the clock was set back: what comes again is not theirs
		if p := &j.periods[i]; p.to.After(now) {
			p.to = now
		}
	}
}

// settleTrigger gives the fire times that have passed their rows.
func (d *database) settleTrigger(now time.Time, j *jobRow, plan store.PlanFunc) {
	for was := domain.Never; !j.trigger.NextFireAt.After(now) && !j.trigger.NextFireAt.Equal(was); {
		was = j.trigger.NextFireAt
		d.planOne(now, j, plan)
	}
}

// firstFire is the next fire time of a job that was edited or resumed. A fixed
// delay goes on waiting for a run that still lives.
func (d *database) firstFire(j *jobRow, next time.Time) time.Time {
	if j.awaits != 0 && j.spec().Schedule.Kind == domain.ScheduleFixedDelay {
		if e := d.find(j.awaits); e != nil && !e.State.Terminal() {
			return domain.Never
		}
	}
	j.awaits = 0
	return next
}

// rearm sets the trigger of a fixed delay whose run has ended.
func (d *database) rearm(now time.Time, j *jobRow) {
	if j.state == domain.JobEnabled && j.spec().Schedule.Kind == domain.ScheduleFixedDelay {
		j.trigger.NextFireAt = timing.Next(now, j.spec())
	}
	j.awaits = 0
}

// rearmDelays is RearmDelays.
func (d *database) rearmDelays() (count int) {
	for _, id := range d.jobOrder {
		j := d.jobs[id]
		if e := d.find(j.awaits); j.awaits != 0 && (e == nil || e.State.Terminal()) {
			d.rearm(d.clock(), j)
			count++
		}
	}
	return count
}
