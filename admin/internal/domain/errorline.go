package domain

import (
	"strings"
	"unicode"
)

// maxErrorLine is how many characters ErrorLine has at most.
const maxErrorLine = 200

// ErrorLine is the first line of an error's text that says anything, for lists and
// sentences. It is clipped, and has no control characters.
func ErrorLine(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(line, "\uFFFD")))
		if line == "" {
			continue
		}
		if runes := []rune(line); len(runes) > maxErrorLine {
			return string(runes[:maxErrorLine-1]) + "…"
		}
		return line
	}
	return ""
}
