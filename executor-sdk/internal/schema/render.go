package schema

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

const dialect = "https://json-schema.org/draft/2020-12/schema"

// Input returns the JSON Schema that an input has to meet. Members keep the
// order of the struct's fields, so that a form made from it does too.
func (t *Type) Input() []byte { return render(t.root, false) }

// Output returns the JSON Schema of what encoding/json makes of a value.
func (t *Type) Output() []byte { return render(t.root, true) }

// renderer writes one schema. Types that contain themselves become entries of
// $defs; all others are written in place.
type renderer struct {
	out   bool
	names map[*node]string
	taken map[string]bool
	order []*node
}

func render(root *node, out bool) []byte {
	r := &renderer{out: out, names: map[*node]string{}, taken: map[string]bool{}}
	o := newObject()
	o.text("$schema", dialect)
	r.node(o, root, nil, "")
	if len(r.order) > 0 {
		defs := newObject()
		// Rendering a definition may name further ones.
		for i := 0; i < len(r.order); i++ {
			def := newObject()
			r.body(def, r.order[i], nil)
			defs.raw(r.names[r.order[i]], def.bytes())
		}
		o.raw("$defs", defs.bytes())
	}
	return o.bytes()
}

// node writes the schema of n, with the description and the allowed values of
// the field that holds it.
func (r *renderer) node(o *object, n *node, enum []json.RawMessage, doc string) {
	if doc != "" {
		o.text("description", doc)
	}
	if n.cyclic {
		o.text("$ref", "#/$defs/"+r.name(n))
		return
	}
	r.body(o, n, enum)
}

func (r *renderer) body(o *object, n *node, enum []json.RawMessage) {
	switch n.kind {
	case kindLeaf, kindText:
		if n.typ == bytesType {
			o.raw("type", orNull(n.json))
			o.text("contentEncoding", "base64")
		} else {
			o.text("type", n.json)
		}
		if n.format != "" {
			o.text("format", n.format)
		}
		r.bounds(o, n)
		if enum != nil {
			o.list("enum", enum)
		}
	case kindDuration:
		if r.out {
			o.text("type", "integer")
			o.text("title", "nanoseconds")
		} else {
			o.raw("type", []byte(`["string","integer"]`))
			o.text("format", "go-duration")
			o.raw("examples", []byte(`["30s","1h30m"]`))
		}
	case kindAny:
	case kindPointer:
		r.nullable(o, n.elem, enum)
	case kindArray:
		r.array(o, n, enum)
	case kindMap:
		o.raw("type", orNull("object"))
		item := newObject()
		r.node(item, n.elem, nil, "")
		o.raw("additionalProperties", item.bytes())
	case kindObject:
		r.object(o, n)
	}
}

// bounds says what fits a small or unsigned integer.
func (r *renderer) bounds(o *object, n *node) {
	if n.json != "integer" {
		return
	}
	bits := n.typ.Bits()
	switch n.typ.Kind() {
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		o.raw("minimum", []byte("0"))
		if bits < 64 {
			o.raw("maximum", strconv.AppendUint(nil, 1<<bits-1, 10))
		}
	default:
		if bits < 64 {
			o.raw("minimum", strconv.AppendInt(nil, -1<<(bits-1), 10))
			o.raw("maximum", strconv.AppendInt(nil, 1<<(bits-1)-1, 10))
		}
	}
}

// orNull is the type of what is null when it is nil: a slice, a map, bytes. What an
// application's own value is written as has to come in as well.
func orNull(name string) []byte { return []byte(`["` + name + `","null"]`) }

func (r *renderer) nullable(o *object, elem *node, enum []json.RawMessage) {
	inner := newObject()
	r.node(inner, elem, enum, "")
	o.raw("anyOf", append(append([]byte("["), inner.bytes()...), []byte(`,{"type":"null"}]`)...))
}

func (r *renderer) array(o *object, n *node, enum []json.RawMessage) {
	if n.fixed < 0 {
		o.raw("type", orNull("array"))
	} else {
		o.text("type", "array")
		o.raw("minItems", strconv.AppendInt(nil, int64(n.fixed), 10))
		o.raw("maxItems", strconv.AppendInt(nil, int64(n.fixed), 10))
	}
	item := newObject()
	r.node(item, n.elem, enum, "")
	o.raw("items", item.bytes())
}

func (r *renderer) object(o *object, n *node) {
	o.text("type", "object")
	properties := newObject()
	var required []json.RawMessage
	for i := range n.fields {
		f := &n.fields[i]
		if f.required {
			name, _ := json.Marshal(f.name)
			required = append(required, name)
		}
		p := newObject()
		if f.quoted {
			if f.doc != "" {
				p.text("description", f.doc)
			}
			p.text("type", "string")
		} else {
			r.node(p, f.node, f.enum, f.doc)
		}
		properties.raw(f.name, p.bytes())
	}
	o.raw("properties", properties.bytes())
	if required != nil {
		o.list("required", required)
	}
	o.raw("additionalProperties", []byte("false"))
}

// name returns the $defs key of a cyclic type: its type name, with a number
// when two packages use the same one.
func (r *renderer) name(n *node) string {
	if name, ok := r.names[n]; ok {
		return name
	}
	// The name of a generic type holds brackets and paths, which a $ref cannot.
	base := strings.Map(func(c rune) rune {
		if c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) {
			return c
		}
		return '_'
	}, n.typ.Name())
	if base == "" {
		base = "anonymous"
	}
	name := base
	for i := 2; r.taken[name]; i++ {
		name = base + strconv.Itoa(i)
	}
	r.names[n], r.taken[name] = name, true
	r.order = append(r.order, n)
	return name
}

// object writes a JSON object whose members keep the order they came in.
type object struct{ buf bytes.Buffer }

func newObject() *object { o := &object{}; o.buf.WriteByte('{'); return o }

func (o *object) raw(key string, value []byte) {
	if o.buf.Len() > 1 {
		o.buf.WriteByte(',')
	}
	k, _ := json.Marshal(key)
	o.buf.Write(k)
	o.buf.WriteByte(':')
	o.buf.Write(value)
}

func (o *object) text(key, value string) {
	v, _ := json.Marshal(value)
	o.raw(key, v)
}

func (o *object) list(key string, values []json.RawMessage) {
	o.raw(key, append(append([]byte("["), bytes.Join(rawSlices(values), []byte(","))...), ']'))
}

func (o *object) bytes() []byte { return append(bytes.Clone(o.buf.Bytes()), '}') }

func rawSlices(values []json.RawMessage) [][]byte {
	out := make([][]byte, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
