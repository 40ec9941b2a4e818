package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// jsonReader builds values from the tokens of one or more JSON values.
type jsonReader struct {
	dec  *json.Decoder
	text []byte
	// line is that of the byte at.
	at, line int
}

func readJSON(text []byte) ([]*Value, error) {
	r := jsonReader{dec: json.NewDecoder(bytes.NewReader(text)), text: text, line: 1}
	r.dec.UseNumber()
	var out []*Value
	for {
		token, err := r.token()
		if errors.Is(err, io.EOF) && len(out) > 0 {
			return out, nil
		}
		v, err := r.value(token, err, 0)
		if err != nil {
			return nil, r.told(err)
		}
		out = append(out, v)
	}
}

func (r *jsonReader) token() (json.Token, error) {
	token, err := r.dec.Token()
	end := int(r.dec.InputOffset())
	r.line += bytes.Count(r.text[r.at:end], []byte("\n"))
	r.at = end
	return token, err
}

func (r *jsonReader) value(token json.Token, err error, depth int) (*Value, error) {
	if err != nil {
		return nil, err
	}
	v := &Value{Line: r.line}
	switch t := token.(type) {
	case bool:
		v.Kind, v.Text = Bool, "false"
		if t {
			v.Text = "true"
		}
	case json.Number:
		v.Kind, v.Text = Number, t.String()
	case string:
		v.Kind, v.Text = Text, t
	case json.Delim:
		if depth == maxDepth {
			return nil, wrong(r.line, "it is nested deeper than %d levels", maxDepth)
		}
		if v.Kind = List; t == '{' {
			v.Kind = Object
			err = r.object(v, depth+1)
		} else {
			err = r.list(v, depth+1)
		}
		if err == nil {
			_, err = r.token() // the closing bracket
		}
	}
	return v, err
}

func (r *jsonReader) list(v *Value, depth int) error {
	for r.dec.More() {
		token, err := r.token()
		item, err := r.value(token, err, depth)
		if err != nil {
			return err
		}
		v.Items = append(v.Items, item)
	}
	return nil
}

func (r *jsonReader) object(v *Value, depth int) error {
	seen := map[string]bool{}
	for r.dec.More() {
		key, err := r.token()
		if err != nil {
			return err
		}
		name, line := key.(string), r.line
		if seen[name] {
			return wrong(line, "%q comes twice in one object; say it once", name)
		}
		seen[name] = true
		token, err := r.token()
		member, err := r.value(token, err, depth)
		if err != nil {
			return err
		}
		v.Members = append(v.Members, Member{name, line, member})
	}
	return nil
}

// told gives an error of the JSON parser its line.
func (r *jsonReader) told(err error) error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	var whole json.RawMessage
	syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(r.text, &whole))
	if !ok {
		return wrong(r.line, "it is no JSON: %s", err.Error())
	}
	at := min(max(int(syntax.Offset)-1, 0), len(r.text))
	return wrong(lineAt(r.text, at), "it is no JSON: %s (column %d)", syntax.Error(), at-bytes.LastIndexByte(r.text[:at], '\n'))
}
