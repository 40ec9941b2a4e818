package output

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// palette gives states their colour; the words stay, so colour is never the
// only sign.
var palette = map[string]text.Colors{
	"succeeded": {text.FgGreen}, "online": {text.FgGreen}, "enabled": {text.FgGreen},
	"running": {text.FgBlue}, "cancelling": {text.FgBlue},
	"failed": {text.FgRed}, "lost": {text.FgMagenta}, "silent": {text.FgRed},
	"timed_out": {text.FgYellow}, "missed": {text.FgYellow}, "draining": {text.FgYellow}, "discarded": {text.FgYellow},
	"retry_wait": {text.FgMagenta}, "paused": {text.FgYellow},
	"due": {text.FgHiBlack}, "offered": {text.FgHiBlack}, "cancelled": {text.FgHiBlack}, "excluded": {text.FgHiBlack}, "gone": {text.FgHiBlack},
}

// colored paints a cell that is a state. The escape codes are written by hand,
// because whether to colour has been decided already.
func colored(cell string) string {
	state, _, _ := strings.Cut(cell, ",")
	if c, ok := palette[state]; ok {
		return c.EscapeSeq() + cell + text.EscapeReset
	}
	return cell
}

// When writes an instant for people: how long ago or until, from now.
func When(t *time.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	if d := t.Sub(now); d >= time.Second {
		return "in " + Span(d)
	} else if d > -time.Second {
		return "now"
	}
	return Span(now.Sub(*t)) + " ago"
}

// Span writes a duration with at most two units: 850 ms, 12.3 s, 1 m 12 s, 3 h 5 m, 12 d.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Span(-d)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return two(int(d/time.Minute), "m", int(d/time.Second)%60, "s")
	case d < 24*time.Hour:
		return two(int(d/time.Hour), "h", int(d/time.Minute)%60, "m")
	default:
		return two(int(d/(24*time.Hour)), "d", int(d/time.Hour)%24, "h")
	}
}

func two(big int, bigUnit string, small int, smallUnit string) string {
	if small == 0 {
		return fmt.Sprintf("%d %s", big, bigUnit)
	}
	return fmt.Sprintf("%d %s %d %s", big, bigUnit, small, smallUnit)
}

// Millis is Span of an optional number of milliseconds.
func Millis(ms *int64) string {
	if ms == nil {
		return ""
	}
	return Span(time.Duration(*ms) * time.Millisecond)
}

// Stamp is an instant in UTC with milliseconds, as the API writes it.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Fields writes "title  value" lines, aligned; empty values are left out.
func (p *Printer) Fields(pairs ...string) error {
	widest := 0
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			widest = max(widest, text.StringWidth(pairs[i]))
		}
	}
	var out strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		value := Clean(pairs[i+1])
		if p.Color {
			value = colored(value)
		}
		out.WriteString(text.Pad(pairs[i], widest+2, ' ') + value + "\n")
	}
	_, err := p.Out.Write([]byte(out.String()))
	return err
}
