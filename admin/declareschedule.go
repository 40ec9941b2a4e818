package admin

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
	"github.com/carillon-sched/carillon/proto/schedule"
)

// declaredSchedule fills in when a declared job fires: all that is said, of
// which the first that is set makes the kind. What does not belong to it is
// CheckSpec's to refuse.
func declaredSchedule(s *domain.ScheduleSpec, decl *proto.JobDeclaration, now time.Time) error {
	if decl.EveryMs != 0 && decl.DelayMs != 0 {
		return domain.Invalid("job.schedule.every", "every_ms and delay_ms exclude each other")
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	s.StartAt, s.EndAt = declaredInstant(decl.StartAtMs), declaredInstant(decl.EndAtMs)
	s.Expr, s.Every, s.At = decl.Cron, ms(decl.EveryMs+decl.DelayMs), declaredInstant(decl.AtMs)
	s.WindowFrom, s.WindowTo = decl.WindowFrom, decl.WindowTo
	for _, at := range decl.InstantsMs {
		s.Instants = append(s.Instants, declaredInstant(at))
	}
	s.JitterMax, s.Gap, s.Overlap = ms(decl.JitterMs), decl.DstGap, decl.DstOverlap
	if s.Days = decl.CalendarDays; s.Days != "" && len(decl.Calendars) == 0 {
		return domain.Invalid("job.schedule.calendarDays", "needs calendars; leave it out where there are none")
	}
	switch {
	case decl.Cron != "":
		s.Kind = domain.ScheduleCron
	case decl.WindowFrom != "" || decl.WindowTo != "":
		s.Kind = domain.ScheduleDailyWindow
	case decl.EveryMs != 0:
		s.Kind = domain.ScheduleFixedRate
		if s.Anchor = s.StartAt; s.Anchor.IsZero() {
			s.Anchor = now.Truncate(time.Second)
		}
	case decl.DelayMs != 0:
		s.Kind = domain.ScheduleFixedDelay
	case decl.AtMs != 0:
		s.Kind = domain.ScheduleOnce
	case len(decl.InstantsMs) > 0:
		s.Kind = domain.ScheduleInstants
	}
	unsaidPolicies(s)
	return nil
}

// unsaidPolicies takes defaults for not said where a policy for clock changes
// has no meaning: the option of the SDK names both policies at once.
func unsaidPolicies(s *domain.ScheduleSpec) {
	if s.Kind != domain.ScheduleCron && s.Overlap == string(schedule.OverlapOnce) {
		s.Overlap = ""
	}
	if s.Kind != domain.ScheduleCron && s.Kind != domain.ScheduleDailyWindow && s.Gap == string(schedule.GapRunAtEnd) {
		s.Gap = ""
	}
}

// declarationFault says of each wrong field where it stands in the declared
// job, for the log of the application. Any other error is returned as it is.
func declarationFault(err error) error {
	var e *domain.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	texts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		texts[i] = strings.Replace(f.Location, "body.", "job.", 1) + ": " + f.Message
	}
	return domain.Errorf(e.Code, "%s", strings.Join(texts, "; "))
}

func declaredInstant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// declaredCalendars finds calendars by name, at their current versions.
func (d *declarer) declaredCalendars(ctx context.Context, tenant domain.TenantID, names []string) ([]domain.CalendarUse, error) {
	var out []domain.CalendarUse
	for _, name := range names {
		c, err := d.calendars.FindCalendarByName(ctx, tenant, name)
		if domain.Is(err, domain.CodeNotFound) {
			return nil, domain.Invalid("job.calendars", "there is no calendar %q", name)
		} else if err != nil {
			return nil, err
		}
		out = append(out, domain.CalendarUse{ID: c.ID, Version: c.Version, Content: &c.Spec})
	}
	return out, nil
}

func declaredSharding(s *proto.Sharding) domain.Sharding {
	if s == nil {
		return domain.Sharding{}
	}
	out := domain.Sharding{
		Mode: domain.ShardMode(s.Mode), Shards: int(s.Shards), OnGone: domain.OnGone(s.OnGone),
		Before: s.Before, After: s.After, Timeout: time.Duration(s.TimeoutMs) * time.Millisecond,
	}
	if out.Mode == domain.ShardBroadcast && out.OnGone == "" {
		out.OnGone = domain.GoneMiss
	}
	return out
}
