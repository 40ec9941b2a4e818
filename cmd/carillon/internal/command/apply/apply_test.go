package apply

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/document"
)

func TestValuesAreFilledIn(t *testing.T) {
	t.Setenv("SHOP_ZONE", "Asia/Shanghai")
	secret := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(secret, []byte("pass word\n"), 0o600))
	v := values{"host": json.RawMessage(`"mq.example"`), "port": json.RawMessage("5671"), "days": json.RawMessage(`[{"date":"2026-10-01"}]`)}
	got, err := v.fill(map[string]json.RawMessage{
		"name":    json.RawMessage(`"orders"`),
		"spec":    json.RawMessage(`{"addresses":["${{ host }}:${{port}}"],"zone":"${{ env:SHOP_ZONE }}","holidays":"${{ days }}","database":"${{ port }}"}`),
		"secrets": json.RawMessage(`{"password":"${{ file:` + secret + ` }}"}`),
	}, nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"orders","spec":{"addresses":["mq.example:5671"],"zone":"Asia/Shanghai","holidays":[{"date":"2026-10-01"}],"database":5671},"secrets":{"password":"pass word"}}`, string(got))
	for text, want := range map[string]string{
		"${{ nobody }}": "has no value", "${{ host": "without }}", "${{ env:NOT_SET_HERE }}": "is not set", "${{ file:/no/such/file }}": "no such file",
	} {
		raw, err := json.Marshal(text)
		require.NoError(t, err)
		_, err = v.fill(map[string]json.RawMessage{"name": raw}, nil)
		require.ErrorContains(t, err, want)
	}
}

// Scripts have texts that are not places of values.
func TestLiteralTextsStay(t *testing.T) {
	script := map[string]json.RawMessage{
		"kind": json.RawMessage(`"Script"`), "name": json.RawMessage(`"${{ name }}"`),
		"spec": json.RawMessage(`{"content":"echo ${{ secrets.X }} ${{","description":"of ${{ name }}"}`),
	}
	paths := literal([]apiclient.DocumentKind{{Name: "Calendar"}, {Name: "Script", Literal: []string{"spec.content"}}}, script)
	got, err := values{"name": json.RawMessage(`"clean"`)}.fill(script, paths)
	require.NoError(t, err)
	require.JSONEq(t, `{"kind":"Script","name":"clean","spec":{"content":"echo ${{ secrets.X }} ${{","description":"of clean"}}`, string(got))
	_, err = values{}.fill(script, nil)
	require.Error(t, err)
}

func TestFilesOfAFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a.yml", "c.json", "notes.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	got, err := filesOf(dir)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "a.yml"), filepath.Join(dir, "b.yaml"), filepath.Join(dir, "c.json")}, got)
	got, err = filesOf("-")
	require.NoError(t, err)
	require.Equal(t, []string{"-"}, got)
	_, err = filesOf(t.TempDir())
	require.ErrorContains(t, err, "no .yaml")
}

func TestLinesOfFields(t *testing.T) {
	values, err := document.Read([]byte("kind: Job\nname: a\nspec:\n  schedule:\n    calendars:\n      - name: cn\n      - name: de\n  labels:\n    a.b: x\n"))
	require.NoError(t, err)
	for path, want := range map[string]int{
		"": 1, "name": 2, "spec.schedule.calendars[1].name": 7, "spec.schedule.calendars[9].name": 5, "spec.labels.a.b": 9, "spec.schedule.expr": 4, "nothing": 1,
	} {
		require.Equal(t, want, lineOf(values[0], path), path)
	}
	p := place{"shop.yaml", values[0]}
	require.Equal(t, "shop.yaml:1 Job a", p.String())
	require.Equal(t, "shop.yaml:4 Job a: spec.schedule", p.at("spec.schedule"))
}
