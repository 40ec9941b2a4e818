package schedule

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Field names one field of a cron expression. The values are stable: the API
// and the UI use them to mark the field that is wrong.
type Field string

// The fields, in the order in which Quartz writes them. FieldNone stands for
// the expression as a whole.
const (
	FieldNone       Field = ""
	FieldSecond     Field = "second"
	FieldMinute     Field = "minute"
	FieldHour       Field = "hour"
	FieldDayOfMonth Field = "day_of_month"
	FieldMonth      Field = "month"
	FieldDayOfWeek  Field = "day_of_week"
	FieldYear       Field = "year"
)

// label is the field's name as a person reads it.
func (f Field) label() string { return strings.ReplaceAll(string(f), "_", "-") }

// Code tells a machine what is wrong with an expression. Codes are stable.
type Code string

// What can be wrong with an expression.
const (
	CodeEmpty       Code = "empty"            // nothing but white space
	CodeTooLong     Code = "too_long"         // longer than MaxExprLen bytes
	CodeFieldCount  Code = "field_count"      // too few or too many fields for the dialect
	CodeCharacter   Code = "unexpected_char"  // a character that has no meaning there
	CodeMissing     Code = "missing_value"    // a value was expected: "1,,2", "5-", "*/"
	CodeOutOfRange  Code = "out_of_range"     // a number outside the field's range
	CodeUnknownName Code = "unknown_name"     // a word that is no month or day
	CodeBadRange    Code = "bad_range"        // a year range that runs backwards, a mixed range
	CodeBadStep     Code = "bad_step"         // step zero or larger than the field
	CodeNotHere     Code = "not_allowed_here" // ? L W # in a field or dialect without it
	CodeCombination Code = "bad_combination"  // parts which exclude each other
	CodeDescriptor  Code = "bad_descriptor"   // an unknown @word or a bad @every interval
	CodeDialect     Code = "unknown_dialect"  // the dialect itself is none of ours
)

// ParseError says what is wrong with an expression, and where. Every refused
// expression gives exactly one, about its first fault.
type ParseError struct {
	Expr  string // the expression as it was given
	Pos   int    // byte offset of the fault in Expr, 0..len(Expr)
	Len   int    // bytes to mark from Pos; at least 1, except at the end of Expr where it may point past it
	Field Field  // the field it is in; FieldNone when it is about the whole
	Code  Code   // for machines
	Msg   string // for people: one clause in English, without position; In has others
	Hint  string // what to write instead; may be empty
}

// Error gives one line with the position, fit for a log:
//
//	cron "0 25 * * *": column 3, hour: 25 is outside 0-23
//
// Columns count characters from 1. Use Detail for a form with a caret.
func (e *ParseError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cron %q: column %d", e.Expr, e.column())
	if e.Field != FieldNone {
		b.WriteString(", " + e.Field.label())
	}
	b.WriteString(": " + e.Msg)
	return b.String()
}

// Caret gives two lines: the expression, and carets below the faulty part.
// Both are plain text for a fixed-width font; control characters are shown as
// spaces so that the carets stay in place.
func (e *ParseError) Caret() string {
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return ' '
		}
		return r
	}, e.Expr)
	end := min(e.Pos+e.Len, len(e.Expr))
	marks := 1
	if e.Pos < end {
		marks = utf8.RuneCountInString(e.Expr[e.Pos:end])
	}
	return line + "\n" + strings.Repeat(" ", e.column()-1) + strings.Repeat("^", marks)
}

// Detail is what a terminal shows: message, expression, carets and hint, each
// on its own line, the last without a line break.
func (e *ParseError) Detail() string { return e.DetailIn("en") }

// DetailIn is Detail in a language, "en" or "zh"; others give English. The
// place is the same.
func (e *ParseError) DetailIn(lang string) string {
	label, colon, hint := e.Field.label(), ": ", "hint: "
	if language(lang) == 1 {
		label, colon, hint = labelsZH[e.Field], "：", "提示："
	}
	var b strings.Builder
	if e.Field != FieldNone {
		b.WriteString(label + colon)
	}
	msg, advice := e.In(lang)
	b.WriteString(msg + "\n  " + strings.ReplaceAll(e.Caret(), "\n", "\n  "))
	if advice != "" {
		b.WriteString("\n" + hint + advice)
	}
	return b.String()
}

// In is Msg and Hint in a language.
func (e *ParseError) In(lang string) (msg, hint string) {
	return translate(e.Msg, lang), translate(e.Hint, lang)
}

// column is the fault's place in characters, counted from 1.
func (e *ParseError) column() int {
	return utf8.RuneCountInString(e.Expr[:min(e.Pos, len(e.Expr))]) + 1
}
