package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Calendar is what commands read of a calendar; Doc has the rest.
type Calendar struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Zone        string    `json:"zone"`
	Version     int64     `json:"version"`
	Holidays    Count     `json:"holidays"`
	MakeUpDays  Count     `json:"makeUpDays"`
	Blackouts   Count     `json:"blackouts"`
	UpdatedAt   time.Time `json:"updatedAt"`
	UpdatedBy   string    `json:"updatedBy"`
}

// Count is how many there are: lists give the number, a calendar all of them.
type Count int

// UnmarshalJSON takes a number or an array.
func (c *Count) UnmarshalJSON(raw []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		*c = Count(len(list))
		return nil
	}
	return json.Unmarshal(raw, (*int)(c))
}

// CalendarVersion is one version of a calendar.
type CalendarVersion struct {
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy"`
}

// Calendars lists calendars by name.
func (c *Client) Calendars(ctx context.Context) ([]Doc[Calendar], error) {
	return all(0, url.Values{}, func(q url.Values) (p Page[Calendar], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: "/calendars", query: q}, &p)
		return p, err
	})
}

// Calendar gets one calendar by id.
func (c *Client) Calendar(ctx context.Context, id string) (d Doc[Calendar], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/calendars/" + url.PathEscape(id)}, &d)
	return d, err
}

// CreateCalendar makes a calendar of its fields.
func (c *Client) CreateCalendar(ctx context.Context, spec any) (d Doc[Calendar], err error) {
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/calendars", body: spec}, &d)
	return d, err
}

// ReplaceCalendar writes a calendar's fields, if it still has the version.
func (c *Client) ReplaceCalendar(ctx context.Context, id string, version int64, spec any) (d Doc[Calendar], err error) {
	_, err = c.do(ctx, request{method: http.MethodPut, path: "/calendars/" + url.PathEscape(id), body: spec, header: ifVersion(version)}, &d)
	return d, err
}

func ifVersion(version int64) map[string]string {
	return map[string]string{"If-Match": `"` + strconv.FormatInt(version, 10) + `"`}
}

// DeleteCalendar removes a calendar that no job uses.
func (c *Client) DeleteCalendar(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: "/calendars/" + url.PathEscape(id)}, nil)
	return err
}

// CalendarVersions lists the newest versions first.
func (c *Client) CalendarVersions(ctx context.Context, id string) ([]Doc[CalendarVersion], error) {
	return all(0, url.Values{}, func(q url.Values) (p Page[CalendarVersion], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: "/calendars/" + url.PathEscape(id) + "/versions", query: q}, &p)
		return p, err
	})
}

// CalendarImport is an iCalendar file and what to make of it.
type CalendarImport struct {
	ICal    string `json:"ical"`
	As      string `json:"as,omitempty"`
	Replace bool   `json:"replace,omitempty"`
}

// ImportCalendar adds a file's events to a calendar.
func (c *Client) ImportCalendar(ctx context.Context, id string, version int64, in CalendarImport) (d Doc[Calendar], err error) {
	_, err = c.do(ctx, request{
		method: http.MethodPost, path: "/calendars/" + url.PathEscape(id) + "/import", body: in, header: ifVersion(version),
	}, &d)
	return d, err
}

// BackfillRequest asks for the runs of a past range.
type BackfillRequest struct {
	From        string `json:"from"`
	To          string `json:"to"`
	Scope       string `json:"scope,omitempty"`
	Concurrency int    `json:"concurrency,omitempty"`
	DryRun      bool   `json:"dryRun,omitempty"`
	Note        string `json:"note,omitempty"`
}

// Backfill is what became of it.
type Backfill struct {
	ID        string    `json:"id"`
	JobID     string    `json:"jobId"`
	State     string    `json:"state"`
	Scope     string    `json:"scope"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Planned   int       `json:"planned"`
	Created   int       `json:"created"`
	Skipped   int       `json:"skipped"`
	Succeeded int       `json:"succeeded"`
	Failed    int       `json:"failed"`
	Running   int       `json:"running"`
	Fires     []Fire    `json:"fires"`
}

// Backfill runs a job for the fire times of a past range.
func (c *Client) Backfill(ctx context.Context, job string, r BackfillRequest) (d Doc[Backfill], err error) {
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/jobs/" + url.PathEscape(job) + "/backfill", body: r}, &d)
	return d, err
}

// Backfills lists a job's backfills, newest first.
func (c *Client) Backfills(ctx context.Context, job string, limit int) ([]Doc[Backfill], error) {
	return all(limit, url.Values{}, func(q url.Values) (p Page[Backfill], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: "/jobs/" + url.PathEscape(job) + "/backfills", query: q}, &p)
		return p, err
	})
}

// CancelBackfill keeps further runs from being written.
func (c *Client) CancelBackfill(ctx context.Context, id string) (d Doc[Backfill], err error) {
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/backfills/" + url.PathEscape(id) + "/cancel"}, &d)
	return d, err
}
