// Package document answers: which values does a YAML or JSON text hold that a
// person wrote, and how is a value written for a person?
//
// This package reads all files of users: files of jobs and of other nouns, the provision
// file, and the server's settings. A YAML scalar without quotes is null, a boolean or
// a number as JSON writes it. Everything else is text, and the field judges it. So
// 2026-12-24 18:00:00, 01234, 12:30, NO and 0x1F are texts. A number keeps all its
// digits. A text that is JSON is read as JSON.
package document

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is what a value is.
type Kind int

// The kinds.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Object
)

// Value is one value with the line where it begins.
type Value struct {
	Kind Kind
	// Text of a number is the number as it stands in the file, of a boolean true or
	// false, of null and of a text the text without quotes.
	Text    string
	Line    int // from 1
	Items   []*Value
	Members []Member // in the order of the file; a name comes once
}

// IsScalar reports whether the value is neither a list nor an object.
func (v *Value) IsScalar() bool { return v.Kind < List }

// Member is a field of an object.
type Member struct {
	Name  string
	Line  int
	Value *Value
}

// Error is what is wrong with a text.
type Error struct {
	Line int // from 1; 0 = of the text as a whole
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Text)
}

func wrong(line int, format string, args ...any) *Error {
	return &Error{Line: line, Text: fmt.Sprintf(format, args...)}
}

// maxDepth bounds the objects and lists around a value, as the API does.
const maxDepth = 200

// Read reads all documents of a text. An error is an *Error. A text without
// a document gives none.
func Read(raw []byte) ([]*Value, error) {
	text, err := decoded(raw)
	if err != nil {
		return nil, err
	}
	values, notJSON := readJSON(text)
	if notJSON == nil {
		return values, nil
	}
	values, notYAML := readYAML(text)
	if notYAML == nil {
		return values, nil
	}
	if looksLikeJSON(text) {
		return nil, notJSON
	}
	return nil, notYAML
}

// ReadJSON reads a text that must be one JSON value.
func ReadJSON(raw []byte) (*Value, error) {
	text, err := decoded(raw)
	if err != nil {
		return nil, err
	}
	values, err := readJSON(text)
	if err == nil && len(values) > 1 {
		err = wrong(values[1].Line, "it is no JSON: a second value follows the first")
	}
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// looksLikeJSON tells JSON with a fault from YAML in braces, {name: hello}.
func looksLikeJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return false
	}
	text = bytes.TrimLeft(text[1:], " \t\r\n")
	return len(text) > 0 && strings.IndexByte(`"{[`, text[0]) >= 0
}

// decoded is the text in UTF-8 without a byte order mark. Editors and shells of
// Windows write one, and some of them UTF-16.
func decoded(raw []byte) ([]byte, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(raw, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(raw, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
		if at := InvalidUTF8(raw); at >= 0 {
			line := lineAt(raw, at)
			return nil, wrong(line, "byte %d of the line is not UTF-8 (0x%02x); save the file as UTF-8", at-bytes.LastIndexByte(raw[:at], '\n'), raw[at])
		}
		return raw, nil
	}
	units := make([]uint16, len(raw)/2-1)
	for i := range units {
		units[i] = order.Uint16(raw[2*i+2:])
	}
	return []byte(string(utf16.Decode(units))), nil
}

// InvalidUTF8 is the index of the first byte that is not UTF-8; -1 if there is none.
func InvalidUTF8(raw []byte) int {
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func lineAt(text []byte, at int) int { return 1 + bytes.Count(text[:at], []byte("\n")) }

// MarshalJSON writes the value. Numbers and the order of fields stay.
func (v *Value) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	v.write(&out)
	return out.Bytes(), nil
}

func (v *Value) write(out *bytes.Buffer) {
	switch v.Kind {
	case Null:
		out.WriteString("null")
	case Bool, Number:
		out.WriteString(v.Text)
	case Text:
		writeText(out, v.Text)
	case List:
		out.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				out.WriteByte(',')
			}
			item.write(out)
		}
		out.WriteByte(']')
	case Object:
		out.WriteByte('{')
		for i, m := range v.Members {
			if i > 0 {
				out.WriteByte(',')
			}
			writeText(out, m.Name)
			out.WriteByte(':')
			m.Value.write(out)
		}
		out.WriteByte('}')
	}
}

func writeText(out *bytes.Buffer, text string) {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text always has a JSON form
	out.Truncate(out.Len() - 1)
}
