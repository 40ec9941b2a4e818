package schedule

import "strings"

// Dialect says how an expression is read. It is part of a job's definition:
// the same text means different days in different dialects (doc.go, "Day
// numbers"), so a stored job carries the dialect that was resolved, never Auto.
type Dialect string

// The dialects. The empty string means DialectAuto.
const (
	// DialectAuto chooses by shape: see Detect.
	DialectAuto Dialect = "auto"
	// DialectStandard is classic unix cron: minute, hour, day of month, month,
	// day of week (0 or 7 = Sunday), and @daily-like descriptors.
	DialectStandard Dialect = "standard"
	// DialectSeconds is DialectStandard with a leading field for seconds.
	DialectSeconds Dialect = "seconds"
	// DialectQuartz is Quartz 2.3: second, minute, hour, day of month, month,
	// day of week (1 = Sunday) and an optional year; with ? L W and #.
	DialectQuartz Dialect = "quartz"
)

// Valid reports whether d is one of the dialects, "" included.
func (d Dialect) Valid() bool {
	switch d {
	case "", DialectAuto, DialectStandard, DialectSeconds, DialectQuartz:
		return true
	}
	return false
}

// dayNames are the only words besides L and W that a day-of-week field holds.
var dayNames = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

// Detect tells which dialect DialectAuto takes for an expression. It looks at
// the shape only and does not say that the expression is right:
//
//   - a descriptor (@daily) or 5 fields: DialectStandard;
//   - 7 fields: DialectQuartz;
//   - 6 fields with ?, #, or an L or W that is not part of a day's name:
//     DialectQuartz;
//   - 6 fields otherwise: DialectSeconds.
//
// Real Quartz demands exactly one ? in an expression, so none of its 6-field
// expressions is ever taken for DialectSeconds.
func Detect(expr string) Dialect {
	tokens := split(expr)
	switch {
	case len(tokens) >= 7:
		return DialectQuartz
	case len(tokens) == 6 && hasQuartzMark(tokens):
		return DialectQuartz
	case len(tokens) == 6:
		return DialectSeconds
	}
	return DialectStandard
}

// hasQuartzMark looks for what only Quartz writes in six fields.
func hasQuartzMark(tokens []token) bool {
	for _, t := range tokens {
		if strings.ContainsAny(t.text, "?#") {
			return true
		}
	}
	if strings.ContainsAny(tokens[3].text, "LWlw") {
		return true
	}
	days := strings.ToUpper(tokens[5].text)
	for _, name := range dayNames {
		// A space, so that what stood around a name does not grow together.
		days = strings.ReplaceAll(days, name, " ")
	}
	return strings.ContainsAny(days, "LW")
}

// token is one field's text and its byte offset in the expression.
type token struct {
	text string
	pos  int
}

// split cuts an expression at spaces and tabs, as Quartz and cron do.
func split(expr string) []token {
	var tokens []token
	start := -1
	for i := 0; i <= len(expr); i++ {
		blank := i == len(expr) || expr[i] == ' ' || expr[i] == '\t'
		if blank && start >= 0 {
			tokens = append(tokens, token{expr[start:i], start})
			start = -1
		} else if !blank && start < 0 {
			start = i
		}
	}
	return tokens
}
