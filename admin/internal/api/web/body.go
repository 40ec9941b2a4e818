package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// jsonFormat is huma's, but refuses bodies that say one thing twice or are
// nested without end.
var jsonFormat = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshalBody}

// unmarshalBody is called twice by huma: for a value of no type, which is held
// against the schema, and then for ours.
func unmarshalBody(data []byte, v any) error {
	if _, first := v.(*any); first {
		if err := checkBody(data); err != nil {
			return err
		}
	}
	return json.Unmarshal(data, v)
}

// bodyError is what encoding/json would let pass.
type bodyError struct {
	location      string // for example "body.retry.delay"
	message, hint string
	offset        int // byte of the body
}

func (e *bodyError) Error() string { return e.location + " " + e.message }

// checkBody returns nil also for what is no JSON, which somebody else tells.
func checkBody(data []byte) error {
	if deep := findDeep(data); deep != nil {
		return deep
	}
	if !json.Valid(data) {
		return nil
	}
	w := walker{dec: json.NewDecoder(bytes.NewReader(data))}
	w.dec.UseNumber()
	var twice *bodyError
	if errors.As(w.value(), &twice) {
		return twice
	}
	return nil
}

// maxNesting bounds the objects and lists around a value. A megabyte of
// brackets 10,000 deep, which encoding/json reads, costs a hundred times its
// size.
const maxNesting = 200

func findDeep(data []byte) *bodyError {
	depth, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				return &bodyError{"body", fmt.Sprintf("is nested deeper than %d levels", maxNesting), "send a flatter value", i}
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// walker looks for objects that have a member twice: which of the two counts
// differs from reader to reader. It goes along the tokens of one well-formed
// value. A place gets its name only when it is told.
type walker struct {
	dec  *json.Decoder
	path []step
}

// step is a member of an object, or an element of an array.
type step struct {
	name  string // "" in an array
	index int
}

func (w *walker) value() error {
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return w.inside(w.object)
	case json.Delim('['):
		return w.inside(w.array)
	}
	return nil
}

// inside goes through the members or elements up to the end of their list.
func (w *walker) inside(list func() error) error {
	w.path = append(w.path, step{})
	if err := list(); err != nil {
		return err
	}
	w.path = w.path[:len(w.path)-1]
	_, err := w.dec.Token()
	return err
}

func (w *walker) array() error {
	last := len(w.path) - 1
	for i := 0; w.dec.More(); i++ {
		w.path[last] = step{index: i}
		if err := w.value(); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) object() error {
	last := len(w.path) - 1
	seen := map[string]bool{}
	for w.dec.More() {
		key, err := w.dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		w.path[last] = step{name: "." + name}
		if seen[name] {
			return &bodyError{w.location(), "comes twice", "say it once", int(w.dec.InputOffset())}
		}
		seen[name] = true
		if err := w.value(); err != nil {
			return err
		}
	}
	return nil
}

// location is where the walker is, for example "body.retry[2].delay".
func (w *walker) location() string {
	var b strings.Builder
	b.WriteString("body")
	for _, s := range w.path {
		if s.name == "" {
			s.name = "[" + strconv.Itoa(s.index) + "]"
		}
		b.WriteString(s.name)
	}
	return b.String()
}

// position says where an offset is, for people.
func position(text string, offset int) string {
	before := text[:min(offset, len(text))]
	return fmt.Sprintf("line %d, column %d", 1+strings.Count(before, "\n"), len(before)-strings.LastIndexByte(before, '\n'))
}

// misfitOf names the field of the API whose value our own type does not hold:
// numbers that the schema lets pass are too large, or no whole ones.
func misfitOf(body string, d *huma.ErrorDetail) *huma.ErrorDetail {
	const mark = "into Go struct field "
	_, rest, found := strings.Cut(d.Message, mark)
	if !found {
		return d
	}
	field, _, _ := strings.Cut(rest, " ")
	_, field, _ = strings.Cut(field, ".") // without the name of our type
	return &huma.ErrorDetail{Location: body + "." + field, Message: "is a number that is too large, or no whole one"}
}
