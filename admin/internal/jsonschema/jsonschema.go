package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strconv"
	"strings"
)

// Violation is one place of a value that does not fit.
type Violation struct {
	// Path leads to it as people write it: items[3].price; empty = the value itself.
	Path string
	// Pointer leads to it as RFC 6901 has it: /items/3/price.
	Pointer string
	Message string
	Hint    string // a field that may have been meant
}

const (
	// maxSteps bounds how many parts of the schema are held against parts of
	// the value in one check; beyond, what is left is taken to fit.
	maxSteps = 200_000
	// maxDepth bounds how deep references and parts of schema go.
	maxDepth = 128
	// maxViolations is how many are told of one value.
	maxViolations = 20
)

// checks bounds the values that are checked at once in this process, to two and to half of
// the processors. A value takes up to fifty times its bytes while it is held against a
// schema.
var checks = make(chan struct{}, min(2, max(1, runtime.GOMAXPROCS(0)/2)))

// Schema is a readable schema. It is immutable.
type Schema struct{ root any }

// Read reads a schema; nil when there is none, or it is no schema.
func Read(raw []byte) *Schema {
	root, err := decode(raw)
	if err != nil {
		return nil
	}
	switch root.(type) {
	case map[string]any, bool:
		return &Schema{root}
	}
	return nil
}

// Object reports whether the schema is for objects and nothing else: then no
// value at all stands for an empty one.
func (s *Schema) Object() bool {
	m, _ := s.root.(map[string]any)
	return m["type"] == "object"
}

// Check returns what does not fit, in the order of the value; none if all
// fits. A value that is not JSON does not fit.
func (s *Schema) Check(raw []byte) []Violation {
	checks <- struct{}{}
	defer func() { <-checks }()
	value, err := decode(raw)
	if err != nil {
		return []Violation{{Message: "is not JSON"}}
	}
	c := checker{root: s.root, steps: maxSteps}
	c.check(s.root, value, &place{}, 0)
	return c.out
}

// decode keeps numbers as they are written.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// place is where in the value a check is; it becomes text only for a violation.
type place struct {
	up    *place
	name  string
	index int
	array bool
}

func (p *place) field(name string) *place { return &place{up: p, name: name} }
func (p *place) item(i int) *place        { return &place{up: p, index: i, array: true} }

func (p *place) texts() (path, pointer string) {
	if p.up == nil {
		return "", ""
	}
	path, pointer = p.up.texts()
	if p.array {
		i := strconv.Itoa(p.index)
		return path + "[" + i + "]", pointer + "/" + i
	}
	pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(p.name)
	switch {
	case p.name == "" || strings.ContainsAny(p.name, ".[]\" "):
		return path + "[" + strconv.Quote(p.name) + "]", pointer
	case path == "":
		return p.name, pointer
	default:
		return path + "." + p.name, pointer
	}
}

// checker walks one value along the schema.
type checker struct {
	root  any
	steps int
	out   []Violation
	// trial: only whether anything violations matters (inside anyOf, oneOf, not).
	trial bool
}

func (c *checker) fail(at *place, message string) { c.failHint(at, message, "") }

func (c *checker) failHint(at *place, message, hint string) {
	if len(c.out) == maxViolations {
		return
	}
	path, pointer := at.texts()
	for _, m := range c.out {
		if m.Pointer == pointer && m.Message == message {
			return // two branches of the schema say the same
		}
	}
	c.out = append(c.out, Violation{Path: path, Pointer: pointer, Message: message, Hint: hint})
}

// done reports that nothing more has to be found out.
func (c *checker) done() bool {
	return c.steps <= 0 || c.trial && len(c.out) > 0 || len(c.out) == maxViolations
}

// fits tries a part of the schema.
func (c *checker) fits(schema, value any, at *place, depth int) (bool, []Violation) {
	inner := checker{root: c.root, steps: c.steps, trial: c.trial}
	inner.check(schema, value, at, depth)
	c.steps = inner.steps
	return len(inner.out) == 0, inner.out
}

func (c *checker) check(schema, value any, at *place, depth int) {
	if c.steps--; c.done() || depth > maxDepth {
		return
	}
	switch s := schema.(type) {
	case bool:
		if !s {
			c.fail(at, "is not allowed")
		}
	case map[string]any:
		if ref, ok := s["$ref"].(string); ok {
			if target, ok := c.resolve(ref); ok {
				c.check(target, value, at, depth+1)
			}
		}
		if !c.checkType(s["type"], value, at) {
			return // what follows would only say the same in other words
		}
		c.checkAllowed(s, value, at)
		c.checkBranches(s, value, at, depth)
		switch v := value.(type) {
		case string:
			c.checkString(s, v, at)
		case json.Number:
			c.checkNumber(s, v, at)
		case []any:
			c.checkArray(s, v, at, depth)
		case map[string]any:
			c.checkObject(s, v, at, depth)
		}
	}
}

// resolve follows a reference inside of the schema.
func (c *checker) resolve(ref string) (any, bool) {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	at := c.root
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for part := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		if rest == "" {
			break
		}
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = m[unescape.Replace(part)]; !ok {
			return nil, false
		}
	}
	return at, true
}

func (c *checker) checkBranches(s map[string]any, value any, at *place, depth int) {
	for _, part := range list(s["allOf"]) {
		c.check(part, value, at, depth+1)
	}
	if branches := list(s["anyOf"]); len(branches) > 0 {
		c.checkAny(branches, value, at, depth)
	}
	if branches := list(s["oneOf"]); len(branches) > 0 {
		n := 0
		for _, b := range branches {
			if ok, _ := c.fits(b, value, at, depth+1); ok {
				n++
			}
		}
		switch {
		case n == 0:
			c.checkAny(branches, value, at, depth)
		case n > 1 && c.steps > 0:
			c.fail(at, "fits more than one of the forms that exclude each other")
		}
	}
	if not, has := s["not"]; has {
		if ok, _ := c.fits(not, value, at, depth+1); ok && c.steps > 0 {
			c.fail(at, "has a form that is not allowed")
		}
	}
}

// checkAny tells, of the branches that do not fit, what the nearest one misses:
// the one whose first violation lies deepest, which is the one that was meant.
func (c *checker) checkAny(branches []any, value any, at *place, depth int) {
	var nearest []Violation
	for _, b := range branches {
		ok, violations := c.fits(b, value, at, depth+1)
		if ok || c.steps <= 0 {
			return
		}
		if nearest == nil || strings.Count(violations[0].Pointer, "/") > strings.Count(nearest[0].Pointer, "/") {
			nearest = violations
		}
	}
	for _, m := range nearest {
		if len(c.out) < maxViolations {
			c.out = append(c.out, m)
		}
	}
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
