package document_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/carillon-sched/carillon/internal/document"
)

func asJSON(t *testing.T, text string) string {
	t.Helper()
	values, err := document.Read([]byte(text))
	require.NoError(t, err, "%s", text)
	raw, err := json.Marshal(values)
	require.NoError(t, err)
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(string(raw), "["), "]"), `\u003c`, "<")
}

// A YAML scalar without quotes is null, a boolean or a JSON number. Everything else
// is text, and nothing of it changes.
func TestScalars(t *testing.T) {
	for text, want := range map[string]string{
		"":      `null`,
		"~":     `null`,
		"null":  `null`,
		"true":  `true`,
		"False": `false`,
		"0":     `0`, "-0": `-0`, "12": `12`, "1.10": `1.10`, "1e10": `1e10`, "12e3456": `12e3456`, "-1.5E+3": `-1.5E+3`,
		"123456789012345678901234567890":  `123456789012345678901234567890`,
		"0.12345678901234567890123456789": `0.12345678901234567890123456789`,
		"2026-12-24 18:00:00":             `"2026-12-24 18:00:00"`,
		"2026-11-28T02:30:00Z":            `"2026-11-28T02:30:00Z"`,
		"2026-11-20":                      `"2026-11-20"`,
		"12:30":                           `"12:30"`, "12:30:45": `"12:30:45"`, "190:20:30": `"190:20:30"`,
		"01234": `"01234"`, "007": `"007"`, "0o17": `"0o17"`, "0x1F": `"0x1F"`, "0b11": `"0b11"`, "1_000": `"1_000"`,
		"NO": `"NO"`, "yes": `"yes"`, "on": `"on"`, "y": `"y"`,
		".5": `".5"`, "1.": `"1."`, "+1": `"+1"`, ".inf": `".inf"`, ".NaN": `".NaN"`, "NaN": `"NaN"`, "Infinity": `"Infinity"`,
		"1,000": `"1,000"`, "10%": `"10%"`, "=": `"="`,
		`"~"`: `"~"`, `'12'`: `"12"`, `"true"`: `"true"`, `""`: `""`,
		"!!str 12": `"12"`, "!!int 12": `12`, "!!float 1.5": `1.5`,
		"|\n  12\n": `"12\n"`, ">\n  a\n  b\n": `"a b\n"`,
	} {
		require.Equal(t, `{"v":`+want+`}`, asJSON(t, "v: "+text+"\n"), "%s", text)
		if !strings.HasPrefix(text, "!") && !strings.ContainsAny(text, "\n") && text != "" {
			require.Equal(t, `["x",`+want+`]`, asJSON(t, "[x, "+strings.ReplaceAll(text, "1,000", "'1,000'")+"]"), "%s", text)
		}
	}
}

func TestYAML(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"names of fields are texts", "1: a\nyes: b\n~: c\n2026-11-20: d\n", `{"1":"a","yes":"b","~":"c","2026-11-20":"d"}`},
		{"aliases", "a: &x {b: 01}\nc: *x\nd: [*x]\n", `{"a":{"b":"01"},"c":{"b":"01"},"d":[{"b":"01"}]}`},
		{"merged", "base: &x {a: 1, b: 2}\nof:\n  <<: *x\n  b: 3\n", `{"base":{"a":1,"b":2},"of":{"b":3,"a":1}}`},
		{"merged from a list, the first wins", "<<: [{a: 1}, {a: 2, b: 3}]\n", `{"a":1,"b":3}`},
		{"documents", "a: 1\n---\nb: 2\n", `{"a":1},{"b":2}`},
		{"a quoted << is a name", "\"<<\": 1\n", `{"<<":1}`},
		{"byte order mark", "\ufeffa: 1\n", `{"a":1}`},
		{"lines of Windows", "a: 1\r\nb:\r\n  - x\r\n", `{"a":1,"b":["x"]}`},
		{"flow", "{name: hello, executor: {name: shop}}", `{"name":"hello","executor":{"name":"shop"}}`},
	} {
		t.Run(test.name, func(t *testing.T) { require.Equal(t, test.want, asJSON(t, test.text)) })
	}
	values, err := document.Read([]byte("# nothing\n"))
	require.NoError(t, err)
	require.Empty(t, values)
}

// Python, PHP and Java write JSON with escapes that YAML does not have.
func TestJSON(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"PHP's slash", `{"url":"https:\/\/example.com\/orders"}`, `{"url":"https://example.com/orders"}`},
		{"Python's pairs", `{"text":"Order paid \ud83d\ude00"}`, `{"text":"Order paid 😀"}`},
		{"many digits", `[123456789012345678901234567890,-0.1234567890123456789012,1E400]`, `[123456789012345678901234567890,-0.1234567890123456789012,1E400]`},
		{"tabs between", "{\n\t\"a\":\t[1,\n\t2]}", `{"a":[1,2]}`},
		{"control characters", `{"a":"\u0000\u007f\u2028\ufeff"}`, `{"a":"\u0000` + "\x7f" + `\u2028` + "\ufeff" + `"}`},
		{"texts that YAML reads otherwise", `{"a":"~","b":"012","c":"yes","d":"*x","":"- a: b #c"}`, `{"a":"~","b":"012","c":"yes","d":"*x","":"- a: b #c"}`},
		{"one after the other", "{\"a\":1}\n{\"a\":2}\n", `{"a":1},{"a":2}`},
		{"an empty list", `[]`, `[]`},
	} {
		t.Run(test.name, func(t *testing.T) { require.Equal(t, test.want, asJSON(t, test.text)) })
	}
	values, err := document.Read([]byte("{\n \"a\": 1,\n \"b\":\n [2]}"))
	require.NoError(t, err)
	require.Equal(t, 3, values[0].Members[1].Line)
	require.Equal(t, 4, values[0].Members[1].Value.Line)
}

func TestUTF16(t *testing.T) { // what > writes in a PowerShell
	raw := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune("a: 编钟 😀\r\n")) {
		raw = append(raw, byte(u), byte(u>>8))
	}
	require.Equal(t, `{"a":"编钟 😀"}`, asJSON(t, string(raw)))
}

// A refusal names the line and the remedy.
func TestRefused(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"cron of stars", "name: x\nschedule:\n  kind: cron\n  cron: * * * * *\n", `line 4: YAML gives the character * at the beginning of a text a meaning of its own; put the text in quotes: "* * * * *"`},
		{"cron of steps", "cron: */5 * * * *   # often\n", `line 1: YAML gives the character * at the beginning of a text a meaning of its own; put the text in quotes: "*/5 * * * *"`},
		{"cron in a list", "a:\n  - b: 1\n  - * 2\n", `line 3: YAML gives the character * at the beginning of a text a meaning of its own; put the text in quotes: "* 2"`},
		{"cron without spaces", "cron: *\n", `put the text in quotes: "*"`},
		{"an unknown alias", "cron: *daily\n", `put the text in quotes: "*daily"`},
		{"a macro", "cron: @daily\n", `put the text in quotes: "@daily"`},
		{"a percent sign", "\nformat: %d\n", `put the text in quotes: "%d"`},
		{"an anchor", "password: &secret\n", `line 1: the anchor &secret has no value; if it is meant as a text, put it in quotes: "&secret"`},
		{"a tag", "a: 1\npassword: !secret\n", `line 2: the tag !secret has no value; if it is meant as a text, put it in quotes: "!secret"`},
		{"a tag of another type", "a: !!timestamp 2026-11-20\n", `line 1: the tag !!timestamp does not fit "2026-11-20"; leave the tag out, and quote the value if it is a text`},
		{"a number that is none", "a: !!int 012\n", `line 1: the tag !!int does not fit "012"`},
		{"binary", "a: !!binary aGk=\n", `line 1: the tag !!binary`},
		{"twice", "a: 1\nb: 2\na: 3\n", `line 3: "a" comes twice in one object; say it once`},
		{"twice in JSON", "{\"a\": 1,\n\"a\": 2}", `line 2: "a" comes twice in one object; say it once`},
		{"JSON with a fault", "{\"a\": 1,\n \"b\": \"\\ud83d\" x}", `line 2: it is no JSON: invalid character 'x' after object key:value pair (column 16)`},
		{"JSON that ends", "{\"a\": {\n", `line 1: it is no JSON: unexpected end of JSON input`},
		{"a tab", "a:\n\tb: 1\n", `line 2: `},
		{"GBK", "a: 1\nb: \xb0\xd9\n", `line 2: byte 4 of the line is not UTF-8 (0xb0); save the file as UTF-8`},
		{"GBK in JSON", "{\"t\":\"\xb0\xd9\"}", `line 1: byte 7 of the line is not UTF-8`},
		{"a list as a name", "? [a]\n: 1\n", `line 1: the name of a field must be a text`},
		{"an alias in itself", "a: &x\n  b: *x\n", `line 2: the alias *x stands inside of what it repeats`},
		{"a merge of a text", "<<: text\n", `line 1: << takes an object or a list of objects`},
		{"deep YAML", strings.Repeat("[", 300) + strings.Repeat("]", 300), `nested deeper than 200 levels`},
		{"deep JSON", strings.Repeat("[", 300) + "1" + strings.Repeat("]", 300), `nested deeper than 200 levels`},
		{"billions", bomb(), `aliases repeat more than 100000 values`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := document.Read([]byte(test.text))
			require.ErrorContains(t, err, test.want)
		})
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("a: &a [x,x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c < 'k'; c++ {
		p := string(c - 1)
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+p+",", 10), ",") + "]\n")
	}
	return b.String()
}

// JSON that is written as YAML and read again is the same, and another reader of YAML
// sees texts as texts.
func TestWriteYAMLAndRead(t *testing.T) {
	words := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ \n\t\r'":#*&!%@|>~yYnN0-9.eEx_-]{0,8}`), rapid.SampledFrom([]string{
		"", "~", "null", "NO", "yes", "012", "0o17", "1e10", "12:30", "2026-11-28", "2026-11-28T02:30:00Z", "a\nb", "a\nb\n", "\n", " a", "a ", "\ta", "a\n\n", "\n\na", "  x\ny",
		"a: b", "- a", "# a", "a #b", "*a", "&a", "!a", "%a", "@a", "`a", "{", "[", "|", ">", "?", "? a", ":", "-", "---", "...", "<<", "=", "\u2028", "\x00", "\x7f", "\u0085", "\ufeff", "😀", "a\r\nb", "编钟",
	}))
	numbers := rapid.StringMatching(`-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?`)
	var values func(depth int) *rapid.Generator[any]
	values = func(depth int) *rapid.Generator[any] {
		leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
			rapid.Map(words, func(s string) any { return s }), rapid.Map(numbers, func(s string) any { return json.Number(s) }))
		if depth == 0 {
			return leaf
		}
		inner := values(depth - 1)
		return rapid.OneOf(leaf, rapid.Map(rapid.SliceOfN(inner, 0, 3), func(s []any) any { return s }),
			rapid.Map(rapid.MapOfN(words, inner, 0, 3), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(values(3).Draw(t, "value"))
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, document.WriteYAML(&text, raw))
		back, err := document.Read(text.Bytes())
		require.NoError(t, err, "%s", text.String())
		require.Len(t, back, 1)
		require.Equal(t, canonical(t, raw), canonical(t, must(json.Marshal(back[0]))), "%s", text.String())
		var other any
		require.NoError(t, yaml.Unmarshal(text.Bytes(), &other), "%s", text.String())
	})
}

// Readers of YAML 1.1, such as Python's, see texts as texts, too.
func TestAmbiguousTextsAreQuoted(t *testing.T) {
	for _, text := range []string{"NO", "yes", "on", "12:30", "12:30:45", "2026-11-28", "2026-11-28T02:30:00Z", "2026-11-28 18:00:00", "0o17", "0x1F", "012", "1_000", ".inf", "-.INF", ".NaN", "=", "1,000", "+1", ".5", "true", "Null", "~", "1e10"} {
		var out bytes.Buffer
		require.NoError(t, document.WriteYAML(&out, must(json.Marshal(map[string]string{"v": text}))))
		require.Equal(t, `v: "`+text+"\"\n", out.String())
	}
	for _, text := range []string{"nobody", "close-day", "10.1.0.0/16", "1h30m", "https://example.com", "编钟", "a b"} {
		var out bytes.Buffer
		require.NoError(t, document.WriteYAML(&out, must(json.Marshal(map[string]string{"v": text}))))
		require.Equal(t, "v: "+text+"\n", out.String())
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

func canonical(t require.TestingT, raw []byte) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return v
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("a: &x [1, *x]\n"))
	f.Add([]byte(`{"a":[1,"\ud83d\ude00"]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		values, err := document.Read(raw)
		for _, v := range values {
			require.NoError(t, err)
			require.True(t, json.Valid(must(json.Marshal(v))))
		}
	})
}

// An error of the YAML parser becomes a message in plain words, with its line.
func TestYAMLMistakesInPlainWords(t *testing.T) {
	for text, want := range map[string]string{
		"a: b\nname: a: b\n":        `line 2: a second ": " in one line`,
		"a: b\nname: [a\n":          "line 2: a list that begins with [ has no ] at its end",
		"a: b\nname: {a: b\nd: e\n": "line 2: an object that begins with { has no } at its end",
		"a:\n\tx: 1\n":              "line 2: a tab, or a character that cannot begin a value",
		"a: b\nc\n":                 "line 2: a line has no colon",
		"a:\n  - b\n c: d\n":        "line 3: the line is not in the column of the fields before it",
		"- a\nb: c\n":               "line 2: the line is not an item of the list before it",
		"key: \"a\n":                "a text in quotes does not end",
		`a: "\q"`:                   `line 1: a backslash in "double quotes"`,
		"a: | x\n b\n":              "line 1: more text follows the character | or >",
		"a: - b\n":                  "line 1: a list begins in the line of its field",
		"a: *x\n":                   "line 1: ",
		"kind: [\n":                 "line 1: a value is missing after [",
	} {
		_, err := document.Read([]byte(text))
		require.ErrorContains(t, err, want, text)
		for _, jargon := range []string{"mapping", "sequence", "token", "did not find", "unmarshal", "yaml:"} {
			require.NotContains(t, err.Error(), jargon, text)
		}
	}
}
