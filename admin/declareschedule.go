package admin

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// declaredSchedule fills in when a declared job fires. Contradictions are the
// SDK's to find; here the first that is set counts.
func declaredSchedule(s *domain.ScheduleSpec, decl *proto.JobDeclaration, now time.Time) {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	s.StartAt, s.EndAt = declaredInstant(decl.StartAtMs), declaredInstant(decl.EndAtMs)
	s.JitterMax, s.Gap, s.Overlap = ms(decl.JitterMs), decl.DstGap, decl.DstOverlap
	s.Days = decl.CalendarDays
	switch {
	case decl.Cron != "":
		s.Kind, s.Expr = domain.ScheduleCron, decl.Cron
	case decl.WindowFrom != "" || decl.WindowTo != "":
		s.Kind, s.Every = domain.ScheduleDailyWindow, ms(decl.EveryMs)
		s.WindowFrom, s.WindowTo = decl.WindowFrom, decl.WindowTo
	case decl.EveryMs > 0:
		s.Kind, s.Every = domain.ScheduleFixedRate, ms(decl.EveryMs)
		if s.Anchor = s.StartAt; s.Anchor.IsZero() {
			s.Anchor = now.Truncate(time.Second)
		}
	case decl.DelayMs > 0:
		s.Kind, s.Every = domain.ScheduleFixedDelay, ms(decl.DelayMs)
	case decl.AtMs > 0:
		s.Kind, s.At = domain.ScheduleOnce, declaredInstant(decl.AtMs)
	case len(decl.InstantsMs) > 0:
		s.Kind = domain.ScheduleInstants
		for _, at := range decl.InstantsMs {
			s.Instants = append(s.Instants, declaredInstant(at))
		}
	}
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
