package generate

import (
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

const prefix = "//carillon:"

// The marker kinds.
const (
	kindTimer = "timer"
	kindClock = "clock"
)

// marker is one marker comment, split into its options.
type marker struct {
	kind    string
	pos     token.Position
	options []option
}

// option is key=value, or a flag when it has no value.
type option struct {
	key      string
	value    string
	flag     bool
	pos      token.Position // of the key
	valuePos token.Position
}

// almostMarker finds comments that were probably meant as markers: a space
// after the slashes, other capitals, a block comment.
var almostMarker = regexp.MustCompile(`^(//|/\*)\s*(?i:carillon)\s*:\s*([A-Za-z]+)`)

// parseMarker reads one comment. It returns nil for comments that are no
// markers and for those it has reported.
func parseMarker(text string, pos token.Position, r *report) *marker {
	if !strings.HasPrefix(text, prefix) {
		if m := almostMarker.FindStringSubmatch(text); m != nil {
			r.add(pos, "write "+prefix+strings.ToLower(m[2])+" without spaces and in lower case",
				"this comment looks like a Carillon marker but is not one")
		}
		return nil
	}
	body := text[len(prefix):]
	kind, rest := body, ""
	if i := strings.IndexAny(body, " \t\r"); i >= 0 {
		kind, rest = body[:i], body[i:]
	}
	if kind != kindTimer && kind != kindClock {
		r.add(pos, nearMiss(kind, []string{kindTimer, kindClock}), "unknown marker %s%s", prefix, kind)
		return nil
	}
	m := &marker{kind: kind, pos: pos}
	at := pos
	at.Column += len(text) - len(rest)
	at.Offset += len(text) - len(rest)
	if !m.parseOptions(rest, at, r) {
		return nil
	}
	return m
}

// parseOptions splits "key=value key="quoted value" flag". at is the position
// of the first byte of text.
func (m *marker) parseOptions(text string, at token.Position, r *report) bool {
	seen := map[string]bool{}
	for i := 0; ; {
		for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r') {
			i++
		}
		if i == len(text) {
			return true
		}
		start := i
		for i < len(text) && isKeyByte(text[i]) {
			i++
		}
		o := option{key: text[start:i], pos: shift(at, start)}
		switch {
		case o.key == "":
			r.add(shift(at, i), "options are key=value; quote values that have spaces",
				"unexpected %q in carillon:%s", firstRune(text[i:]), m.kind)
			return false
		case i < len(text) && text[i] == '=':
			i++
			o.valuePos = shift(at, i)
			value, n, problem := readValue(text[i:])
			if problem != "" {
				r.add(o.valuePos, "quote the value as a Go string", "value of %q: %s", o.key, problem)
				return false
			}
			o.value = value
			i += n
		default:
			o.flag, o.valuePos = true, o.pos
		}
		if i < len(text) && text[i] != ' ' && text[i] != '\t' && text[i] != '\r' {
			r.add(shift(at, i), "put a space between options", "unexpected %q after %q", firstRune(text[i:]), o.key)
			return false
		}
		if seen[o.key] {
			r.add(o.pos, "keep one of them", "key %q is given twice", o.key)
			return false
		}
		seen[o.key] = true
		m.options = append(m.options, o)
	}
}

// readValue reads a bare or quoted value from the start of text and returns
// it with the number of bytes it took.
func readValue(text string) (value string, n int, problem string) {
	if text != "" && (text[0] == '"' || text[0] == '`') {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", 0, "the quotation does not end, or has a wrong escape"
		}
		value, _ := strconv.Unquote(quoted) // QuotedPrefix has checked it
		return value, len(quoted), ""
	}
	end := strings.IndexAny(text, " \t\r")
	if end < 0 {
		end = len(text)
	}
	switch value := text[:end]; {
	case value == "":
		return "", 0, "nothing after ="
	case strings.ContainsAny(value, "\"`"):
		return "", 0, "a quotation mark inside a bare value"
	default:
		return value, end, ""
	}
}

func isKeyByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_'
}

func shift(at token.Position, n int) token.Position {
	at.Column += n
	at.Offset += n
	return at
}

func firstRune(s string) string {
	for _, r := range s {
		return string(r)
	}
	return ""
}
