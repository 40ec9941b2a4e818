package gormstore

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// misfired asks the misfire policy about an execution that is to start now, once
// its fire time has passed by more than the threshold.
func (b *batch) misfired(m *move) (asked bool, reason domain.Reason, message string, err error) {
	if b.t.s.misfire == nil || !m.e.Misfired(b.now, m.spec) {
		return false, "", "", nil
	}
	reason, message = b.t.s.misfire(b.now, &m.e, m.spec)
	if reason == domain.ReasonCoalesced {
		// A later run stands for it only if the schedule is still the same.
		var revision int64
		err = query(b.t.ctx, b.t.q, func(rows *sql.Rows) error { return rows.Scan(&revision) },
			"SELECT revision FROM triggers WHERE job_id = ?", int64(m.e.JobID))
		if err != nil {
			return false, "", "", fmt.Errorf("read revision of the trigger: %w", err)
		}
		if revision != m.e.Revision {
			reason, message = "", ""
		}
	}
	return true, reason, message, nil
}

// lapse ends a due execution that has misfired, as its job's policy says. since
// is from when its node knows that it waits for an instance.
func (b *batch) lapse(m *move, since time.Time) (ended bool, err error) {
	if m.e.State != domain.Due {
		return false, nil
	}
	m.e.WaitedSince(since, b.now, m.spec)
	asked, reason, message, err := b.misfired(m)
	if err != nil || !asked {
		return false, err
	}
	fx, ended, err := m.e.Lapse(b.now, reason, message)
	if err != nil {
		return false, err
	}
	return ended, b.apply(m, fx)
}

// lapseOffered takes the offer of an execution back that has misfired before its
// grant. The next offer ends it: that has its slot locked.
func (b *batch) lapseOffered(m *move) error {
	if m.e.State != domain.Offered {
		return nil
	}
	asked, reason, message, err := b.misfired(m)
	if err != nil || !asked {
		return err
	}
	return m.e.LapseOffered(b.now, reason, message)
}
