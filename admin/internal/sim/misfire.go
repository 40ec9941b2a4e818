package sim

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// misfired, lapse and lapseOffered are gormstore's.
func (d *database) misfired(now time.Time, e *domain.Execution) (asked bool, reason domain.Reason) {
	j := d.jobs[e.JobID]
	if d.misfire == nil || d.rules.skipMisfire || !e.Misfired(now, j.of(e)) {
		return false, ""
	}
	reason, _ = d.misfire(now, e, j.of(e))
	if reason == domain.ReasonCoalesced && j.trigger.Revision != e.Revision {
		reason = ""
	}
	return true, reason
}

func (d *database) lapse(now, since time.Time, e *domain.Execution) (ended bool) {
	if e.State != domain.Due {
		return false
	}
	_ = d.move(now, e, func(j *jobRow, e *domain.Execution) (fx domain.Effects, err error) {
		e.WaitedSince(since, now, j.of(e))
		if asked, reason := d.misfired(now, e); asked {
			fx, ended, err = e.Lapse(now, reason, "")
		}
		return fx, err
	})
	return ended
}

func (d *database) lapseOffered(now time.Time, e *domain.Execution) {
	if e.State != domain.Offered {
		return
	}
	if asked, reason := d.misfired(now, e); asked {
		_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
			return domain.Effects{}, e.LapseOffered(now, reason, "")
		})
	}
}
