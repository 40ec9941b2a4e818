package jsonschema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case json.Number:
		if n := number(v); n != nil && n.IsInt() {
			return "integer"
		}
		return "number"
	default:
		return "object"
	}
}

// checkType reports whether the value is of one of the types.
func (c *checker) checkType(want, value any, at *place) bool {
	var names []string
	switch w := want.(type) {
	case string:
		names = []string{w}
	case []any:
		for _, n := range w {
			if name, ok := n.(string); ok {
				names = append(names, name)
			}
		}
	}
	got := typeOf(value)
	if len(names) == 0 || slices.Contains(names, got) || got == "integer" && slices.Contains(names, "number") {
		return true
	}
	c.fail(at, fmt.Sprintf("want %s, got %s", strings.Join(names, " or "), got))
	return false
}

// checkAllowed is enum and const.
func (c *checker) checkAllowed(s map[string]any, value any, at *place) {
	allowed, has := s["enum"].([]any)
	if one, hasConst := s["const"]; hasConst {
		allowed, has = []any{one}, true
	}
	if !has || slices.ContainsFunc(allowed, func(a any) bool { return equal(a, value) }) {
		return
	}
	var texts []string
	for _, a := range allowed[:min(len(allowed), 10)] {
		text, _ := json.Marshal(a)
		texts = append(texts, string(text))
	}
	c.fail(at, "is not one of "+strings.Join(texts, ", "))
}

// equal compares as JSON Schema does: numbers by value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		bn, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, y := number(a), number(bn)
		return x != nil && y != nil && x.Cmp(y) == 0 || a == bn
	case []any:
		bl, ok := b.([]any)
		return ok && slices.EqualFunc(a, bl, equal)
	case map[string]any:
		bm, ok := b.(map[string]any)
		if !ok || len(a) != len(bm) {
			return false
		}
		for k, v := range a {
			if w, has := bm[k]; !has || !equal(v, w) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}

// number is nil for what is too large to compare exactly.
func number(n json.Number) *big.Rat {
	if len(n) > 64 {
		return nil
	}
	if e := strings.IndexAny(string(n), "eE"); e >= 0 && len(n)-e > 5 {
		return nil // 1e99999 has a hundred thousand digits
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return nil
	}
	return r
}

func (c *checker) checkNumber(s map[string]any, v json.Number, at *place) {
	n := number(v)
	if n == nil {
		return
	}
	bound := func(keyword string, broken func(cmp int) bool, message string) {
		if limit, ok := s[keyword].(json.Number); ok {
			if l := number(limit); l != nil && broken(n.Cmp(l)) {
				c.fail(at, message+" "+string(limit))
			}
		}
	}
	bound("minimum", func(cmp int) bool { return cmp < 0 }, "must be at least")
	bound("maximum", func(cmp int) bool { return cmp > 0 }, "must be at most")
	bound("exclusiveMinimum", func(cmp int) bool { return cmp <= 0 }, "must be more than")
	bound("exclusiveMaximum", func(cmp int) bool { return cmp >= 0 }, "must be less than")
	if of, ok := s["multipleOf"].(json.Number); ok {
		if d := number(of); d != nil && d.Sign() > 0 && !new(big.Rat).Quo(n, d).IsInt() {
			c.fail(at, "must be a multiple of "+string(of))
		}
	}
}

// count returns a keyword that is a number of things; -1 = not there.
func count(s map[string]any, keyword string) int {
	if n, ok := s[keyword].(json.Number); ok {
		if r := number(n); r != nil && r.IsInt() && r.Num().IsInt64() {
			return int(max(-1, r.Num().Int64()))
		}
	}
	return -1
}

func (c *checker) checkCount(s map[string]any, least, most string, n int, things string, at *place) {
	if m := count(s, least); n < m {
		c.fail(at, fmt.Sprintf("must have at least %d %s, has %d", m, things, n))
	}
	if m := count(s, most); m >= 0 && n > m {
		c.fail(at, fmt.Sprintf("must have at most %d %s, has %d", m, things, n))
	}
}

func (c *checker) checkString(s map[string]any, v string, at *place) {
	c.checkCount(s, "minLength", "maxLength", utf8.RuneCountInString(v), "characters", at)
	if p, ok := s["pattern"].(string); ok {
		if re := compile(p); re != nil && !re.MatchString(v) {
			c.fail(at, "does not match the pattern "+p)
		}
	}
	switch s["format"] {
	case "date-time":
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			c.fail(at, "is no instant such as 2026-11-21T04:00:00Z")
		}
	case "date":
		if _, err := time.Parse(time.DateOnly, v); err != nil {
			c.fail(at, "is no date such as 2026-11-21")
		}
	case "go-duration":
		if _, err := time.ParseDuration(v); err != nil {
			c.fail(at, `is no duration such as "30s" or "1h30m"`)
		}
	}
}

// compile returns nil for what Go's expressions, which take linear time, do
// not have.
func compile(pattern string) *regexp.Regexp {
	if len(pattern) > 1000 {
		return nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil
	}
	return re
}

func (c *checker) checkArray(s map[string]any, v []any, at *place, depth int) {
	c.checkCount(s, "minItems", "maxItems", len(v), "items", at)
	prefix := list(s["prefixItems"])
	items, has := s["items"]
	for i, item := range v {
		if c.done() {
			return
		}
		switch {
		case i < len(prefix):
			c.check(prefix[i], item, at.item(i), depth+1)
		case has:
			c.check(items, item, at.item(i), depth+1)
		}
	}
	if s["uniqueItems"] == true {
		c.checkUnique(v, at)
	}
}

func (c *checker) checkUnique(v []any, at *place) {
	for i := range v {
		for j := range i {
			if c.steps--; c.done() {
				return
			}
			if equal(v[i], v[j]) {
				c.fail(at.item(i), fmt.Sprintf("is the same as item %d", j))
				return
			}
		}
	}
}
