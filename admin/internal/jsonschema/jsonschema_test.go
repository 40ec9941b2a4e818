package jsonschema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/jsonschema"
)

const order = `{"type":"object","additionalProperties":false,"required":["id"],
  "properties":{
    "id":{"type":"integer","minimum":1,"maximum":9007199254740993},
    "day":{"type":"string","format":"date"}, "at":{"type":"string","format":"date-time"},
    "wait":{"type":["string","integer"],"format":"go-duration"},
    "level":{"type":"string","enum":["low","high"]},
    "code":{"type":"string","pattern":"^[A-Z]{3}$","minLength":3,"maxLength":3},
    "ratio":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1,"multipleOf":0.25},
    "price":{"anyOf":[{"$ref":"#/$defs/money"},{"type":"null"}]},
    "items":{"type":"array","minItems":1,"maxItems":3,"uniqueItems":true,"items":{"$ref":"#/$defs/money"}},
    "pair":{"prefixItems":[{"const":"a"}],"items":{"type":"boolean"}},
    "notes":{"type":"object","additionalProperties":{"type":"string"},"propertyNames":{"maxLength":4},"maxProperties":2},
    "env":{"patternProperties":{"^X_":{"type":"string"}},"additionalProperties":false},
    "way":{"oneOf":[{"type":"string"},{"type":"object","required":["url"]},{"type":"object","required":["queue"]}]},
    "no":{"not":{"type":"null"}}, "never":false
  },
  "$defs":{"money":{"type":"object","required":["cents"],"properties":{"cents":{"type":"integer"},"more":{"$ref":"#/$defs/money"}}}}}`

func TestCheck(t *testing.T) {
	s := jsonschema.Read([]byte(order))
	require.NotNil(t, s)
	require.True(t, s.Object())
	for in, want := range map[string]string{
		`{"id":1}`: ``,
		`{"id":1.0,"day":"2026-11-21","at":"2026-11-21T04:00:00+08:00","wait":"1h","level":"low","code":"EUR","ratio":0.25}`:       ``,
		`{"id":1,"price":null,"items":[{"cents":1},{"cents":2,"more":{"cents":3}}],"pair":["a",true],"notes":{"k":"v"},"wait":30}`: ``,
		`{"id":1,"env":{"X_A":"b"},"way":{"url":"u"},"no":1}`:                                                                      ``,
		`{"id":9007199254740993}`:                ``,
		`{"id":9007199254740994}`:                `id /id must be at most 9007199254740993`,
		`[]`:                                     `  want object, got array`,
		`{`:                                      `  is not JSON`,
		`{"id":1} {}`:                            `  is not JSON`,
		`{}`:                                     `id /id is missing`,
		`{"id":"1"}`:                             `id /id want integer, got string`,
		`{"id":1.5}`:                             `id /id want integer, got number`,
		`{"id":0}`:                               `id /id must be at least 1`,
		`{"id":1,"dya":"x"}`:                     `dya /dya is not a field of the input (did you mean "day"?)`,
		`{"id":1,"DAY":"x"}`:                     `DAY /DAY is not a field of the input (did you mean "day"?)`,
		`{"id":1,"zzz":"x"}`:                     `zzz /zzz is not a field of the input`,
		`{"id":1,"a/b~c":1}`:                     `a/b~c /a~1b~0c is not a field of the input`,
		`{"id":1,"day":"21.11."}`:                `day /day is no date such as 2026-11-21`,
		`{"id":1,"at":"soon"}`:                   `at /at is no instant such as 2026-11-21T04:00:00Z`,
		`{"id":1,"wait":"soon"}`:                 `wait /wait is no duration such as "30s" or "1h30m"`,
		`{"id":1,"wait":true}`:                   `wait /wait want string or integer, got boolean`,
		`{"id":1,"level":"mid"}`:                 `level /level is not one of "low", "high"`,
		`{"id":1,"code":"eur"}`:                  `code /code does not match the pattern ^[A-Z]{3}$`,
		`{"id":1,"ratio":1}`:                     `ratio /ratio must be less than 1`,
		`{"id":1,"ratio":0.3}`:                   `ratio /ratio must be a multiple of 0.25`,
		`{"id":1,"price":{"cents":"1"}}`:         `price.cents /price/cents want integer, got string`,
		`{"id":1,"items":[]}`:                    `items /items must have at least 1 items, has 0`,
		`{"id":1,"items":[{"cents":1},{"c":2}]}`: `items[1].cents /items/1/cents is missing`,
		`{"id":1,"items":[{"cents":1},{"cents":1.0}]}`: `items[1] /items/1 is the same as item 0`,
		`{"id":1,"pair":["b",1]}`:                      `pair[0] /pair/0 is not one of "a"; pair[1] /pair/1 want boolean, got integer`,
		`{"id":1,"notes":{"toolong":"v"}}`:             `notes.toolong /notes/toolong must have at most 4 characters, has 7`,
		`{"id":1,"notes":{"a b":1}}`:                   `notes["a b"] /notes/a b want string, got integer`,
		`{"id":1,"env":{"Y":"b"}}`:                     `env.Y /env/Y is not a field of the input`,
		`{"id":1,"way":{"url":1,"queue":2}}`:           `way /way fits more than one of the forms that exclude each other`,
		`{"id":1,"way":{}}`:                            `way.url /way/url is missing`,
		`{"id":1,"no":null}`:                           `no /no has a form that is not allowed`,
		`{"id":1,"never":1}`:                           `never /never is not allowed`,
	} {
		var got []string
		for _, m := range s.Check([]byte(in)) {
			line := m.Path + " " + m.Pointer + " " + m.Message
			if m.Hint != "" {
				line += " (" + m.Hint + ")"
			}
			got = append(got, line)
		}
		require.Equal(t, want, strings.Join(got, "; "), in)
	}
}

// What cannot be read, or is not known, allows everything.
func TestInDoubtItFits(t *testing.T) {
	for _, raw := range []string{"", "null", "3", `"x"`, "{"} {
		require.Nil(t, jsonschema.Read([]byte(raw)), raw)
	}
	for _, raw := range []string{
		`true`, `{}`, `{"type":7}`, `{"pattern":"(?<=x)y"}`, `{"$ref":"https://example.com/x"}`, `{"$ref":"#/$defs/none"}`,
		`{"$ref":"#"}`, `{"unevaluatedProperties":false}`, `{"minimum":"3"}`, `{"required":"x"}`, `{"enum":3}`, `{"patternProperties":{"(?=x)":false},"additionalProperties":false}`,
	} {
		require.Empty(t, jsonschema.Read([]byte(raw)).Check([]byte(`{"x":"z","n":1e9999999}`)), raw)
	}
}

// A schema that doubles its work at every step costs what every other costs.
func TestWorkIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 60 {
		fmt.Fprintf(&b, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}],"allOf":[{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1, i+1)
	}
	b.WriteString(`"d60":{"type":"string"}}}`)
	jsonschema.Read([]byte(b.String())).Check([]byte(`1`)) // ends
	deep := strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)
	require.Empty(t, jsonschema.Read([]byte(`{"items":{"$ref":"#"}}`)).Check([]byte(deep)))
	many := `[` + strings.Repeat(`0,`, 50) + `0]`
	require.Len(t, jsonschema.Read([]byte(`{"items":{"type":"string"}}`)).Check([]byte(many)), 20)
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(order), []byte(`{"id":1,"items":[{"cents":1}]}`))
	f.Add([]byte(`{"$ref":"#/a/b","a":{"b":{"not":{"$ref":"#"}}}}`), []byte(`[null]`))
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		s := jsonschema.Read(schema)
		if s == nil {
			return
		}
		first := s.Check(value)
		require.LessOrEqual(t, len(first), 20)
		require.Equal(t, first, s.Check(value), "the same each time")
	})
}
