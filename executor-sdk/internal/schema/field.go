package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// candidate is a field found while walking a struct and what it embeds.
type candidate struct {
	field
	depth  int
	tagged bool // named by its json tag
}

// fillStruct lists the members that encoding/json would use: fields of
// embedded structs are promoted, the shallowest wins, then the tagged one,
// and what stays ambiguous is left out.
func (b *builder) fillStruct(n *node, t reflect.Type) error {
	var found []candidate
	if err := b.collect(t, nil, map[reflect.Type]bool{}, &found); err != nil {
		return err
	}
	byName := map[string][]candidate{}
	for _, c := range found {
		byName[c.name] = append(byName[c.name], c)
	}
	n.byName = map[string]int{}
	for _, c := range found {
		winner, ok := dominant(byName[c.name])
		if !ok || !slices.Equal(winner.index, c.index) {
			continue
		}
		n.byName[c.name] = len(n.fields)
		n.fields = append(n.fields, c.field)
	}
	return nil
}

func dominant(same []candidate) (candidate, bool) {
	best := same[0]
	ties := 1
	for _, c := range same[1:] {
		switch {
		case c.depth < best.depth, c.depth == best.depth && c.tagged && !best.tagged:
			best, ties = c, 1
		case c.depth == best.depth && c.tagged == best.tagged:
			ties++
		}
	}
	return best, ties == 1
}

// collect appends the fields of t. onPath holds the structs being walked, so
// that a struct that embeds itself through a pointer ends.
func (b *builder) collect(t reflect.Type, prefix []int, onPath map[reflect.Type]bool, out *[]candidate) error {
	if onPath[t] {
		return nil
	}
	onPath[t] = true
	defer delete(onPath, t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" && options == "" {
			continue
		}
		index := append(slices.Clone(prefix), i)
		if f.Anonymous && name == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
				if !f.IsExported() {
					return fmt.Errorf("field %s: an embedded pointer to an unexported struct cannot be set", f.Name)
				}
			}
			if inner.Kind() == reflect.Struct && inner != timeType {
				if err := b.collect(inner, index, onPath, out); err != nil {
					return err
				}
				continue
			}
		}
		if !f.IsExported() {
			continue
		}
		c, err := b.field(f, name, options)
		if err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
		c.index, c.depth = index, len(prefix)
		*out = append(*out, c)
	}
	return nil
}

func (b *builder) field(f reflect.StructField, name, options string) (candidate, error) {
	n, err := b.node(f.Type)
	if err != nil {
		return candidate{}, err
	}
	c := candidate{tagged: name != ""}
	c.name, c.node, c.doc = name, n, f.Tag.Get("doc")
	if name == "" {
		c.name = f.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		if option == "string" && n.scalar().kind == kindLeaf {
			c.quoted = true
		}
	}
	if v, ok := f.Tag.Lookup("required"); ok {
		if c.required, err = strconv.ParseBool(v); err != nil {
			return candidate{}, fmt.Errorf("tag required:%q: want true or false", v)
		}
	}
	if v, ok := f.Tag.Lookup("enum"); ok {
		if c.enum, err = parseEnum(v, n.scalar()); err != nil {
			return candidate{}, err
		}
		if n.elem == nil && !c.required {
			// A Go value whose field was not set encodes the zero value.
			zero, _ := json.Marshal(reflect.Zero(n.typ).Interface())
			if !slices.ContainsFunc(c.enum, func(v json.RawMessage) bool { return string(v) == string(zero) }) {
				c.enum = append(c.enum, zero)
			}
		}
	}
	return c, nil
}

// scalar looks through pointers and slices to the node whose values an enum
// tag lists.
func (n *node) scalar() *node {
	for n.elem != nil && !n.cyclic && (n.kind == kindPointer || n.kind == kindArray) {
		n = n.elem
	}
	return n
}

func parseEnum(tag string, n *node) ([]json.RawMessage, error) {
	var values []json.RawMessage
	for v := range strings.SplitSeq(tag, ",") {
		v = strings.TrimSpace(v)
		raw := json.RawMessage(v)
		switch {
		case n.kind == kindText || n.kind == kindLeaf && n.json == "string":
			raw, _ = json.Marshal(v)
		case n.kind != kindLeaf:
			return nil, fmt.Errorf("tag enum: only strings, numbers and booleans can be listed")
		}
		if err := json.Unmarshal(raw, reflect.New(n.typ).Interface()); err != nil {
			return nil, fmt.Errorf("tag enum: %q is no %s", v, n.json)
		}
		values = append(values, raw)
	}
	return values, nil
}
