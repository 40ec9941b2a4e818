package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Values of a file arrive as they were written. No date, octal number or word of YAML
// 1.1 changes.
func TestFileKeepsValues(t *testing.T) {
	read := func(text string) string {
		objects, err := (&App{In: strings.NewReader(text)}).Objects("-")
		require.NoError(t, err)
		require.Len(t, objects, 1)
		return string(objects[0]["input"])
	}
	require.Equal(t, `{"day":"2026-11-28","stamp":"2026-11-28T02:30:00Z","time":"12:30","zip":"01234","country":"NO","yes":"yes","version":1.10,"sha":1e10,"hex":"0x1F","nul":null,"empty":null,"n":123456789012345678901234567890,"merged":1}`,
		read(`
name: yaml-types
input:
  day: 2026-11-28
  stamp: 2026-11-28T02:30:00Z
  time: 12:30
  zip: 01234
  country: NO
  yes: yes
  version: 1.10
  sha: 1e10
  hex: 0x1F
  nul: ~
  empty:
  n: 123456789012345678901234567890
  <<: {merged: 1}
---
`))
	require.Equal(t, `{"url":"https://example.com/orders","text":"Order paid 😀","n":123456789012345678901234567890}`,
		read(`{"name":"x","input":{"url":"https:\/\/example.com\/orders","text":"Order paid \ud83d\ude00","n":123456789012345678901234567890}}`))
}

func TestInputIsJSON(t *testing.T) {
	a := &App{}
	got, err := a.JSONInput(`{"n":0.123456789012345678901,"t":"\ud83d\ude00"}`)
	require.NoError(t, err)
	require.Equal(t, `{"n":0.123456789012345678901,"t":"😀"}`, string(got))
	for text, want := range map[string]string{
		"{a: 1}": "--input: line 1: it is no JSON", "1 2": "--input: line 1: it is no JSON: a second value follows the first",
		"{\"t\":\"\xb0\xd9\"}": "--input: line 1: byte 7 of the line is not UTF-8 (0xb0)", " ": "--input: line 1: it is no JSON",
	} {
		_, err = a.JSONInput(text)
		require.ErrorContains(t, err, want)
		require.Equal(t, ExitUsage, CodeOf(err))
	}
	file := filepath.Join(t.TempDir(), "gbk.json")
	require.NoError(t, os.WriteFile(file, []byte("{\"t\":\"\xb0\xd9\"}"), 0o600))
	_, err = a.JSONInput("@" + file)
	require.ErrorContains(t, err, "save the file as UTF-8")
	require.True(t, json.Valid(got))
}
