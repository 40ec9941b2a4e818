package logchunk

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Levels is the set of levels in a chunk: bit 0 below DEBUG, 1 DEBUG, 2 INFO,
// 3 WARN, 4 ERROR and above. Levels between count as the one below them.
type Levels uint16

// AllLevels is of a chunk whose levels are not known.
const AllLevels Levels = 1<<5 - 1

func levelClass(level int) int {
	switch {
	case level < -4:
		return 0
	case level < 0:
		return 1
	case level < 4:
		return 2
	case level < 8:
		return 3
	default:
		return 4
	}
}

func levelBit(level int) Levels { return 1 << levelClass(level) }

// Filter decides which lines are looked for.
type Filter struct {
	level int
	text  string // lower case
	marks marks
	// anchor is the longest part of text without letters, at this offset.
	anchor   string
	anchorAt int
}

// NewFilter finds lines of at least this level that have the text in their
// message, attributes or trace id, in any case. An empty text is in all lines.
func NewFilter(level int, text string) Filter {
	f := Filter{level: level, text: strings.ToLower(text)}
	f.marks = marksOf(f.text)
	f.anchor, f.anchorAt = anchorOf(f.text)
	return f
}

// anchorOf returns the longest part of a text that is the same in any case.
func anchorOf(text string) (anchor string, at int) {
	start := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] < utf8.RuneSelf && (text[i] < 'a' || text[i] > 'z') {
			continue
		}
		if i-start > len(anchor) {
			anchor, at = text[start:i], start
		}
		start = i + 1
	}
	return anchor, at
}

// NeedsAid says that a search aid can spare something.
func (f *Filter) NeedsAid() bool { return !f.marks.none() }

// MayHold says that a chunk of this format with these levels and this aid may
// have a line that matches. Only no is certain.
func (f *Filter) MayHold(levels Levels, aid []byte, format int) bool {
	return levels>>levelClass(f.level) != 0 && f.marks.mayBeIn(aid, format)
}

// mayBeIn says that the text may be in the texts that stand in raw, one after
// the other. Only no is certain.
func (f *Filter) mayBeIn(raw []byte) bool {
	if f.text == "" {
		return true
	}
	if strings.ContainsAny(f.text, "ik") && (bytes.Contains(raw, []byte("\u212a")) || bytes.Contains(raw, []byte("\u0130"))) {
		// The two letters beyond ASCII that become letters of ASCII: K as the
		// sign for kelvin, and the capital I with a dot.
		return true
	}
	if f.anchor != "" {
		return f.anchored(raw)
	}
	for i := range len(f.text) {
		if f.text[i] >= utf8.RuneSelf {
			return bytes.Contains(bytes.ToLower(raw), []byte(f.text))
		}
	}
	lower := make([]byte, len(raw))
	for i, c := range raw {
		lower[i] = toLower(c)
	}
	return bytes.Contains(lower, []byte(f.text))
}

// anchored looks at the places where the anchor stands, which no case hides:
// most chunks are done with at the speed of a plain search.
func (f *Filter) anchored(raw []byte) bool {
	anchor := []byte(f.anchor)
	for from := 0; ; {
		i := bytes.Index(raw[from:], anchor)
		if i < 0 {
			return false
		}
		if f.around(raw, from+i) {
			return true
		}
		from += i + 1
	}
}

// around says that what stands at both sides of an anchor in raw may be the
// rest of the text: up to a letter that may have another length in the other case.
func (f *Filter) around(raw []byte, anchor int) bool {
	for i := 1; i <= f.anchorAt && f.text[f.anchorAt-i] < utf8.RuneSelf; i++ {
		if i > anchor || toLower(raw[anchor-i]) != f.text[f.anchorAt-i] {
			return false
		}
	}
	behind, rest := f.text[f.anchorAt+len(f.anchor):], raw[anchor+len(f.anchor):]
	for i := 0; i < len(behind) && behind[i] < utf8.RuneSelf; i++ {
		if i >= len(rest) || toLower(rest[i]) != behind[i] {
			return false
		}
	}
	return true
}

func toLower(c byte) byte {
	if c-'A' < 26 {
		c += 'a' - 'A'
	}
	return c
}

// Match says whether the line is looked for.
func (f *Filter) Match(l *domain.LogLine) bool {
	return l.Level >= f.level &&
		(f.text == "" || strings.Contains(strings.ToLower(l.Message), f.text) || strings.Contains(strings.ToLower(string(l.Attrs)), f.text) ||
			strings.Contains(l.TraceID, f.text))
}
