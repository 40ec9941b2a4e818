package db

import (
	"strings"
	"unicode/utf8"
)

// likeEscaper makes user input literal inside a LIKE pattern with ESCAPE '!'.
var likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

// Literal is a part of a LIKE pattern with ESCAPE '!' that stands for itself.
func Literal(text string) string { return likeEscaper.Replace(text) }

// Contains is a LIKE pattern with ESCAPE '!' for a text that may begin and end elsewhere.
func Contains(text string) string { return "%" + Literal(text) + "%" }

// TextIn is a condition: one of the columns contains the text, in any case. The database
// folds both. SQLite folds the letters of ASCII only. Other letters are found in lower case,
// too, if they are given in upper case.
func TextIn(text string, columns ...string) (where string, args []any) {
	return likeIn(text, Contains, columns)
}

// PrefixIn is TextIn for the beginning of a column.
func PrefixIn(text string, columns ...string) (where string, args []any) {
	return likeIn(text, func(text string) string { return Literal(text) + "%" }, columns)
}

func likeIn(text string, pattern func(string) string, columns []string) (where string, args []any) {
	var found []string
	for _, c := range columns {
		found, args = append(found, "LOWER("+c+") LIKE LOWER(?) ESCAPE '!'"), append(args, pattern(text))
		if strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
			found, args = append(found, "LOWER("+c+") LIKE ? ESCAPE '!'"), append(args, pattern(strings.ToLower(text)))
		}
	}
	return "(" + strings.Join(found, " OR ") + ")", args
}

// PrefixEnd is the first text behind all that begin with prefix, by code points as
// both databases compare; empty: there is none.
func PrefixEnd(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		if last < utf8.MaxRune {
			if last++; last >= 0xD800 && last < 0xE000 { // no characters
				last = 0xE000
			}
			return prefix + string(last)
		}
	}
	return ""
}
