package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// jsonFormat is huma's, but refuses bodies that say one thing twice.
var jsonFormat = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshalBody}

// unmarshalBody is called twice by huma: for a value of no type, which is held
// against the schema, and then for ours.
func unmarshalBody(data []byte, v any) error {
	if _, first := v.(*any); first {
		if twice := findDuplicate(data); twice != nil {
			return twice
		}
	}
	return json.Unmarshal(data, v)
}

// duplicateError: an object has a member twice. Which of them counts differs
// from reader to reader, so none does.
type duplicateError struct {
	location string // of the second one, for example "body.retry.delay"
	offset   int    // byte behind its name
}

func (e *duplicateError) Error() string { return e.location + " comes twice" }

// findDuplicate returns nil also for what is no JSON, which somebody else tells.
func findDuplicate(data []byte) *duplicateError {
	w := walker{dec: json.NewDecoder(bytes.NewReader(data))}
	w.dec.UseNumber()
	var twice *duplicateError
	if errors.As(w.value("body"), &twice) {
		return twice
	}
	return nil
}

// walker goes along the tokens of one value. The decoder bounds the depth only
// of whole values, so it counts itself.
type walker struct {
	dec   *json.Decoder
	depth int
}

// maxNesting is that of encoding/json.
const maxNesting = 10_000

func (w *walker) value(at string) error {
	token, err := w.dec.Token()
	if err != nil {
		return err
	}
	open, _ := token.(json.Delim)
	if open != '{' && open != '[' {
		return nil
	}
	if w.depth++; w.depth > maxNesting {
		return io.ErrUnexpectedEOF
	}
	seen := map[string]bool{}
	for i := 0; w.dec.More(); i++ {
		below := at + "[" + strconv.Itoa(i) + "]"
		if open == '{' {
			key, err := w.dec.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			below = at + "." + name
			if seen[name] {
				return &duplicateError{below, int(w.dec.InputOffset())}
			}
			seen[name] = true
		}
		if err := w.value(below); err != nil {
			return err
		}
	}
	w.depth--
	_, err = w.dec.Token()
	return err
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
