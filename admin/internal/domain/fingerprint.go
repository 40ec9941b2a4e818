package domain

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Fingerprint is a hash of the normalised text of an error. 0: there is none, or it counts
// among the others of its job (docs/adr/0104).
type Fingerprint uint64

// String is what the API shows and takes: 16 hex digits.
func (f Fingerprint) String() string { return fmt.Sprintf("%016x", uint64(f)) }

// ParseFingerprint reads String.
func ParseFingerprint(s string) (Fingerprint, bool) {
	n, err := strconv.ParseUint(s, 16, 64)
	return Fingerprint(n), err == nil && len(s) == 16
}

const (
	// ErrorTextSize bounds a normalised text, in bytes.
	ErrorTextSize = 200
	// errorTextRead is how many bytes of an error are looked at.
	errorTextRead = 1024
)

// FailedState reports whether a run in this state has ended badly after it was started.
func FailedState(s State) bool { return s == Failed || s == TimedOut || s == Lost }

// FailedStates are those of FailedState.
var FailedStates = []State{Failed, TimedOut, Lost}

// ErrorOf returns the fingerprint of the error that a run ended with, and its text. It is 0 for
// a run that did not end badly.
func ErrorOf(e *Execution) (Fingerprint, string) {
	if !FailedState(e.State) {
		return 0, ""
	}
	kind, text := e.ErrorKind, e.Error
	if e.Reason == ReasonSetAside {
		kind, text = "", "" // they are those of an attempt before
	}
	if text == "" {
		text = e.Message
	}
	words := slices.Compact(slices.DeleteFunc([]string{kind, string(e.Reason)}, func(s string) bool { return s == "" }))
	if len(words) == 0 {
		words = []string{e.State.String()}
	}
	text = cutText(strings.Join(words, " ")+": "+NormalError(text), ErrorTextSize)
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return Fingerprint(max(1, h.Sum64())), text
}

// cutText is the beginning of a text, in whole characters and at most size bytes.
func cutText(s string, size int) string {
	return strings.ToValidUTF8(strings.TrimSuffix(strings.TrimSpace(s[:min(len(s), size)]), ":"), "")
}

// NormalError is the first line of an error, with marks in place of what differs from one
// run to the next: quoted strings, paths, times, ids and numbers.
func NormalError(text string) string {
	text = strings.TrimSpace(text[:min(len(text), errorTextRead)])
	text, _, _ = strings.Cut(text, "\n")
	var out strings.Builder
	space := false
	for len(text) > 0 {
		word, n := "<text>", quoted(text, out.Len() > 0 && !space && wordEnds(out.String()))
		if n == 0 {
			n = strings.IndexFunc(text, separates)
			if n < 0 {
				n = len(text)
			}
			word = normalWord(text[:n])
		}
		if n == 0 {
			r, size := utf8.DecodeRuneInString(text)
			word, n = string(r), size
			if unicode.IsSpace(r) {
				word, space = "", out.Len() > 0
			}
		}
		if text = text[n:]; word == "" {
			continue
		}
		if space {
			out.WriteByte(' ')
			space = false
		}
		out.WriteString(word)
	}
	return out.String()
}

// separates are the characters between words. A quote ends a word as well.
func separates(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("=,;()[]{}<>|\"`'", r)
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// wordEnds reports whether a text ends with a letter or a digit.
func wordEnds(s string) bool {
	c := s[len(s)-1]
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// quoted returns the length of the quoted string that a text begins with; 0: it begins with
// none. Within a word, ' is an apostrophe.
func quoted(text string, inWord bool) int {
	if !isQuote(text[0]) || text[0] == '\'' && inWord {
		return 0
	}
	if end := strings.IndexByte(text[1:], text[0]); end >= 0 {
		return end + 2
	}
	return 0
}

// normalWord is a word, or the mark for what it is. Punctuation at its ends stays.
func normalWord(word string) string {
	core := strings.TrimRight(word, ".:!?")
	end := word[len(core):]
	switch _, err := time.ParseDuration(core); {
	case core == "":
		return word
	case strings.ContainsAny(core, `/\`):
		return "<path>" + end
	case err == nil && core != "0", isTime(core):
		return "<time>" + end
	case isIdentifier(core):
		return "<id>" + end
	}
	return digitRuns(core) + end
}

// isTime recognises dates, clock times and instants.
func isTime(s string) bool {
	marks := strings.Count(s, "-") + strings.Count(s, ":")
	return marks >= 2 && s[0] >= '0' && s[0] <= '9' && strings.Trim(s, "0123456789-:.TZ+") == ""
}

// isIdentifier recognises hex of at least 8 digits, and long mixtures of letters and digits.
func isIdentifier(s string) bool {
	if strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") {
		return true
	}
	if !strings.ContainsAny(s, "0123456789") {
		return false
	}
	rest := strings.Trim(s, "0123456789abcdefABCDEF-")
	digits := strings.Trim(s, "0123456789") == ""
	if len(s) >= 8 && rest == "" && !digits {
		return true
	}
	plain := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' }) < 0
	return len(s) >= 16 && plain && !digits
}

// digitRuns has # in place of each number. A number may have a sign and parts with dots.
func digitRuns(s string) string {
	var out strings.Builder
	number := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		digit := c >= '0' && c <= '9'
		inside := number && c == '.' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9'
		if digit && !number {
			out.WriteByte('#')
		}
		if number = digit || inside; !number {
			out.WriteByte(c)
		}
	}
	return out.String()
}
