package jsonschema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (c *checker) checkObject(s map[string]any, v map[string]any, at *place, depth int) {
	c.checkCount(s, "minProperties", "maxProperties", len(v), "fields", at)
	for _, name := range list(s["required"]) {
		if name, ok := name.(string); ok {
			if _, has := v[name]; !has {
				c.fail(at.field(name), "is missing")
			}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	additional, closed := s["additionalProperties"]
	names, hasNames := s["propertyNames"]
	for _, key := range slices.Sorted(maps.Keys(v)) { // so that all is told in one order
		if c.done() {
			return
		}
		here := at.field(key)
		if hasNames {
			c.check(names, key, here, depth+1)
		}
		known := false
		if part, ok := properties[key]; ok {
			known = true
			c.check(part, v[key], here, depth+1)
		}
		for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
			re := compile(pattern)
			if re == nil || re.MatchString(key) {
				known = true // also what cannot be told
			}
			if re != nil && re.MatchString(key) {
				c.check(patterns[pattern], v[key], here, depth+1)
			}
		}
		switch {
		case known || !closed:
		case additional == false:
			c.unknown(here, key, properties)
		default:
			c.check(additional, v[key], here, depth+1)
		}
	}
}

// unknown tells of a field that the schema does not have.
func (c *checker) unknown(at *place, key string, properties map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if strings.EqualFold(name, key) || similar(name, key) {
			c.failHint(at, "is not a field of the input", fmt.Sprintf("did you mean %q?", name))
			return
		}
	}
	c.fail(at, "is not a field of the input")
}

// similar: one letter more, less or different, or two neighbours swapped.
func similar(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 || len(a) < 3 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i == len(a) || a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
