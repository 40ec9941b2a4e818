package output

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

type bell struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state"`
}

var bellView = View[bell]{
	Name: func(b bell) string { return b.Name },
	Columns: []Column[bell]{
		{Title: "ID", Value: func(b bell) string { return b.ID }, Drop: 1},
		{Title: "NAME", Value: func(b bell) string { return b.Name }},
		{Title: "STATE", Value: func(b bell) string { return b.State }, Drop: 2},
		{Title: "LONG", Value: func(b bell) string { return strings.Repeat("x", 30) }, Wide: true},
	},
}

func bells(t *testing.T) []apiclient.Doc[bell] {
	t.Helper()
	var docs []apiclient.Doc[bell]
	require.NoError(t, json.Unmarshal([]byte(`[
		{"id":"9007199254740993","name":"编钟","state":"succeeded","extra":{"b":1,"a":"007"}},
		{"id":"2","name":"a<b>","state":"","extra":null}]`), &docs))
	return docs
}

func list(t *testing.T, p *Printer) string {
	t.Helper()
	var out bytes.Buffer
	p.Out = &out
	require.NoError(t, List(p, bellView, bells(t)))
	return out.String()
}

// Chinese characters are two columns wide: the columns after them stay aligned.
func TestTable(t *testing.T) {
	require.Equal(t, ""+
		"ID                 NAME   STATE\n"+
		"9007199254740993   编钟   succeeded\n"+
		"2                  a<b>   -\n", list(t, &Printer{Format: Table}))
	require.Contains(t, list(t, &Printer{Format: Wide, Width: 10}), "LONG", "wide ignores the width")
}

// Columns give way one after the other; ids and names are never cut.
func TestNarrowTerminal(t *testing.T) {
	require.Equal(t, "ID                 NAME\n9007199254740993   编钟\n2                  a<b>\n",
		list(t, &Printer{Format: Table, Width: 30}))
	require.Equal(t, "NAME\n编钟\na<b>\n", list(t, &Printer{Format: Table, Width: 5}))
	require.Equal(t, "NAME\n编钟\na<b>\n", list(t, &Printer{Format: Table, Width: 1}))
}

func TestColor(t *testing.T) {
	require.Contains(t, list(t, &Printer{Format: Table, Color: true}), "\x1b[32msucceeded\x1b[0m")
	require.NotContains(t, list(t, &Printer{Format: Table}), "\x1b")
}

// JSON and YAML are what the server said: unknown fields, order, big ids.
func TestMachineFormats(t *testing.T) {
	text := list(t, &Printer{Format: JSON})
	require.JSONEq(t, `{"items":[
		{"id":"9007199254740993","name":"编钟","state":"succeeded","extra":{"b":1,"a":"007"}},
		{"id":"2","name":"a<b>","state":"","extra":null}]}`, text)
	require.Contains(t, text, `"a<b>"`, "no HTML escapes")
	require.Less(t, strings.Index(text, `"b": 1`), strings.Index(text, `"a": "007"`), "order is kept")

	text = list(t, &Printer{Format: YAML})
	require.Contains(t, text, "id: \"9007199254740993\"\n", "a string that looks like a number keeps its quotes")
	require.Contains(t, text, "name: 编钟\n")
	var back struct {
		Items []struct {
			ID    any
			Extra map[string]any
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &back))
	require.Equal(t, "9007199254740993", back.Items[0].ID)
	require.Equal(t, map[string]any{"b": 1, "a": "007"}, back.Items[0].Extra)

	require.Equal(t, "编钟\na<b>\n", list(t, &Printer{Format: Name}))

	var out bytes.Buffer
	require.NoError(t, List(&Printer{Out: &out, Format: JSON}, bellView, []apiclient.Doc[bell]{}))
	require.JSONEq(t, `{"items":[]}`, out.String(), "an empty list is a list")
}

// YAML has the same values: escapes of JSON are letters, and numbers keep their digits.
func TestYAMLKeepsValues(t *testing.T) {
	var docs []apiclient.Doc[bell]
	require.NoError(t, json.Unmarshal([]byte(`[{"id":"1","input":{"url":"https:\/\/example.com","text":"paid \ud83d\ude00","n":123456789012345678901234567890,"d":"2026-11-28","z":"01234"}}]`), &docs))
	var out bytes.Buffer
	require.NoError(t, List(&Printer{Out: &out, Format: YAML}, bellView, docs))
	for _, want := range []string{"url: https://example.com\n", `text: "paid \U0001F600"`, "n: 123456789012345678901234567890\n", "d: \"2026-11-28\"\n", "z: \"01234\"\n"} {
		require.Contains(t, out.String(), want)
	}
}

// Names come from others: they cannot move the cursor or turn the text.
func TestClean(t *testing.T) {
	require.Equal(t, "a b�[31m�c", Clean("a\nb\x1b[31m\u202ec"))
	require.Equal(t, "a\n\tb�", CleanLines("a\r\n\tb\x07"))
}

func TestSpan(t *testing.T) {
	for _, test := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0 ms"}, {850 * time.Millisecond, "850 ms"}, {1234 * time.Millisecond, "1.2 s"}, {59 * time.Second, "59 s"},
		{72 * time.Second, "1 m 12 s"}, {time.Hour, "1 h"}, {3*time.Hour + 5*time.Minute, "3 h 5 m"},
		{49 * time.Hour, "2 d 1 h"}, {-time.Minute, "-1 m"},
	} {
		require.Equal(t, test.want, Span(test.d))
	}
	now := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	later, before := now.Add(time.Minute), now.Add(-time.Hour)
	require.Equal(t, "in 1 m", When(&later, now))
	require.Equal(t, "1 h ago", When(&before, now))
	require.Equal(t, "now", When(&now, now))
	require.Empty(t, When(nil, now))
}
