package document_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/document"
)

func one(t *testing.T, text string) *document.Value {
	t.Helper()
	values, err := document.Objects([]byte(text))
	require.NoError(t, err)
	require.Len(t, values, 1)
	return values[0]
}

func TestValuesAreFilledIn(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "password"), []byte("pass word\n"), 0o600))
	p := document.Places{
		Named:  one(t, "host: mq.example\nport: 5671\ndays: [{date: 2026-10-01}]\n"),
		Getenv: func(name string) (string, bool) { return "Asia/Shanghai", name == "SHOP_ZONE" }, Dir: dir,
	}
	v := one(t, `
name: orders
spec:
  addresses: ["${{ host }}:${{port}}"]
  zone: ${{ env:SHOP_ZONE }}
  holidays: ${{ days }}
  database: ${{ port }}
  all: days ${{ days }}
secrets: {password: "${{ file:password }}", same: "${{ file:`+dir+`/password }}"}
`)
	wrong, kept := p.Fill(v, nil)
	require.Empty(t, wrong)
	require.Empty(t, kept)
	require.Empty(t, p.Unused())
	raw, err := v.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"orders","spec":{"addresses":["mq.example:5671"],"zone":"Asia/Shanghai","holidays":[{"date":"2026-10-01"}],"database":5671,
		"all":"days [{\"date\":\"2026-10-01\"}]"},"secrets":{"password":"pass word","same":"pass word"}}`, string(raw))
	require.Equal(t, 6, v.LineOf("spec.holidays"), "a value keeps the line of its place")

	for text, want := range map[string]string{
		"${{ nobody }}": "has no value", "${{ host": "without }}", "${{ env:NOT_SET_HERE }}": "is not set", "${{ file:/no/such/file }}": "no such file",
	} {
		v := one(t, "name: x\nspec:\n  a: [b, '"+text+"']\n")
		wrong, _ := p.Fill(v, nil)
		require.Len(t, wrong, 1)
		require.ErrorContains(t, wrong[0].Err, want)
		require.Equal(t, "spec.a[1]", wrong[0].Path)
		require.Equal(t, 3, wrong[0].Line)
	}
}

// Scripts have texts that are not places of values.
func TestLiteralTextsStay(t *testing.T) {
	const script = "kind: Script\nname: ${{ name }}\nspec:\n  content: echo ${{ secrets.X }} ${{\n  description: of ${{ name }}\n"
	p := document.Places{Named: one(t, "name: clean")}
	v := one(t, script)
	wrong, kept := p.Fill(v, []string{"spec.content"})
	require.Empty(t, wrong)
	require.Empty(t, kept)
	raw, err := v.MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"kind":"Script","name":"clean","spec":{"content":"echo ${{ secrets.X }} ${{","description":"of clean"}}`, string(raw))
	wrong, _ = p.Fill(one(t, script), nil)
	require.Len(t, wrong, 1)

	// A value that stands in such a text is told, and one that no document uses.
	p = document.Places{Named: one(t, "name: clean\nzoen: UTC\nbody: x"), Advice: "do this"}
	wrong, kept = p.Fill(one(t, strings.Replace(script, "secrets.X", "body", 1)), []string{"spec.content"})
	require.Empty(t, wrong)
	require.Len(t, kept, 1)
	require.Equal(t, "spec.content", kept[0].Path)
	require.Equal(t, 4, kept[0].Line)
	require.ErrorContains(t, kept[0].Err, "${{ body }} stays as it is written")
	var unused []string
	for _, m := range p.Unused() {
		unused = append(unused, m.Name)
	}
	require.Equal(t, []string{"zoen", "body"}, unused)
	wrong, _ = p.Fill(one(t, "name: ${{ none }}"), nil)
	require.ErrorContains(t, wrong[0].Err, "${{ none }} has no value: do this")
}

func TestFilesOfAFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a.yml", "c.json", "notes.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	got, err := document.Files(dir)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "a.yml"), filepath.Join(dir, "b.yaml"), filepath.Join(dir, "c.json")}, got)
	got, err = document.Files("-")
	require.NoError(t, err)
	require.Equal(t, []string{"-"}, got)
	_, err = document.Files(t.TempDir())
	require.ErrorContains(t, err, "no .yaml")
}

func TestLinesOfFields(t *testing.T) {
	v := one(t, "kind: Job\nlabels:\n  a.b/c: x\nspec:\n  retry:\n    most: 1\n  calendars:\n    - name: a\n    - name: b\n      part: 1\n")
	for path, want := range map[string]int{
		"": 0, "kind": 1, "labels.a.b/c": 3, "spec": 4, "spec.retry": 5, "spec.retry.most": 6, "spec.retry.none": 5,
		"spec.calendars[1].part": 10, "spec.calendars[0]": 8, "spec.calendars[7]": 7, "spec.nowhere.at.all": 4, "none": 0,
	} {
		require.Equal(t, want, v.LineOf(path), path)
	}
	for path, want := range map[string]string{"kind": "Job", "labels.a.b/c": "x", "spec.retry.most": "1", "spec.calendars[1].name": "b"} {
		require.Equal(t, want, v.At(path).Text, path)
	}
	for _, path := range []string{"none", "spec.calendars[7]", "spec.retry.none", "kind.x", "spec[0]"} {
		require.Nil(t, v.At(path), path)
	}
}
