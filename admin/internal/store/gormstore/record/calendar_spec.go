package record

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/resource/calendar"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// DecodeCalendar reads the stored text of a version.
func DecodeCalendar(text []byte) (*domain.CalendarSpec, error) {
	var row resource.Row
	if err := row.ReadText(text, calendar.Kind.Older); err != nil {
		return nil, err
	}
	c, err := calendar.Of(&row)
	return &c.Spec, err
}

// CalendarKey names an immutable version.
type CalendarKey struct {
	Tenant  domain.TenantID
	ID      domain.CalendarID
	Version int64
}

// LoadCalendars reads versions; one that does not exist, or cannot be read, is
// missing in the answer.
func LoadCalendars(ctx context.Context, q db.Querier, keys []CalendarKey) (map[CalendarKey]*domain.CalendarSpec, error) {
	return loadCalendars(ctx, q, keys, "spec")
}

// calendarHead is the text of a version without its days and windows, in SQL. A text that is no
// JSON stays as it is.
const calendarHead = "CASE WHEN OCTET_LENGTH(spec) <= 4096 THEN spec WHEN JSON_VALID(spec) THEN JSON_REMOVE(spec, '$.holidays', '$.makeUpDays', '$.blackouts'," +
	" '$.spec.holidays', '$.spec.makeUpDays', '$.spec.blackouts') ELSE spec END"

func loadCalendars(ctx context.Context, q db.Querier, keys []CalendarKey, text string) (map[CalendarKey]*domain.CalendarSpec, error) {
	found := map[CalendarKey]*domain.CalendarSpec{}
	if len(keys) == 0 {
		return found, nil
	}
	terms := make([]string, 0, len(keys))
	for _, k := range keys {
		if _, ok := found[k]; !ok {
			found[k] = nil
			terms = append(terms, fmt.Sprintf("(calendar_id = %d AND version = %d AND tenant_id = %d)", k.ID, k.Version, k.Tenant))
		}
	}
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var k CalendarKey
		var text sql.RawBytes
		if err := rows.Scan(&k.ID, &k.Version, &k.Tenant, &text); err != nil {
			return err
		}
		if spec, err := DecodeCalendar(text); err == nil {
			found[k] = spec
		}
		return nil
	}, "SELECT calendar_id, version, tenant_id, "+text+" FROM calendar_versions WHERE "+strings.Join(terms, " OR "))
	if err != nil {
		return nil, fmt.Errorf("load calendars: %w", err)
	}
	return found, nil
}

// FillCalendars gives schedules the contents of their calendars. One that does
// not exist has none: runs of the job go on, its schedule cannot be planned.
func FillCalendars(ctx context.Context, q db.Querier, specs []CachedSpec) error {
	return fillCalendars(ctx, q, specs, "spec")
}

// FillCalendarHeads is FillCalendars for lists. They show the names of calendars, and may lack
// their days and windows: a page of 200 jobs can have 1,600 calendars of 1 MiB.
func FillCalendarHeads(ctx context.Context, q db.Querier, specs []CachedSpec) error {
	return fillCalendars(ctx, q, specs, calendarHead)
}

// CalendarFiller is FillCalendarHeads if it is to be brief, or FillCalendars.
func CalendarFiller(brief bool) func(context.Context, db.Querier, []CachedSpec) error {
	if brief {
		return FillCalendarHeads
	}
	return FillCalendars
}

func fillCalendars(ctx context.Context, q db.Querier, specs []CachedSpec, text string) error {
	var keys []CalendarKey
	for _, c := range specs {
		for _, u := range c.Spec.Schedule.Calendars {
			keys = append(keys, CalendarKey{c.Tenant, u.ID, u.Version})
		}
	}
	if len(keys) == 0 {
		return nil
	}
	found, err := loadCalendars(ctx, q, keys, text)
	if err != nil {
		return err
	}
	for _, c := range specs {
		for i := range c.Spec.Schedule.Calendars {
			u := &c.Spec.Schedule.Calendars[i]
			u.Content = found[CalendarKey{c.Tenant, u.ID, u.Version}]
		}
	}
	return nil
}
