package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// kind says how a value is written in JSON and how the decoder treats it.
type kind uint8

const (
	kindLeaf     kind = iota // one JSON scalar, decoded by encoding/json
	kindText                 // a JSON string that the type reads itself
	kindDuration             // time.Duration
	kindAny                  // any JSON value, decoded by encoding/json
	kindObject               // struct
	kindMap                  // map with string-like keys
	kindArray                // slice or array
	kindPointer              // pointer to elem
)

// node is the plan of one Go type. Nodes are shared and may form cycles;
// they are fixed once Of returned.
type node struct {
	typ    reflect.Type
	kind   kind
	json   string // JSON Schema type of a leaf: string, integer, number, boolean
	format string // JSON Schema format of a leaf or text, or empty
	elem   *node  // of a map, array or pointer
	fixed  int    // length of a Go array; -1 for a slice
	fields []field
	byName map[string]int
	cyclic bool // reached again while it was being built
}

// field is one member of a struct as JSON sees it.
type field struct {
	name     string
	index    []int // for reflect.Value.FieldByIndex
	node     *node
	doc      string
	required bool
	quoted   bool              // json:",string"
	enum     []json.RawMessage // allowed values in JSON; nil = any
}

// Type is the plan of one handler's input or output. It is immutable and safe
// for concurrent use.
type Type struct{ root *node }

// Of reads t. The error names the field that JSON cannot carry (channel,
// function, complex number, interface with methods) or the tag that makes no sense.
func Of(t reflect.Type) (*Type, error) {
	b := builder{nodes: map[reflect.Type]*node{}, building: map[*node]bool{}}
	root, err := b.node(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	return &Type{root: root}, nil
}

// Empty reports whether the type is a struct without fields, which handlers
// use to say "no input" or "no output".
func (t *Type) Empty() bool { return t.root.kind == kindObject && len(t.root.fields) == 0 }

var (
	timeType          = reflect.TypeFor[time.Time]()
	durationType      = reflect.TypeFor[time.Duration]()
	numberType        = reflect.TypeFor[json.Number]()
	rawType           = reflect.TypeFor[json.RawMessage]()
	bytesType         = reflect.TypeFor[[]byte]()
	jsonUnmarshalType = reflect.TypeFor[json.Unmarshaler]()
	jsonMarshalType   = reflect.TypeFor[json.Marshaler]()
	textUnmarshalType = reflect.TypeFor[encoding.TextUnmarshaler]()
	textMarshalType   = reflect.TypeFor[encoding.TextMarshaler]()
)

type builder struct {
	nodes    map[reflect.Type]*node
	building map[*node]bool
}

func (b *builder) node(t reflect.Type) (*node, error) {
	if n, ok := b.nodes[t]; ok {
		if b.building[n] {
			n.cyclic = true
		}
		return n, nil
	}
	n := &node{typ: t, fixed: -1}
	b.nodes[t] = n
	b.building[n] = true
	defer delete(b.building, n)
	return n, b.fill(n, t)
}

// fill decides the kind of t. Types that speak JSON or text themselves come
// before their underlying kind.
func (b *builder) fill(n *node, t reflect.Type) (err error) {
	pointer := reflect.PointerTo(t)
	switch {
	case t == timeType:
		n.kind, n.json, n.format = kindText, "string", "date-time"
	case t == durationType:
		n.kind = kindDuration
	case t == numberType:
		n.kind, n.json = kindLeaf, "number"
	case t == rawType:
		n.kind = kindAny
	case t.Kind() != reflect.Pointer && (pointer.Implements(jsonUnmarshalType) || pointer.Implements(jsonMarshalType)):
		n.kind = kindAny
	case t.Kind() != reflect.Pointer && (pointer.Implements(textUnmarshalType) || pointer.Implements(textMarshalType)):
		n.kind, n.json = kindText, "string"
	case t == bytesType:
		n.kind, n.json = kindText, "string"
	default:
		return b.fillKind(n, t)
	}
	return err
}

func (b *builder) fillKind(n *node, t reflect.Type) (err error) {
	switch t.Kind() {
	case reflect.Bool:
		n.kind, n.json = kindLeaf, "boolean"
	case reflect.String:
		n.kind, n.json = kindLeaf, "string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n.kind, n.json = kindLeaf, "integer"
	case reflect.Float32, reflect.Float64:
		n.kind, n.json = kindLeaf, "number"
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("interface %s cannot be read from JSON; use a concrete type", t)
		}
		n.kind = kindAny
	case reflect.Pointer:
		n.kind = kindPointer
		n.elem, err = b.node(t.Elem())
	case reflect.Slice, reflect.Array:
		n.kind = kindArray
		if t.Kind() == reflect.Array {
			n.fixed = t.Len()
		}
		n.elem, err = b.node(t.Elem())
	case reflect.Map:
		n.kind = kindMap
		if err := checkMapKey(t.Key()); err != nil {
			return err
		}
		n.elem, err = b.node(t.Elem())
	case reflect.Struct:
		n.kind = kindObject
		err = b.fillStruct(n, t)
	default:
		return fmt.Errorf("type %s has no form in JSON", t)
	}
	return err
}

func checkMapKey(t reflect.Type) error {
	switch t.Kind() {
	case reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nil
	}
	if reflect.PointerTo(t).Implements(textUnmarshalType) {
		return nil
	}
	return fmt.Errorf("map key %s must be a string or an integer", t)
}
