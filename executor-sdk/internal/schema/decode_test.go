package schema_test

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/internal/schema"
)

func TestDecode(t *testing.T) {
	var got order
	require.NoError(t, mustOf(t, got).Decode([]byte(` {
	  "by":"ann", "at":"2026-11-21T04:00:00Z", "id":7,
	  "price":{"cents":"1250","currency":"EUR"}, "tags":["late"], "notes":{"a\u0062":"é"},
	  "wait":"1h30m", "level":"high", "retries":2, "ratio":1.5, "dry":true,
	  "blob":"aGk=", "pair":[1,2], "extra":{"k":[1,null]}, "raw":[1], "addr":"10.0.0.1" } `), &got))
	require.Equal(t, order{
		audit: audit{By: "ann", At: time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)},
		ID:    7, Price: &money{Cents: 1250, Currency: "EUR"}, Tags: []string{"late"},
		Notes: map[string]string{"ab": "é"}, Wait: 90 * time.Minute, Level: "high", Retries: 2,
		Ratio: 1.5, Dry: true, Blob: []byte("hi"), Pair: [2]int{1, 2},
		Extra: map[string]any{"k": []any{1.0, nil}}, Raw: json.RawMessage("[1]"),
		Addr: netip.MustParseAddr("10.0.0.1"),
	}, got)
}

// What was not set is written as null, and comes back.
func TestAValueWithoutAnythingComesBack(t *testing.T) {
	want := order{ID: 7, Raw: json.RawMessage("null"), Retries: 1}
	text, err := json.Marshal(want)
	require.NoError(t, err)
	for _, null := range []string{`"notes":null`, `"blob":null`, `"price":null`} {
		require.Contains(t, string(text), null)
	}
	var got order
	require.NoError(t, mustOf(t, got).Decode(text, &got))
	require.Equal(t, want, got)
}

func TestDecodeErrorsSayWhereAndWhat(t *testing.T) {
	typ := mustOf(t, order{})
	for in, want := range map[string]string{
		`{`:                                   `not JSON at byte 1: unexpected end of JSON input`,
		`{"id":1}x`:                           `not JSON at byte 9: invalid character 'x' after top-level value`,
		`[]`:                                  `want object, got array`,
		``:                                    `required field "id" is missing`,
		`{}`:                                  `required field "id" is missing`,
		`{"id":1,"Price":null}`:               `unknown field "Price"; did you mean "price"?`,
		`{"id":1,"tagss":null}`:               `unknown field "tagss"; did you mean "tags"?`,
		`{"id":1,"quantity":3}`:               `unknown field "quantity"`,
		`{"id":1,"id":2}`:                     `id: stands twice`,
		`{"id":"1"}`:                          `id: want integer, got string`,
		`{"id":null}`:                         `id: must not be null`,
		`{"id":1.5}`:                          `id: 1.5 is no integer that fits int64`,
		`{"id":1,"retries":300}`:              `retries: 300 is no integer that fits uint8`,
		`{"id":1,"retries":9}`:                `retries: 9 is not one of 1, 2, 3, 0`,
		`{"id":1,"price":{"cents":"1"}}`:      `price: required field "currency" is missing`,
		`{"id":1,"price":{"currency":"GBP"}}`: `price.currency: "GBP" is not one of "EUR", "CNY", "USD"`,
		`{"id":1,"price":{"cents":12}}`:       `price.cents: want integer inside a string, got 12`,
		`{"id":1,"tags":["late","x"]}`:        `tags[1]: "x" is not one of "new", "late"`,
		`{"id":1,"tags":{}}`:                  `tags: want array, got object`,
		`{"id":1,"notes":{"k":1}}`:            `notes["k"]: want string, got number`,
		`{"id":1,"wait":"soon"}`:              `wait: "soon" is no duration; write for example "30s" or "1h30m"`,
		`{"id":1,"wait":true}`:                `wait: want a duration such as "30s", got boolean`,
		`{"id":1,"at":"yesterday"}`:           `at: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`,
		`{"id":1,"pair":[1]}`:                 `pair: want 2 items, got 1`,
		`{"id":1,"blob":"*"}`:                 `blob: illegal base64 data at input byte 0`,
		`{"id":1,"addr":"nowhere"}`:           `addr: ParseAddr("nowhere"): unable to parse IP`,
	} {
		err := typ.Decode([]byte(in), &order{})
		require.EqualError(t, err, want, in)
		var located *schema.Error
		require.ErrorAs(t, err, &located)
	}
}

func TestDecodeOtherRoots(t *testing.T) {
	var text string
	require.NoError(t, mustOf(t, text).Decode([]byte(`"x"`), &text))
	require.Equal(t, "x", text)
	require.EqualError(t, mustOf(t, text).Decode(nil, &text), "must not be null")

	var byDay map[int][]string
	require.NoError(t, mustOf(t, byDay).Decode([]byte(`{"1":["a"],"2":null}`), &byDay))
	require.Equal(t, map[int][]string{1: {"a"}, 2: nil}, byDay)
	require.EqualError(t, mustOf(t, byDay).Decode([]byte(`{"x":[]}`), &byDay), `["x"]: key is no int`)
	require.EqualError(t, mustOf(t, byDay).Decode([]byte(`{"1":[],"1":[]}`), &byDay), `["1"]: stands twice`)

	require.NoError(t, mustOf(t, struct{ V any }{}).Decode([]byte(`{"V":null}`), &struct{ V any }{}))

	var pointer *order
	require.NoError(t, mustOf(t, pointer).Decode([]byte(`null`), &pointer))
	require.Nil(t, pointer)
}

func TestDecodeBoundsDepth(t *testing.T) {
	deep := strings.Repeat(`{"children":[`, 50) + strings.Repeat(`]}`, 50)
	err := mustOf(t, tree{}).Decode([]byte(deep), &tree{})
	require.ErrorContains(t, err, "nested deeper than 64")
}

// What the strict decoder takes, encoding/json takes too, with the same
// meaning, as long as no duration is involved.
func FuzzDecode(f *testing.F) {
	type plain struct {
		audit
		ID    int64          `json:"id" required:"true"`
		Price *money         `json:"price"`
		Tags  []string       `json:"tags"`
		Notes map[string]int `json:"notes"`
		Pair  [2]int8        `json:"pair"`
		Tree  tree           `json:"tree"`
		Extra any            `json:"extra"`
	}
	typ, err := schema.Of(reflect.TypeFor[plain]())
	require.NoError(f, err)
	f.Add([]byte(`{"id":1,"price":{"cents":"5","currency":"EUR"},"tags":["\u00e9"],"notes":{"a":1},"pair":[1,-2]}`))
	f.Add([]byte(`{"id":1,"tree":{"name":"r","children":[{"name":"\"}"}]},"extra":[{},null,1e3]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var strict plain
		if typ.Decode(data, &strict) != nil || len(bytes.TrimSpace(data)) == 0 {
			return
		}
		var loose plain
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&loose))
		require.Equal(t, loose, strict)
	})
}

func BenchmarkDecode(b *testing.B) {
	type input struct {
		OrderID int64  `json:"orderId" required:"true"`
		Reason  string `json:"reason" enum:"unpaid,fraud"`
		Items   []struct {
			SKU   string
			Count int
		} `json:"items"`
	}
	typ, err := schema.Of(reflect.TypeFor[input]())
	require.NoError(b, err)
	data := []byte(`{"orderId":12345,"reason":"unpaid","items":[{"SKU":"a-1","Count":2},{"SKU":"b-2","Count":1}]}`)
	b.ReportAllocs()
	for b.Loop() {
		var in input
		if err := typ.Decode(data, &in); err != nil {
			b.Fatal(err)
		}
	}
}
