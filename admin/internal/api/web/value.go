package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// instantFormat is RFC 3339 with milliseconds; times are put into UTC first.
const instantFormat = "2006-01-02T15:04:05.000Z07:00"

// Instant is a time as the API tells it, in UTC.
func Instant(t time.Time) string { return t.UTC().Format(instantFormat) }

// Instants formats instants.
func Instants(list []time.Time) []string {
	return EmptyIfNil(domain.Collect(list, func(t *time.Time) string { return Instant(*t) }))
}

// InstantOrNull returns nil for "not yet" and "never".
func InstantOrNull(t time.Time) *string {
	if t.IsZero() || !t.Before(domain.Never) {
		return nil
	}
	s := Instant(t)
	return &s
}

// Reader collects what is wrong with a request, so that all of it is told at
// once.
type Reader struct {
	Fields []domain.FieldError
	// WrongCron: one of the fields is a cron expression that cannot be read.
	WrongCron bool
}

func (r *Reader) Fail(location string, value any, format string, args ...any) {
	r.Fields = append(r.Fields, domain.FieldError{
		Location: location, Message: fmt.Sprintf(format, args...), Value: value, Position: -1,
	})
}

// NoneOf says which values there are, and which of them may be meant.
func (r *Reader) NoneOf(location, value string, values []string) {
	r.Unknown(location, value, values, "%q is none of %s", value, strings.Join(values, ", "))
}

// Unknown is Fail, and asks which of the known values may be meant.
func (r *Reader) Unknown(location, value string, known []string, format string, args ...any) {
	r.Fail(location, value, format, args...)
	r.Fields[len(r.Fields)-1].Hint = spelling.Hint(value, known)
}

// Add takes over the fields of a domain error; any other error is returned.
func (r *Reader) Add(err error) error {
	if err == nil {
		return nil
	}
	var e *domain.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	r.Fields = append(r.Fields, e.Fields...)
	return nil
}

// Err returns everything collected as one error, or nil. A cron expression
// that is the only fault has a code of its own.
func (r *Reader) Err() error {
	if len(r.Fields) == 0 {
		return nil
	}
	f := r.Fields[0]
	code := domain.CodeInvalid
	if r.WrongCron && len(r.Fields) == 1 {
		code = domain.CodeInvalidCron
	}
	return &domain.Error{Code: code, Message: f.Location + ": " + f.Message, Fields: r.Fields}
}

// Duration reads "1m30s"; empty gives fallback.
func (r *Reader) Duration(location, text string, fallback time.Duration) time.Duration {
	if text == "" {
		return fallback
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		r.Fail(location, text, "is not a duration such as 30s, 5m or 1h30m")
		if days, err := strconv.Atoi(strings.TrimSuffix(text, "d")); err == nil && strings.HasSuffix(text, "d") {
			r.Fields[len(r.Fields)-1].Hint = fmt.Sprintf("write %dh", 24*days)
		}
		return fallback
	}
	rounded := d.Round(time.Millisecond)
	if d != 0 && rounded == 0 {
		r.Fail(location, text, "is less than a millisecond, the smallest step")
	}
	return rounded
}

// Instant reads RFC 3339; nil and empty give the zero time.
func (r *Reader) Instant(location string, text *string) time.Time {
	if text == nil || *text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		r.Fail(location, *text, "is not an instant such as 2026-11-21T04:00:00Z")
		r.Fields[len(r.Fields)-1].Hint = instantHint(*text)
		return time.Time{}
	}
	if t.Year() < 1970 || t.Year() > domain.LastYear {
		r.Fail(location, *text, "must lie in the years from 1970 to 9998")
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// The forms in which people write an instant. RFC 3339 wants a T, seconds and the
// offset from UTC.
var (
	withoutOffset = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"}
	withOffset    = []string{"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05 Z0700", "2006-01-02T15:04Z07:00"}
)

// instantHint gives the right form of an instant that was written in another one. It
// does not guess an offset that is missing.
func instantHint(text string) string {
	for _, layout := range withOffset {
		if t, err := time.Parse(layout, text); err == nil {
			return "write " + t.Format(time.RFC3339)
		}
	}
	for _, layout := range withoutOffset {
		if t, err := time.Parse(layout, text); err == nil {
			return "the offset from UTC is missing: write " + t.Format(time.RFC3339) + " for UTC, or the offset of your clocks as in " + t.Format("2006-01-02T15:04:05") + "+08:00"
		}
	}
	return ""
}

// Future reads an optional instant that must lie ahead, such as an expiry.
func (r *Reader) Future(location string, text *string, now time.Time) time.Time {
	t := r.Instant(location, text)
	if !t.IsZero() && !t.After(now) {
		r.Fail(location, *text, "lies in the past")
	}
	return t
}

// selectors is the grammar of selectors, as a hint.
const selectors = "terms are team=pay, tier in (gold, silver), env!=test, env notin (a, b), gpu and !spot, with commas between them"

// Selector reads a selector of labels.
func (r *Reader) Selector(location, text string) domain.Selector {
	s, err := domain.ParseSelector(text)
	if err == nil {
		err = s.Contradiction()
	}
	if err != nil {
		r.Fail(location, text, "%s", err.Error())
		r.Fields[len(r.Fields)-1].Hint = selectors
	}
	return s
}

// Name checks what people read in lists and logs, without the spaces around it.
func (r *Reader) Name(location, text string, maxBytes int) string {
	trimmed := strings.TrimSpace(text)
	if wrong := domain.WrongName(trimmed, maxBytes); wrong != "" {
		r.Fail(location, nil, "%s", wrong)
	}
	return trimmed
}

// MaxInput bounds a run's input in bytes of JSON; it is the wire's limit.
const MaxInput = 256 << 10

// JSON compacts a JSON value; null and nothing give nil.
func (r *Reader) JSON(location string, raw json.RawMessage) []byte {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		r.Fail(location, nil, "is not JSON")
		return nil
	}
	if out.Len() > MaxInput {
		r.Fail(location, nil, "must have at most %d bytes of JSON, has %d", MaxInput, out.Len())
		return nil
	}
	return out.Bytes()
}

// RawOrNull is the JSON value for an answer. An earlier version stored bytes that
// are not UTF-8. U+FFFD stands for them in the answer.
func RawOrNull(raw []byte) json.RawMessage {
	if len(raw) == 0 || !json.Valid(raw) {
		return json.RawMessage("null")
	}
	if !utf8.Valid(raw) {
		return bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	return raw
}

// id reads an optional id in a query; location only serves the message.
func OptionalID[T ~int64](r *Reader, location, text string) T {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		r.Fail(location, text, "is not an id")
		return 0
	}
	return T(n)
}

// IDOrNull writes an id that may be missing.
func IDOrNull[T ~int64](id T) *string {
	if id == 0 {
		return nil
	}
	s := strconv.FormatInt(int64(id), 10)
	return &s
}

// EmptyIfNil makes JSON say [] instead of null.
func EmptyIfNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// EmptyMapIfNil makes JSON say {} instead of null.
func EmptyMapIfNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// Filter checks the selector of labels that a list is filtered by.
func (r *Reader) Filter(location, text string) {
	if _, err := domain.ParseFilter(text); err != nil {
		r.Fail(location, text, "%s", err.Error())
		r.Fields[len(r.Fields)-1].Hint = selectors
	}
}
