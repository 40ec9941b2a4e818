package cli

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// PrintOne writes the object that an operation answered with.
func PrintOne[T any](s *Session, view output.View[T], doc apiclient.Doc[T], err error) error {
	if err != nil {
		return err
	}
	return output.One(s.Printer, view, doc)
}

// PrintMachine is PrintOne for formats that are for programs; done is false for others.
func PrintMachine[T any](s *Session, doc apiclient.Doc[T], err error) (done bool, _ error) {
	if err != nil {
		return true, err
	}
	return output.Machine(s.Printer, doc)
}

// PrintList writes what an operation has listed; none is said where that is nothing.
func PrintList[T any](a *App, s *Session, view output.View[T], list []apiclient.Doc[T], err error, none string) error {
	if err != nil {
		return err
	}
	if len(list) == 0 && none != "" {
		a.Say("%s", none)
	}
	return output.List(s.Printer, view, list)
}

// printer colours and fits to the width on a terminal only.
func (a *App) printer(format output.Format, noColor bool) *output.Printer {
	p := &output.Printer{Out: a.Out, Format: format}
	if f, ok := a.Out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.Color = !noColor && a.getenv("NO_COLOR") == "" && a.getenv("CI") == "" && a.getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			p.Width = width
		}
	}
	return p
}

// InstantBefore reads a span before now, or an instant.
func (a *App) InstantBefore(flag, text string) (string, error) {
	if d, err := settings.ParseSpan(text); err == nil && d >= 0 {
		return output.Stamp(a.Now().Add(-d)), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", Usagef("%s %q is neither a span such as 24h or 7d nor an instant such as 2026-11-21T04:00:00Z", flag, text)
	}
	return output.Stamp(t), nil
}

// InstantAfter reads an instant, a span after now, or a time of day in the local zone. A time such
// as 02:00 is the next one behind after. The forms "today 02:00", "tomorrow 02:00" and
// "2026-12-24 02:00" name the day.
func (a *App) InstantAfter(flag, text string, after time.Time) (time.Time, error) {
	day, clock, named := strings.Cut(text, " ")
	if !named {
		day, clock = "", text
	}
	if of, err := time.Parse("15:04", clock); err == nil {
		on := after
		switch strings.ToLower(day) {
		case "":
		case "today":
			on = a.Now()
		case "tomorrow":
			on = a.Now().AddDate(0, 0, 1)
		default:
			if on, err = time.ParseInLocation(time.DateOnly, day, after.Location()); err != nil {
				return time.Time{}, notAhead(flag, text)
			}
		}
		year, month, date := on.Date()
		at := time.Date(year, month, date, of.Hour(), of.Minute(), 0, 0, on.Location())
		if day == "" && !at.After(after) {
			at = time.Date(year, month, date+1, of.Hour(), of.Minute(), 0, 0, on.Location())
		}
		return at, nil
	}
	if m := calendarDays.FindStringSubmatch(text); m != nil { // days of the calendar keep the time of day
		if n, err := strconv.Atoi(m[1]); err == nil {
			return a.Now().AddDate(0, 0, min(n, 36500)), nil
		}
	}
	if d, err := settings.ParseSpan(text); err == nil && d >= 0 {
		return a.Now().Add(d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, notAhead(flag, text)
	}
	return at, nil
}

// calendarDays is a span of whole days.
var calendarDays = regexp.MustCompile(`^(\d+)d$`)

func notAhead(flag, text string) error {
	return Usagef("%s %q is no instant: write 2026-11-21T04:00:00Z, a span such as 2h or 1d, 02:00, 'tomorrow 02:00' or '2026-12-24 02:00'", flag, text)
}

// StampOrEmpty writes an instant that may not be there.
func StampOrEmpty(t *time.Time) string {
	if t == nil {
		return ""
	}
	return output.Stamp(*t)
}

// SayTotal says how many items a list has beside those that are shown.
func (a *App) SayTotal(shown int, total *apiclient.Total, what string) {
	switch {
	case total == nil || total.Count < int64(shown):
		a.Say("Showing %d %s; more with --limit (0 = all).", shown, what)
	case total.More:
		a.Say("%d of %d+ %s; more with --limit (0 = all).", shown, total.Count, what)
	case total.Count > int64(shown):
		a.Say("%d of %d %s; more with --limit (0 = all).", shown, total.Count, what)
	}
}

// Number writes a number of the API.
func Number(n int64) string { return strconv.FormatInt(n, 10) }

// Say writes one line of talk.
func (a *App) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Err, format+"\n", args...) // talk that nobody can hear
}

// FirstLine is the first line of a text, without space around it.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}

// ETag is what an object with this revision or version answers to If-Match.
func ETag(revision int64) string { return `"` + Number(revision) + `"` }
