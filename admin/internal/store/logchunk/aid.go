package logchunk

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// The search aid is a Bloom filter of pieces of the lower-case texts, two bits
// each: a text can only be in a chunk that has all pieces of the text. Pieces
// are chosen by what is in them alone, so that one in a text that is looked for
// is one in the chunk as well:
//
//   - runs of three bytes without a digit;
//   - runs of five letters, digits, dots and hyphens with a digit at least:
//     parts of numbers, ids and addresses. A chunk of numbered lines has all
//     runs of three digits, but few of five;
//   - runs of three bytes with a digit, unless there are so many that they
//     would say little and crowd out the others. The first byte tells.
const (
	// maxAidBytes is of the bits before folding. Three in it makes for sizes
	// between the powers of two.
	maxAidBytes = 12 << 10
	minAidBytes = 64
	// fewNumbers is how many bits runs of three bytes with a digit may have
	// always; more when they are at most a quarter of the others'.
	fewNumbers = 512

	shortRun, longRun = 3, 5

	// numbersIn, in an aid's first byte: runs of three with a digit are in.
	numbersIn = 1
)

// aidFolds are the ways to fold the bits, from the smallest result on.
var aidFolds = [...]int{192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1}

// mark is a piece's two bits before folding.
type mark [2]uint32

// markOf spreads what differs in few bits over all of them. Stored aids depend
// on it. The constants are those of the end of MurmurHash3 (public domain).
func markOf(piece uint64) mark {
	h := piece * 0xFF51AFD7ED558CCD
	h ^= h >> 33
	h *= 0xC4CEB9FE1A85EC53
	h ^= h >> 33
	const all = maxAidBytes * 8
	return mark{uint32(h >> 32 * all >> 32), uint32(h & 0xFFFFFFFF * all >> 32)}
}

// Classes of bytes.
const (
	classDigit = 1 << iota
	classWord  // letters, digits, dots and hyphens
)

var classes = func() (c [256]uint8) {
	for i := range c {
		switch b := byte(i); {
		case b >= '0' && b <= '9':
			c[i] = classDigit | classWord
		case b >= 'a' && b <= 'z' || b == '.' || b == '-':
			c[i] = classWord
		}
	}
	return c
}()

// eachPiece calls plain for the pieces that are in every aid, and number for
// runs of three with a digit. The text is in lower case.
func eachPiece(text string, plain, number func(uint64)) {
	var last uint64           // the bytes so far
	digit, word := longRun, 0 // how long ago the last digit was; bytes of a word
	for i := range len(text) {
		class := classes[text[i]]
		last = last<<8 | uint64(text[i])
		digit++
		if class&classDigit != 0 {
			digit = 0
		}
		word++
		if class&classWord == 0 {
			word = 0
		}
		if i >= shortRun-1 {
			if digit < shortRun {
				number(last & (1<<(8*shortRun) - 1))
			} else {
				plain(last & (1<<(8*shortRun) - 1))
			}
		}
		if word >= longRun && digit < longRun {
			plain(last&(1<<(8*longRun)-1) | longRun<<56)
		}
	}
}

type aidBits [maxAidBytes / 8]uint64

func (a *aidBits) set(piece uint64) {
	for _, bit := range markOf(piece) {
		a[bit/64] |= 1 << (bit % 64)
	}
}

func ones(words []uint64) (n int) {
	for _, w := range words {
		n += bits.OnesCount64(w)
	}
	return n
}

type aidBuilder struct{ plain, numbers aidBits }

func (a *aidBuilder) add(text string) {
	eachPiece(strings.ToLower(text), a.plain.set, a.numbers.set)
}

// bytes returns the smallest aid that is at most half full. One that is too
// full even at full size does not help and is left out.
func (a *aidBuilder) bytes() []byte {
	kinds, set := byte(0), ones(a.plain[:])
	if ones(a.numbers[:]) <= max(fewNumbers, set/4) {
		kinds = numbersIn
		for i, w := range a.numbers {
			a.plain[i] |= w
		}
		set = ones(a.plain[:])
	}
	if set > maxAidBytes*8*3/4 {
		return nil
	}
	folded := a.plain[:]
	for _, parts := range aidFolds {
		size := len(a.plain) / parts
		if set/parts > size*32 {
			continue // no way that so many bits fall on each other
		}
		if try := a.plain.fold(size); ones(try) <= size*32 {
			folded = try
			break
		}
	}
	out := make([]byte, 1, 1+8*len(folded))
	out[0] = kinds
	for _, w := range folded {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}

// fold lays parts of so many words on each other.
func (a *aidBits) fold(words int) []uint64 {
	folded := make([]uint64, words)
	for i, w := range a {
		folded[i%words] |= w
	}
	return folded
}

// marks are the pieces of a text that is looked for.
type marks struct{ plain, numbers []mark }

func marksOf(text string) (m marks) {
	eachPiece(text, func(p uint64) { m.plain = append(m.plain, markOf(p)) }, func(p uint64) { m.numbers = append(m.numbers, markOf(p)) })
	return m
}

func (m *marks) none() bool { return len(m.plain)+len(m.numbers) == 0 }

// mayBeIn says that all pieces may be in a chunk with this aid. What an aid of
// another format says is not known.
func (m *marks) mayBeIn(aid []byte, format int) bool {
	if format != Format || len(aid) < 1+minAidBytes {
		return true
	}
	kinds, set := aid[0], aid[1:]
	return allIn(set, m.plain) && (kinds&numbersIn == 0 || allIn(set, m.numbers))
}

func allIn(set []byte, list []mark) bool {
	size := uint32(len(set) * 8)
	for _, m := range list {
		for _, bit := range m {
			if bit %= size; set[bit/8]&(1<<(bit%8)) == 0 {
				return false
			}
		}
	}
	return true
}
