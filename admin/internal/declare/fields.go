package declare

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/executor-sdk/declaration"
	"github.com/carillon-sched/carillon/proto"
	"github.com/carillon-sched/carillon/schedule"
)

// declaredSchedule fills in when a declared job fires. What does not belong to its
// kind is CheckSpec's to refuse.
func declaredSchedule(s *domain.ScheduleSpec, decl *proto.JobDeclaration, now time.Time) error {
	if decl.EveryMs != 0 && decl.DelayMs != 0 {
		return domain.Invalid("job.schedule.every", "every_ms and delay_ms exclude each other")
	}
	if decl.CalendarDays != "" && len(decl.Calendars) == 0 {
		return domain.Invalid("job.schedule.calendarDays", "needs calendars; leave it out where there are none")
	}
	of := declaration.Schedule(decl, now)
	s.Kind, s.Expr, s.Every, s.Anchor, s.At, s.Instants = domain.ScheduleKind(of.Kind), of.Expr, of.Every, of.Anchor, of.At, of.Instants
	s.WindowFrom, s.WindowTo, s.StartAt, s.EndAt = of.WindowFrom, of.WindowTo, of.StartAt, of.EndAt
	s.Gap, s.Overlap, s.Days, s.JitterMax = string(of.DST.Gap), string(of.DST.Overlap), string(of.Days), of.JitterMax
	unsaidPolicies(s)
	return nil
}

// checkSchedule refuses a schedule that cannot be compiled. The locations are those of the
// API.
func checkSchedule(s domain.ScheduleSpec) error {
	_, err := timing.Compile(&s, "")
	var wrong *schedule.SpecError
	if !errors.As(err, &wrong) {
		if err != nil {
			return domain.Errorf(domain.CodeInvalid, "%w", err)
		}
		return nil
	}
	out := domain.Errorf(domain.CodeInvalid, "%w", err)
	for _, f := range wrong.Fields {
		out.Fields = append(out.Fields, domain.FieldError{Location: "body.schedule." + timing.FieldName(f.Field), Message: f.Msg, Position: -1})
	}
	return out
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

// declaredCalendars finds calendars by name, at their current versions.
func (d *Declarer) declaredCalendars(ctx context.Context, tenant domain.TenantID, names []string) ([]domain.CalendarUse, error) {
	var out []domain.CalendarUse
	for _, name := range names {
		c, err := d.opt.Store.FindCalendarByName(ctx, tenant, name)
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

// declaredAlert is what a new job has.
func declaredAlert(d *proto.AlertDeclaration) domain.Alert {
	out := domain.DefaultAlert
	if d == nil {
		return out
	}
	if d.OnFailure != nil {
		out.OnFailure = *d.OnFailure
	}
	if d.IncludeNoExecutor != nil {
		out.IncludeNoExecutor = *d.IncludeNoExecutor
	}
	out.Emails, out.WebhookURL = d.Emails, d.WebhookUrl
	return out
}

// codeSays lists what the declaration says of settings that are the console's
// otherwise; it is never nil.
func codeSays(d *proto.JobDeclaration) domain.CodeSays {
	out := domain.CodeSays{}
	for key := range d.Labels {
		out = append(out, "labels."+key)
	}
	a := d.Alert
	for setting, said := range map[string]bool{
		"alert.onFailure":         a != nil && a.OnFailure != nil,
		"alert.includeNoExecutor": a != nil && a.IncludeNoExecutor != nil,
		"alert.emails":            len(a.GetEmails()) > 0,
		"alert.webhookUrl":        a.GetWebhookUrl() != "",
		"owner":                   d.OwnerEmail != "",
	} {
		if said {
			out = append(out, setting)
		}
	}
	slices.Sort(out)
	return out
}
