package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// instantFormat is RFC 3339 with milliseconds; times are put into UTC first.
const instantFormat = "2006-01-02T15:04:05.000Z07:00"

func instant(t time.Time) string { return t.UTC().Format(instantFormat) }

// instantOrNull returns nil for "not yet" and "never".
func instantOrNull(t time.Time) *string {
	if t.IsZero() || !t.Before(domain.Never) {
		return nil
	}
	s := instant(t)
	return &s
}

// reader collects what is wrong with a request, so that all of it is told at
// once.
type reader struct {
	fields []domain.FieldError
	// wrongCron: one of the fields is a cron expression that cannot be read.
	wrongCron bool
}

func (r *reader) fail(location string, value any, format string, args ...any) {
	r.fields = append(r.fields, domain.FieldError{
		Location: location, Message: fmt.Sprintf(format, args...), Value: value, Position: -1,
	})
}

// noneOf says which values there are, and which of them may be meant.
func (r *reader) noneOf(location, value string, values []string) {
	r.fail(location, value, "%q is none of %s", value, strings.Join(values, ", "))
	r.fields[len(r.fields)-1].Hint = spelling.Hint(value, values)
}

// stateNames are the states of runs, live ones first.
func stateNames() []string {
	names := make([]string, len(domain.States))
	for i, s := range domain.States {
		names[i] = s.String()
	}
	return names
}

// add takes over the fields of a domain error; any other error is returned.
func (r *reader) add(err error) error {
	if err == nil {
		return nil
	}
	var e *domain.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	r.fields = append(r.fields, e.Fields...)
	return nil
}

// err returns everything collected as one error, or nil. A cron expression
// that is the only fault has a code of its own.
func (r *reader) err() error {
	if len(r.fields) == 0 {
		return nil
	}
	f := r.fields[0]
	code := domain.CodeInvalid
	if r.wrongCron && len(r.fields) == 1 {
		code = domain.CodeInvalidCron
	}
	return &domain.Error{Code: code, Message: f.Location + ": " + f.Message, Fields: r.fields}
}

// duration reads "1m30s"; empty gives fallback.
func (r *reader) duration(location, text string, fallback time.Duration) time.Duration {
	if text == "" {
		return fallback
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		r.fail(location, text, "is not a duration such as 30s, 5m or 1h30m")
		return fallback
	}
	rounded := d.Round(time.Millisecond)
	if d != 0 && rounded == 0 {
		r.fail(location, text, "is less than a millisecond, the smallest step")
	}
	return rounded
}

// instant reads RFC 3339; nil and empty give the zero time.
func (r *reader) instant(location string, text *string) time.Time {
	if text == nil || *text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		r.fail(location, *text, "is not an instant such as 2026-11-21T04:00:00Z")
		return time.Time{}
	}
	if t.Year() < 1970 || t.Year() > domain.LastYear {
		r.fail(location, *text, "must lie in the years from 1970 to 9998")
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// name checks what people read in lists and logs: no control characters, no
// spaces around.
func (r *reader) name(location, text string, maxBytes int) string {
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
		r.fail(location, text, "must not be empty")
	case len(trimmed) > maxBytes:
		r.fail(location, nil, "must have at most %d bytes", maxBytes)
	case hasControl(trimmed):
		r.fail(location, nil, "must not contain control characters or line breaks")
	}
	return trimmed
}

func hasControl(s string) bool { return domain.HasControl(s) }

// maxInput bounds a run's input in bytes of JSON; it is the wire's limit.
const maxInput = 256 << 10

// json compacts a JSON value; null and nothing give nil.
func (r *reader) json(location string, raw json.RawMessage) []byte {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		r.fail(location, nil, "is not JSON")
		return nil
	}
	if out.Len() > maxInput {
		r.fail(location, nil, "must have at most %d bytes of JSON, has %d", maxInput, out.Len())
		return nil
	}
	return out.Bytes()
}

// rawOrNull is the JSON value for an answer.
func rawOrNull(raw []byte) json.RawMessage {
	if len(raw) == 0 || !json.Valid(raw) {
		return json.RawMessage("null")
	}
	return raw
}

// id reads an optional id in a query; location only serves the message.
func optionalID[T ~int64](r *reader, location, text string) T {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		r.fail(location, text, "is not an id")
		return 0
	}
	return T(n)
}

// idOrNull writes an id that may be missing.
func idOrNull[T ~int64](id T) *string {
	if id == 0 {
		return nil
	}
	s := strconv.FormatInt(int64(id), 10)
	return &s
}

func emptyIfNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func emptyMapIfNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
