package main

import (
	"context"
	"errors"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// The list fits the code: each fault can be put in once and leaves a Go file, and
// the tests that it names exist.
func TestTheListFitsTheCode(t *testing.T) {
	all, err := parse(list)
	require.NoError(t, err)
	for _, m := range all {
		changed, err := m.apply(root)
		require.NoError(t, err, "line %d", m.line)
		_, err = parser.ParseFile(token.NewFileSet(), m.file, changed, parser.SkipObjectResolution)
		require.NoError(t, err, "line %d: mutant %s", m.line, m.name)
		for _, c := range m.tests {
			require.True(t, c.exists(t), "line %d: mutant %s: %s runs no test", m.line, m.name, c)
		}
	}
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)

// exists tells whether the command would run a test.
func (c testCommand) exists(t *testing.T) bool {
	files, err := filepath.Glob(filepath.Join(root, c.module, c.pack, "*_test.go"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(c.pattern, "/")
	pattern, err := regexp.Compile(first)
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, found := range testFunc.FindAllSubmatch(text, -1) {
			if pattern.Match(found[1]) {
				return true
			}
		}
	}
	return false
}

const oneMutant = `# for people
mutant sum: it takes away
file sum.go
 func sum(a, b int) int {
-	return a + b
+	return a - b
test . . TestSum
`

// lab is a module with one function, one test that looks at it and one that does not.
func lab(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module lab\n\ngo 1.25\n",
		"sum.go":      "package lab\n\nfunc sum(a, b int) int {\n\treturn a + b\n}\n\nfunc other(a, b int) int {\n\treturn a + b\n}\n",
		"sum_test.go": "package lab\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif sum(2, 1) != 3 || other(2, 1) != 3 {\n\t\tt.Error(1)\n\t}\n}\n\nfunc TestBlind(*testing.T) {}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// With the real go command: noticed, not noticed, and no Go.
func TestMutantsAreTried(t *testing.T) {
	variant := func(name string, pairs ...string) string {
		return strings.NewReplacer(append(pairs, "mutant sum", "mutant "+name)...).Replace(oneMutant)
	}
	all, err := parse(variant("noticed") + variant("unnoticed", "TestSum", "TestBlind") + variant("nonsense", "a - b", "a - c"))
	require.NoError(t, err)
	var out strings.Builder
	h := harness{root: lab(t), jobs: 2, limit: time.Minute, out: &out}
	require.ErrorContains(t, h.all(t.Context(), all), "not all mutants were noticed")
	require.Regexp(t, `(?m)^killed +noticed .* TestSum$`, out.String())
	require.Regexp(t, `(?m)^SURVIVED unnoticed `, out.String())
	require.Regexp(t, `(?m)^DOES NOT BUILD nonsense `, out.String())
	require.Contains(t, out.String(), "1 killed, 0 explained, 2 wrong")
}

func TestWhatBecomesOfAMutant(t *testing.T) {
	const excuse = "survives nobody calls it\n"
	for name, c := range map[string]struct {
		list        string
		sick, fails bool // the tests: without the mutant, and with it
		says, err   string
	}{
		"noticed":              {list: oneMutant, fails: true, says: "killed   sum"},
		"not noticed":          {list: oneMutant, says: "SURVIVED sum", err: "not all mutants were noticed"},
		"explained":            {list: oneMutant + excuse, says: "survives, as the list explains sum"},
		"explained in vain":    {list: oneMutant + excuse, fails: true, says: "KILLED, though", err: "not all mutants were noticed"},
		"tests that fail":      {list: oneMutant, sick: true, err: "without a mutant, go -C . test . -run 'TestSum'"},
		"lines that have gone": {list: strings.Replace(oneMutant, "-\treturn a + b", "-\treturn a * b", 1), err: "stand in sum.go 0 times"},
		"lines that are many":  {list: strings.Replace(oneMutant, " func sum(a, b int) int {\n", "", 1), err: "stand in sum.go 2 times"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := parse(c.list)
			require.NoError(t, err)
			var out strings.Builder
			h := harness{root: lab(t), jobs: 1, out: &out, test: func(_ context.Context, _ testCommand, overlay string) ([]byte, error) {
				if overlay == "" && c.sick || overlay != "" && c.fails {
					return []byte("--- FAIL: TestSum (0.00s)\n"), errors.New("exit status 1")
				}
				return nil, nil
			}}
			err = h.all(t.Context(), all)
			if c.err == "" {
				require.NoError(t, err, out.String())
			} else {
				require.ErrorContains(t, err, c.err)
			}
			require.Contains(t, out.String(), c.says)
		})
	}
}

func TestWhatIsNoList(t *testing.T) {
	for text, want := range map[string]string{
		"file x.go\n":                      "no mutant has begun",
		"mutant x\n":                       "want mutant NAME: WHAT",
		"mutant x: y\n":                    "needs a file, a change and tests",
		"mutant x: y\nfiles x.go\n":        `unexpected "files"`,
		"mutant x: y\nfile a\ntest .\n":    "want test MODULE PACKAGE",
		oneMutant + oneMutant:              "two mutants sum",
		"mutant x: y\nfile a\nfile b.go\n": `unexpected "file"`,
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, want, text)
	}
}
