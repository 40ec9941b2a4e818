package schema_test

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/internal/schema"
)

type level string

type audit struct {
	By string    `json:"by" doc:"who asked"`
	At time.Time `json:"at"`
}

type money struct {
	Cents    int64  `json:"cents,string"`
	Currency string `json:"currency" enum:"EUR,CNY,USD" required:"true"`
}

type order struct {
	audit
	ID       int64             `json:"id" required:"true" doc:"order number"`
	Price    *money            `json:"price"`
	Tags     []string          `json:"tags,omitempty" enum:"new,late"`
	Notes    map[string]string `json:"notes"`
	Wait     time.Duration     `json:"wait"`
	Level    level             `json:"level"`
	Retries  uint8             `json:"retries" enum:"1,2,3"`
	Ratio    float64           `json:"ratio"`
	Dry      bool              `json:"dry"`
	Blob     []byte            `json:"blob"`
	Pair     [2]int            `json:"pair"`
	Extra    any               `json:"extra"`
	Raw      json.RawMessage   `json:"raw"`
	Addr     netip.Addr        `json:"addr"`
	Hidden   string            `json:"-"`
	internal string
}

type tree struct {
	Name     string `json:"name"`
	Children []tree `json:"children"`
}

func mustOf(t *testing.T, v any) *schema.Type {
	t.Helper()
	typ, err := schema.Of(reflect.TypeOf(v))
	require.NoError(t, err)
	return typ
}

func TestInputSchema(t *testing.T) {
	require.JSONEq(t, `{
	  "$schema": "https://json-schema.org/draft/2020-12/schema",
	  "type": "object",
	  "properties": {
	    "by": {"type": "string", "description": "who asked"},
	    "at": {"type": "string", "format": "date-time"},
	    "id": {"type": "integer", "description": "order number"},
	    "price": {"anyOf": [{
	      "type": "object",
	      "properties": {
	        "cents": {"type": "string"},
	        "currency": {"type": "string", "enum": ["EUR","CNY","USD"]}
	      },
	      "required": ["currency"], "additionalProperties": false
	    }, {"type": "null"}]},
	    "tags": {"type": ["array","null"], "items": {"type": "string", "enum": ["new","late"]}},
	    "notes": {"type": ["object","null"], "additionalProperties": {"type": "string"}},
	    "wait": {"type": ["string","integer"], "format": "go-duration", "examples": ["30s","1h30m"]},
	    "level": {"type": "string"},
	    "retries": {"type": "integer", "minimum": 0, "maximum": 255, "enum": [1,2,3,0]},
	    "ratio": {"type": "number"},
	    "dry": {"type": "boolean"},
	    "blob": {"type": ["string","null"], "contentEncoding": "base64"},
	    "pair": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer"}},
	    "extra": {}, "raw": {},
	    "addr": {"type": "string"}
	  },
	  "required": ["id"], "additionalProperties": false
	}`, string(mustOf(t, order{}).Input()))
}

func TestOutputSchemaSaysWhatEncodingJSONWrites(t *testing.T) {
	require.JSONEq(t, `{
	  "$schema": "https://json-schema.org/draft/2020-12/schema",
	  "type": "object",
	  "properties": {
	    "took": {"type": "integer", "title": "nanoseconds"},
	    "files": {"type": ["array","null"], "items": {"type": "string"}}
	  },
	  "additionalProperties": false
	}`, string(mustOf(t, struct {
		Took  time.Duration `json:"took"`
		Files []string      `json:"files"`
	}{}).Output()))
}

func TestRecursiveTypesUseDefs(t *testing.T) {
	require.JSONEq(t, `{
	  "$schema": "https://json-schema.org/draft/2020-12/schema",
	  "$ref": "#/$defs/tree",
	  "$defs": {"tree": {
	    "type": "object",
	    "properties": {
	      "name": {"type": "string"},
	      "children": {"type": ["array","null"], "items": {"$ref": "#/$defs/tree"}}
	    },
	    "additionalProperties": false
	  }}
	}`, string(mustOf(t, tree{}).Input()))
	type forest []forest
	require.Contains(t, string(mustOf(t, forest{}).Input()), `"$defs":{"forest":{"type":["array","null"]`)
}

func TestSchemaKeepsFieldOrder(t *testing.T) {
	got := string(mustOf(t, struct{ Zebra, Apple int }{}).Input())
	require.Less(t, slices.Index([]byte(got), 'Z'), slices.Index([]byte(got), 'A'))
}

func TestNothingIsAnEmptyObject(t *testing.T) {
	typ := mustOf(t, struct{}{})
	require.True(t, typ.Empty())
	require.False(t, mustOf(t, order{}).Empty())
	for _, in := range []string{"", "null", "{}", " {} "} {
		require.NoError(t, typ.Decode([]byte(in), &struct{}{}), in)
	}
	require.EqualError(t, typ.Decode([]byte(`{"a":1}`), &struct{}{}), `unknown field "a"`)
}

// Members are the ones encoding/json writes, for every way of embedding.
func TestFieldsAgreeWithEncodingJSON(t *testing.T) {
	type Base struct{ A, B int }
	type Other struct{ B, C int }
	type Tagged struct {
		X int `json:"B"`
	}
	type Loop struct {
		*Base
		N int
	}
	for name, v := range map[string]any{
		"promoted": struct{ Base }{},
		"pointer":  struct{ *Base }{&Base{}},
		"ambiguous": struct {
			Base
			Other
		}{},
		"outer wins": struct {
			Base
			B string
		}{},
		"tag beats tie": struct {
			Base
			Tagged
		}{},
		"named embedding": struct {
			Base `json:"base"`
		}{},
		"two levels":           struct{ Loop }{Loop{Base: &Base{}}},
		"unexported embedding": struct{ audit }{},
	} {
		t.Run(name, func(t *testing.T) {
			written, err := json.Marshal(v)
			require.NoError(t, err)
			var members map[string]any
			require.NoError(t, json.Unmarshal(written, &members))
			var rendered struct{ Properties map[string]any }
			require.NoError(t, json.Unmarshal(mustOf(t, v).Input(), &rendered))
			require.ElementsMatch(t, keys(members), keys(rendered.Properties))
		})
	}
}

func keys(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

func TestTypesThatJSONCannotCarry(t *testing.T) {
	for want, v := range map[string]any{
		"field C: type chan int has no form in JSON":     struct{ C chan int }{},
		"field F: type func() has no form in JSON":       struct{ F func() }{},
		"interface error cannot be read from JSON":       struct{ E error }{},
		"map key float64 must be a string or an integer": map[float64]int{},
		`field N: tag enum: "x" is no integer`: struct {
			N int `enum:"1,x"`
		}{},
		`field N: tag required:"maybe": want true or false`: struct {
			N int `required:"maybe"`
		}{},
		"field S: tag enum: only strings, numbers and booleans": struct {
			S struct{} `enum:"a"`
		}{},
		"field tree: an embedded pointer to an unexported struct": struct{ *tree }{},
	} {
		_, err := schema.Of(reflect.TypeOf(v))
		require.ErrorContains(t, err, want)
	}
}
