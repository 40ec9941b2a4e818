package api

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func scheduleText(domain.ScheduleSpec) *Bilingual { return nil }

func checkSchedule(r *reader, location string, s *domain.ScheduleSpec, now time.Time) *domain.Error {
	return nil
}

// read takes over the fields of the schedule's kind.
func (w *ScheduleWrite) read(r *reader, location string) domain.ScheduleSpec {
	s := domain.ScheduleSpec{
		Kind: domain.ScheduleKind(w.Kind), Zone: orDefault(w.Zone, "UTC"),
		StartAt: r.instant(location+".startAt", w.StartAt), EndAt: r.instant(location+".endAt", w.EndAt),
	}
	switch s.Kind {
	case domain.ScheduleCron:
		s.Expr, s.Dialect = w.Expr, orDefault(w.Dialect, "auto")
	case domain.ScheduleFixedRate:
		s.Every = r.duration(location+".every", w.Every, 0)
	case domain.ScheduleOnce:
		s.At = r.instant(location+".at", w.At)
		if s.At.IsZero() && len(r.fields) == 0 {
			r.fail(location+".at", nil, "is needed for a schedule of kind once")
		}
	}
	return s
}

func (a *API) registerSchedules() {}
