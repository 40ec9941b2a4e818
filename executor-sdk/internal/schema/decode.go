package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// maxDepth bounds how deeply typed objects and arrays may nest. It keeps the
// cost of an input linear in its size.
const maxDepth = 64

// Error tells what is wrong with an input, and where.
type Error struct {
	// Path leads to the place, for example items[3].price; empty = the whole input.
	Path    string
	Message string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Decode reads data into the value that target points at, which must be of
// the type that Of was given. Empty data and null count as {} for a struct.
// Every error about the data is an *Error; target is then half filled.
func (t *Type) Decode(data []byte, target any) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "null" {
		if data = []byte("null"); t.root.kind == kindObject {
			data = []byte("{}")
		}
	}
	if !json.Valid(data) {
		return malformed(data)
	}
	d := decoder{}
	if err := d.value(t.root, data, reflect.ValueOf(target).Elem(), nil); err != nil {
		return err
	}
	return nil
}

func malformed(data []byte) error {
	var ignored any
	err := json.Unmarshal(data, &ignored)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return &Error{Message: fmt.Sprintf("not JSON at byte %d: %s", syntax.Offset, syntax)}
	}
	return &Error{Message: fmt.Sprintf("not JSON: %v", err)}
}

// decoder walks JSON that is known to be well formed along a plan. The path
// grows and shrinks with the walk and is turned into text only for an error.
type decoder struct{ path []string }

func (d *decoder) fail(format string, args ...any) error {
	var b strings.Builder
	for i, p := range d.path {
		if i > 0 && p[0] != '[' {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return &Error{Path: b.String(), Message: fmt.Sprintf(format, args...)}
}

func (d *decoder) enter(part string) error {
	d.path = append(d.path, part)
	if len(d.path) > maxDepth {
		return d.fail("nested deeper than %d", maxDepth)
	}
	return nil
}

func (d *decoder) leave() { d.path = d.path[:len(d.path)-1] }

func (d *decoder) value(n *node, raw []byte, v reflect.Value, enum []json.RawMessage) error {
	if string(raw) == "null" {
		switch n.kind {
		case kindPointer, kindMap:
			v.SetZero()
			return nil
		case kindArray:
			if n.fixed < 0 {
				v.SetZero()
				return nil
			}
		case kindAny:
			return d.leaf(n, raw, v)
		}
		if n.typ == bytesType {
			v.SetZero()
			return nil
		}
		return d.fail("must not be null")
	}
	switch n.kind {
	case kindPointer:
		v.Set(reflect.New(n.typ.Elem()))
		return d.value(n.elem, raw, v.Elem(), enum)
	case kindArray:
		return d.array(n, raw, v, enum)
	case kindMap:
		return d.mapping(n, raw, v)
	case kindObject:
		return d.object(n, raw, v)
	case kindDuration:
		return d.duration(raw, v)
	case kindAny:
		return d.leaf(n, raw, v)
	}
	if got := typeOf(raw); got != n.json && (n.json != "integer" || got != "number") {
		return d.fail("want %s, got %s", n.json, got)
	}
	if err := d.leaf(n, raw, v); err != nil {
		return err
	}
	return d.checkEnum(raw, v, enum)
}

// leaf hands one value to encoding/json, which knows the type's own methods.
func (d *decoder) leaf(n *node, raw []byte, v reflect.Value) error {
	err := json.Unmarshal(raw, v.Addr().Interface())
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		if n.json == "integer" {
			return d.fail("%s is no integer that fits %s", raw, n.typ)
		}
		return d.fail("want %s, got %s", n.typ, wrong.Value)
	}
	return d.fail("%v", err)
}

func (d *decoder) duration(raw []byte, v reflect.Value) error {
	switch typeOf(raw) {
	case "string":
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return d.fail("%v", err)
		}
		parsed, err := time.ParseDuration(text)
		if err != nil {
			return d.fail("%q is no duration; write for example \"30s\" or \"1h30m\"", text)
		}
		v.SetInt(int64(parsed))
		return nil
	case "number":
		var nanoseconds int64
		if err := json.Unmarshal(raw, &nanoseconds); err != nil {
			return d.fail("%s is no whole number of nanoseconds", raw)
		}
		v.SetInt(nanoseconds)
		return nil
	}
	return d.fail("want a duration such as \"30s\", got %s", typeOf(raw))
}

// checkEnum compares the decoded value, so that 1.0 and "a" count as
// the 1 and "a" of the tag.
func (d *decoder) checkEnum(raw []byte, v reflect.Value, enum []json.RawMessage) error {
	if enum == nil {
		return nil
	}
	normal, err := json.Marshal(v.Interface())
	if err != nil {
		return d.fail("%v", err)
	}
	for _, allowed := range enum {
		if bytes.Equal(normal, allowed) {
			return nil
		}
	}
	return d.fail("%s is not one of %s", raw, bytes.Join(rawSlices(enum), []byte(", ")))
}

func (d *decoder) array(n *node, raw []byte, v reflect.Value, enum []json.RawMessage) error {
	if got := typeOf(raw); got != "array" {
		return d.fail("want array, got %s", got)
	}
	items := items(raw)
	if n.fixed >= 0 && len(items) != n.fixed {
		return d.fail("want %d items, got %d", n.fixed, len(items))
	}
	if n.fixed < 0 {
		v.Set(reflect.MakeSlice(n.typ, len(items), len(items)))
	}
	for i, item := range items {
		if err := d.enter("[" + strconv.Itoa(i) + "]"); err != nil {
			return err
		}
		if err := d.value(n.elem, item, v.Index(i), enum); err != nil {
			return err
		}
		d.leave()
	}
	return nil
}

func (d *decoder) object(n *node, raw []byte, v reflect.Value) error {
	if got := typeOf(raw); got != "object" {
		return d.fail("want object, got %s", got)
	}
	seen := make([]bool, len(n.fields))
	for key, member := range members(raw) {
		i, ok := n.byName[key]
		if !ok {
			return d.fail("unknown field %q%s", key, n.nearest(key))
		}
		f := &n.fields[i]
		if err := d.enter(f.name); err != nil {
			return err
		}
		if seen[i] {
			return d.fail("stands twice")
		}
		seen[i] = true
		if err := d.member(f, member, fieldByIndex(v, f.index)); err != nil {
			return err
		}
		d.leave()
	}
	for i := range n.fields {
		if f := &n.fields[i]; f.required && !seen[i] {
			return d.fail("required field %q is missing", f.name)
		}
	}
	return nil
}

func (d *decoder) member(f *field, raw []byte, v reflect.Value) error {
	if !f.quoted || string(raw) == "null" {
		return d.value(f.node, raw, v, f.enum)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil || !json.Valid([]byte(text)) {
		return d.fail("want %s inside a string, got %s", f.node.scalar().json, raw)
	}
	return d.value(f.node, []byte(text), v, f.enum)
}

// fieldByIndex allocates the embedded pointers on the way.
func fieldByIndex(v reflect.Value, index []int) reflect.Value {
	for i, x := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v
}

func (d *decoder) mapping(n *node, raw []byte, v reflect.Value) error {
	if got := typeOf(raw); got != "object" {
		return d.fail("want object, got %s", got)
	}
	v.Set(reflect.MakeMap(n.typ))
	for key, member := range members(raw) {
		if err := d.enter("[" + strconv.Quote(key) + "]"); err != nil {
			return err
		}
		k, err := mapKey(key, n.typ.Key())
		if err != nil {
			return d.fail("key is no %s", n.typ.Key())
		}
		if v.MapIndex(k).IsValid() {
			return d.fail("stands twice")
		}
		item := reflect.New(n.typ.Elem()).Elem()
		if err := d.value(n.elem, member, item, nil); err != nil {
			return err
		}
		v.SetMapIndex(k, item)
		d.leave()
	}
	return nil
}

func mapKey(key string, t reflect.Type) (reflect.Value, error) {
	k := reflect.New(t)
	if text, ok := k.Interface().(encoding.TextUnmarshaler); ok {
		return k.Elem(), text.UnmarshalText([]byte(key))
	}
	if t.Kind() == reflect.String {
		k.Elem().SetString(key)
		return k.Elem(), nil
	}
	return k.Elem(), json.Unmarshal([]byte(key), k.Interface())
}

// nearest returns a hint when a known field differs from key by case or by
// one or two letters.
func (n *node) nearest(key string) string {
	for i := range n.fields {
		if name := n.fields[i].name; strings.EqualFold(name, key) || distance(name, key) <= min(2, len(name)/3) {
			return fmt.Sprintf("; did you mean %q?", name)
		}
	}
	return ""
}

// distance is the Levenshtein distance in bytes, cut short for long strings.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		previous := row[0]
		row[0] = i + 1
		for j := range b {
			cost := previous
			if a[i] != b[j] {
				cost = 1 + min(previous, row[j], row[j+1])
			}
			previous, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// Check reports what Decode would, without keeping the value.
func (t *Type) Check(data []byte) error {
	return t.Decode(data, reflect.New(t.root.typ).Interface())
}
