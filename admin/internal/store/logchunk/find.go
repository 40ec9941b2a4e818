package logchunk

import (
	"bytes"
	"math/bits"
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
	marks []uint32
}

// NewFilter finds lines of at least this level that have the text in their
// message, attributes or trace id, in any case. An empty text is in all lines.
func NewFilter(level int, text string) Filter {
	f := Filter{level: level, text: strings.ToLower(text)}
	eachMark(f.text, func(m uint32) { f.marks = append(f.marks, m) })
	return f
}

// NeedsAid says that a search aid can spare something.
func (f *Filter) NeedsAid() bool { return len(f.marks) > 0 }

// MayHold says that a chunk with these levels and this aid may have a line that
// matches. Only no is certain.
func (f *Filter) MayHold(levels Levels, aid []byte) bool {
	if levels>>levelClass(f.level) == 0 {
		return false
	}
	if len(aid) == 0 {
		return true
	}
	mask := uint32(len(aid)*8 - 1)
	for _, m := range f.marks {
		for _, bit := range [2]uint32{m & mask, m >> 16 & mask} {
			if aid[bit/8]&(1<<(bit%8)) == 0 {
				return false
			}
		}
	}
	return true
}

// mayBeIn says that the text may be in the texts that stand in raw, one after
// the other. Only no is certain.
func (f *Filter) mayBeIn(raw []byte) bool {
	if f.text == "" {
		return true
	}
	for i := range len(f.text) {
		if f.text[i] >= utf8.RuneSelf {
			return bytes.Contains(bytes.ToLower(raw), []byte(f.text))
		}
	}
	lower := make([]byte, len(raw))
	for i, c := range raw {
		if c-'A' < 26 {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	// The two letters beyond ASCII that become letters of ASCII: K as the sign
	// for kelvin, and the capital I with a dot.
	return bytes.Contains(lower, []byte(f.text)) || bytes.Contains(raw, []byte("\u212a")) || bytes.Contains(raw, []byte("\u0130"))
}

// Match says whether the line is looked for.
func (f *Filter) Match(l *domain.LogLine) bool {
	return l.Level >= f.level &&
		(f.text == "" || strings.Contains(strings.ToLower(l.Message), f.text) || strings.Contains(strings.ToLower(string(l.Attrs)), f.text) ||
			strings.Contains(l.TraceID, f.text))
}

// The search aid is a Bloom filter of all runs of three bytes in the lower-case
// texts, two bits each: a text can only be in a chunk that has all runs of the
// text. 16 bits of the mark choose each bit.
const (
	maxAidBytes = 4 << 10
	minAidBytes = 64
)

// eachMark calls f with the mark of every run of three bytes.
func eachMark(text string, f func(uint32)) {
	for i := 0; i+3 <= len(text); i++ {
		f(mix(uint32(text[i])<<16 | uint32(text[i+1])<<8 | uint32(text[i+2])))
	}
}

// mix spreads what differs in few bits over all of them (the end of
// MurmurHash3; public domain). Stored aids depend on it.
func mix(h uint32) uint32 {
	h *= 0x85EBCA6B
	h ^= h >> 13
	h *= 0xC2B2AE35
	return h ^ h>>16
}

type aidBuilder struct{ bits [maxAidBytes]byte }

func (a *aidBuilder) add(text string) {
	eachMark(strings.ToLower(text), func(m uint32) {
		const mask = maxAidBytes*8 - 1
		lo, hi := m&mask, m>>16&mask
		a.bits[lo/8] |= 1 << (lo % 8)
		a.bits[hi/8] |= 1 << (hi % 8)
	})
}

// bytes returns the smallest aid that is at most half full: folding one in the
// middle gives the one of half the size. One that is too full even at full size
// does not help and is left out.
func (a *aidBuilder) bytes() []byte {
	set := 0
	for _, b := range a.bits {
		set += bits.OnesCount8(b)
	}
	if set > maxAidBytes*8*3/4 {
		return nil
	}
	all := append([]byte(nil), a.bits[:]...)
	for len(all) > minAidBytes {
		half := make([]byte, len(all)/2)
		set := 0
		for i := range half {
			half[i] = all[i] | all[i+len(half)]
			set += bits.OnesCount8(half[i])
		}
		if set > len(half)*8/2 {
			break
		}
		all = half
	}
	return all
}
