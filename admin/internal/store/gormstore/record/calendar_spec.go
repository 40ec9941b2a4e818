package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// calendarDocument is how a version is stored. Field names are part of the
// schema; instants are Unix milliseconds.
type calendarDocument struct {
	Name        string             `json:"name"`
	Description string             `json:"description,omitempty"`
	Zone        string             `json:"zone,omitempty"`
	Weekend     *[]int             `json:"weekend,omitempty"` // 0 = Sunday; absent = the default
	Holidays    []dayDocument      `json:"holidays,omitempty"`
	MakeUpDays  []dayDocument      `json:"makeUpDays,omitempty"`
	Blackouts   []blackoutDocument `json:"blackouts,omitempty"`
}

type dayDocument struct {
	Date string `json:"date"`
	Name string `json:"name,omitempty"`
}

type blackoutDocument struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Name string `json:"name,omitempty"`
}

// EncodeCalendar writes a calendar as its version keeps it.
func EncodeCalendar(s *domain.CalendarSpec) (string, error) {
	d := calendarDocument{Name: s.Name, Description: s.Description, Zone: s.Zone}
	if s.Weekend != nil {
		list := make([]int, len(s.Weekend))
		for i, w := range s.Weekend {
			list[i] = int(w)
		}
		d.Weekend = &list
	}
	for _, day := range s.Holidays {
		d.Holidays = append(d.Holidays, dayDocument(day))
	}
	for _, day := range s.MakeUpDays {
		d.MakeUpDays = append(d.MakeUpDays, dayDocument(day))
	}
	for _, b := range s.Blackouts {
		d.Blackouts = append(d.Blackouts, blackoutDocument{db.Millis(b.From), db.Millis(b.To), b.Name})
	}
	text, err := json.Marshal(d)
	return string(text), err
}

// DecodeCalendar reads what EncodeCalendar wrote.
func DecodeCalendar(text []byte) (*domain.CalendarSpec, error) {
	var d calendarDocument
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read stored calendar: %w", err)
	}
	s := &domain.CalendarSpec{Name: d.Name, Description: d.Description, Zone: d.Zone}
	if d.Weekend != nil {
		s.Weekend = make([]time.Weekday, len(*d.Weekend))
		for i, w := range *d.Weekend {
			s.Weekend[i] = time.Weekday(w)
		}
	}
	for _, day := range d.Holidays {
		s.Holidays = append(s.Holidays, domain.CalendarDay(day))
	}
	for _, day := range d.MakeUpDays {
		s.MakeUpDays = append(s.MakeUpDays, domain.CalendarDay(day))
	}
	for _, b := range d.Blackouts {
		s.Blackouts = append(s.Blackouts, domain.Blackout{From: time.UnixMilli(b.From).UTC(), To: time.UnixMilli(b.To).UTC(), Name: b.Name})
	}
	return s, nil
}

// CalendarDeleted is the state of a calendar that old revisions of jobs may name.
const CalendarDeleted = 3

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
const calendarHead = "CASE WHEN OCTET_LENGTH(spec) <= 4096 THEN spec WHEN JSON_VALID(spec) THEN JSON_REMOVE(spec, '$.holidays', '$.makeUpDays', '$.blackouts') ELSE spec END"

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
