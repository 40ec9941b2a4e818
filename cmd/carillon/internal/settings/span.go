package settings

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// Units are the units of a span of time, for messages.
const Units = "ms, s, m, h and d, such as 90s, 1h30m, 7d or 1d12h"

// maxDays bounds the days of a span: a longer one does not fit into a time.Duration.
const maxDays = 36500

// days are the leading days of a span.
var days = regexp.MustCompile(`^([-+]?)(\d+)d(.*)$`)

// ParseSpan reads a span of time as all flags, variables and settings take it: a duration of Go,
// which may begin with days of 24 hours. Its error names the units.
func ParseSpan(text string) (time.Duration, error) {
	sign, rest, whole := "", text, time.Duration(0)
	if m := days.FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[2])
		if err != nil || n > maxDays {
			return 0, fmt.Errorf("%q is too long: a span has at most %d days", text, maxDays)
		}
		if sign, rest, whole = m[1], m[3], time.Duration(n)*24*time.Hour; rest == "" {
			rest = "0s"
		}
		if rest[0] == '-' || rest[0] == '+' {
			return 0, notSpan(text)
		}
	}
	part, err := time.ParseDuration(rest)
	if err != nil {
		return 0, notSpan(text)
	}
	if sign == "-" {
		return -(whole + part), nil
	}
	return whole + part, nil
}

func notSpan(text string) error {
	return fmt.Errorf("%q is no span of time: write a number with its unit; units are %s", text, Units)
}

// Span adds a flag with a span of time.
func Span(f *pflag.FlagSet, name string, standard time.Duration, usage string) {
	SpanVar(f, new(time.Duration), name, standard, usage)
}

// SpanVar adds a flag with a span of time, which is stored in to.
func SpanVar(f *pflag.FlagSet, to *time.Duration, name string, standard time.Duration, usage string) {
	*to = standard
	f.Var((*span)(to), name, usage)
}

// SpanTextVar adds a flag with a span of time that the API takes: to becomes a duration of Go.
// Empty: the flag was not given.
func SpanTextVar(f *pflag.FlagSet, to *string, name, usage string) {
	f.Var((*spanText)(to), name, usage)
}

// span and spanText have the type of pflag's durations, so that the layers of settings read them.
type (
	span     time.Duration
	spanText string
)

func (s *span) String() string { return time.Duration(*s).String() }
func (s *span) Type() string   { return "duration" }

func (s *span) Set(text string) error {
	d, err := ParseSpan(text)
	if err == nil {
		*s = span(d)
	}
	return err
}

func (s *spanText) String() string { return string(*s) }
func (s *spanText) Type() string   { return "duration" }

func (s *spanText) Set(text string) error {
	d, err := ParseSpan(text)
	if err == nil && d < 0 {
		err = errors.New("it must not be negative")
	}
	switch _, short := time.ParseDuration(text); {
	case err != nil:
	case short == nil:
		*s = spanText(text)
	default:
		*s = spanText(d.String())
	}
	return err
}
