package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The sources of a module whose `go test` shows every way to end.
var sources = map[string]string{
	"go.mod": "module example\n\ngo 1.26\n",
	"good/good_test.go": `package good
import "testing"
func TestOne(t *testing.T) { t.Log("quiet"); t.Run("sub", func(t *testing.T) {}) }
`,
	"bad/bad_test.go": `package bad
import "testing"
func TestGood(t *testing.T) {}
func TestBad(t *testing.T) { t.Error("loud") }
func TestSkip(late *testing.T) { late.Skip("not today") }
`,
	"exit/exit_test.go": `package exit
import ("os"; "testing")
func TestMain(m *testing.M) { m.Run(); os.Exit(3) }
func TestGood(t *testing.T) {}
`,
	"crash/crash_test.go": `package crash
import "testing"
func TestCrash(t *testing.T) { var m map[int]int; m[1] = 1 }
`,
	"dies/dies_test.go": `package dies
import ("fmt"; "os"; "testing")
func TestDies(t *testing.T) { fmt.Println("last words"); os.Exit(1) }
`,
	"broken/broken_test.go": "package broken\nimport \"testing\"\nfunc TestX(t *testing.T) { undefined() }\n",
	"empty/empty.go":        "package empty\n",
}

func TestReadGoTest(t *testing.T) {
	module := t.TempDir()
	write(t, module, sources)
	for _, test := range []struct {
		pkg    string
		want   count
		shown  []string
		hidden []string
		why    map[string][]string
	}{
		{"good", count{Passed: 2}, []string{"ok", "example/good"}, []string{"quiet", "PASS"}, nil},
		{"bad", count{Passed: 1, Failed: 2, Names: []string{"example/bad.TestBad", "example/bad.TestSkip"}, Failures: []failure{
			{Package: "example/bad", Test: "TestBad", Counted: 1},
			{Package: "example/bad", Test: "TestSkip", Counted: 1, Final: "a skipped test proves nothing"},
		}}, []string{"loud", "not today", "counts as failed: example/bad.TestSkip"}, []string{"TestGood"}, map[string][]string{"example/bad.TestBad": {"bad_test.go:4: loud"}, "example/bad.TestSkip": {skipped}}},
		{"exit", count{Passed: 1, Failed: 1, Names: []string{"example/exit"}, Failures: []failure{{Package: "example/exit", Counted: 1, Final: "failed outside its tests"}}}, []string{"FAIL\texample/exit"}, nil, map[string][]string{"example/exit": {"FAIL\texample/exit\t"}}},
		{"crash", count{Failed: 1, Names: []string{"example/crash.TestCrash"}, Failures: []failure{{Package: "example/crash", Test: "TestCrash", Counted: 1, Final: "panic"}}}, []string{"assignment to entry in nil map"}, nil, map[string][]string{"example/crash.TestCrash": {"panic: assignment to entry in nil map"}}},
		{"dies", count{Failed: 1, Names: []string{"example/dies"}, Failures: []failure{{Package: "example/dies", Counted: 1, Final: "failed outside its tests"}}}, []string{"last words"}, nil, map[string][]string{"example/dies": {"last words"}}},
		{"broken", count{Failed: 1, Names: []string{"example/broken"}, Failures: []failure{{Package: "example/broken", Counted: 1, Final: "failed outside its tests"}}}, []string{"undefined: undefined"}, nil, map[string][]string{"example/broken": {"undefined: undefined"}}},
		{"empty", count{}, nil, []string{"example"}, nil},
	} {
		t.Run(test.pkg, func(t *testing.T) {
			cmd := exec.Command("go", "test", "-json", "./"+test.pkg)
			cmd.Dir = module
			cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
			out, _ := cmd.Output() // the status is the subject of other tests
			var shown strings.Builder
			got, err := readGoTest(strings.NewReader(string(out)), &shown)
			require.NoError(t, err)
			for name, lines := range test.why {
				for _, line := range lines {
					require.Contains(t, strings.Join(got.Why[name], "\n"), line)
				}
			}
			require.Len(t, got.Why, len(test.why))
			got.Why = nil
			require.Equal(t, test.want, got, "%s", out)
			for _, text := range test.shown {
				require.Contains(t, shown.String(), text)
			}
			for _, text := range test.hidden {
				require.NotContains(t, shown.String(), text)
			}
		})
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// once is a test that fails the first time it runs in a folder, in a subtest.
const once = `package flaky
import ("os"; "testing")
func TestOnce(t *testing.T) {
	t.Run("sub", func(t *testing.T) {
		if _, err := os.Stat("ran"); err != nil { os.WriteFile("ran", nil, 0o644); t.Error("first") }
	})
}
func TestGood(t *testing.T) {}
`

func TestFailedTestsRunAgainAlone(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		most  int
		want  string // the end of the sum
		said  string
	}{
		{"flaky", map[string]string{"flaky/a_test.go": once}, 1, "\nflaky: example/flaky.TestOnce\n3 passed, 0 failed\n", "run again, alone: example/flaky.TestOnce\n"},
		{"too many", map[string]string{"flaky/a_test.go": once}, 0, "\nfailed: example/flaky.TestOnce/sub\n    a_test.go:5: first\n    repeat: go test -run '^TestOnce$' example/flaky\n1 passed, 2 failed\n", "1 tests failed"},
		{"fails again", map[string]string{"flaky/a_test.go": once, "flaky/b_test.go": "package flaky\nimport \"testing\"\nfunc TestBad(t *testing.T) { t.Error() }\n"}, 2,
			"\nflaky: example/flaky.TestOnce\nfailed: example/flaky.TestBad\n    b_test.go:3:\n    repeat: go test -run '^TestBad$' example/flaky\n3 passed, 1 failed\n", "run again, alone: example/flaky.TestBad\n"},
		{"a panic is final", map[string]string{"flaky/a_test.go": once, "crash/crash_test.go": sources["crash/crash_test.go"]}, 9, "1 passed, 3 failed\n", "not run again: example/crash.TestCrash: panic\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("GOFLAGS", "-mod=mod")
			t.Setenv("GOWORK", "off")
			module := t.TempDir()
			write(t, module, map[string]string{"go.mod": sources["go.mod"]})
			write(t, module, test.files)
			b := book{dir: t.TempDir()}
			words := []string{"go", "-C", module, "test", "-json", "-count=1", "-run", "."}
			ok, err := run(b, io.Discard, command{"go", "all", "go test -run '^{test}$' {package}", append(words, "./..."), len(words)})
			require.NoError(t, err)
			require.False(t, ok)
			var said, shown strings.Builder
			require.NoError(t, b.again(&said, test.most, filepath.Join(b.dir, "flaky.txt")))
			require.Contains(t, said.String(), test.said)
			_, err = b.sum(&shown)
			require.NoError(t, err)
			require.True(t, strings.HasSuffix(shown.String(), test.want), shown.String())
			flaky, _ := os.ReadFile(filepath.Join(b.dir, "flaky.txt")) // is not there when none was
			require.Equal(t, strings.Count(test.want, "flaky: "), strings.Count(string(flaky), "example/flaky.TestOnce\n"))
		})
	}
}

func TestFlakyTestsAreCounted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache", "flaky.txt")
	for _, name := range []string{"a.TestB", "c.TestD", "a.TestB", "a.TestB"} {
		require.NoError(t, noteFlaky(file, name))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `^1 \d{4}-\d\d-\d\d c\.TestD\n3 \d{4}-\d\d-\d\d a\.TestB\n$`, string(text))
}

// However much fails, the last 30 lines of a run have all names and the closing line.
func TestASumFitsOnAScreen(t *testing.T) {
	for _, failed := range []int{1, 3, 8, maxNames} {
		b := book{dir: t.TempDir()}
		var text strings.Builder
		for i := range failed {
			fmt.Fprintf(&text, "failed: test %d\n    first reason\n    second\n    third\n    fourth\n    fifth\n", i)
		}
		fmt.Fprintf(&text, "0 passed, %d failed\n", failed)
		report := filepath.Join(b.dir, "report")
		require.NoError(t, os.WriteFile(report, []byte(text.String()), 0o600))
		_, err := run(b, io.Discard, command{as: "lines", name: "ui", argv: []string{"cat", report}})
		require.NoError(t, err)
		var shown strings.Builder
		_, err = b.sum(&shown)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(shown.String()), "\n")
		last := strings.Join(lines[max(len(lines)-30, 0):], "\n")
		require.Equal(t, failed, strings.Count(last, failedMark+"test"), last)
		require.Equal(t, failed <= 8, strings.Contains(last, "first reason"), last)
		require.NotContains(t, last, "fifth")
	}
}

func TestReadGoTestRefusesOtherText(t *testing.T) {
	_, err := readGoTest(strings.NewReader("go: no such module\n"), &strings.Builder{})
	require.ErrorContains(t, err, "read go test -json")
}

func TestReadLines(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       count
		err        error
	}{
		{"last one counts", "1 passed, 0 failed\nmore\n12 passed, 3 failed\n", count{Passed: 12, Failed: 3}, nil},
		{"without newline", "2 passed, 0 failed", count{Passed: 2}, nil},
		{"with skipped", "2 passed, 1 failed, 4 skipped\n", count{Passed: 2, Failed: 1}, nil},
		{"names", "failed: a.TestB\nfailed: c\n2 passed, 2 failed\n", count{Passed: 2, Failed: 2, Names: []string{"a.TestB", "c"}}, nil},
		{"flaky", "flaky: a.TestB\n2 passed, 0 failed\n", count{Passed: 2, Flaky: []string{"a.TestB"}}, nil},
		{"not alone on its line", "ui: all 2 passed, 0 failed\n", count{}, errNoCount},
		{"nothing", "", count{}, errNoCount},
		{"no test", "0 passed, 0 failed\n", count{}, errNoTest},
	} {
		t.Run(test.name, func(t *testing.T) {
			var shown strings.Builder
			got, err := readLines(strings.NewReader(test.text), &shown)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, got)
			require.Equal(t, test.text, shown.String())
		})
	}
}

func TestRunsAddUp(t *testing.T) {
	b := book{dir: t.TempDir() + "/tally"}
	for _, test := range []struct {
		as, name, script string
		ok               bool
	}{
		{"step", "lint", "true", true},
		{"step", "generate", "false", false},
		{"lines", "ui", "echo 3 passed, 0 failed", true},
		{"lines", "e2e", "echo 2 passed, 0 failed; exit 1", false}, // it lies: one failure more
		{"lines", "silent", "true", false},
	} {
		ok, err := run(b, io.Discard, command{as: test.as, name: test.name, argv: []string{"sh", "-c", test.script}})
		require.NoError(t, err, test.name)
		require.Equal(t, test.ok, ok, test.name)
	}
	var shown strings.Builder
	ok, err := b.sum(&shown)
	require.NoError(t, err)
	require.False(t, ok)
	require.True(t, strings.HasSuffix(shown.String(), "\nfailed: e2e\n    2 passed, 0 failed\n    repeat: sh -c echo 2 passed, 0 failed; exit 1\n"+
		"failed: generate\n    repeat: sh -c false\nfailed: silent\n    repeat: sh -c true\n6 passed, 3 failed\n"), shown.String())

	require.NoError(t, b.clear())
	shown.Reset()
	ok, err = b.sum(&shown)
	require.NoError(t, err)
	require.False(t, ok, "nothing ran")
	require.Equal(t, "0 passed, 0 failed\n", shown.String())

	_, err = run(b, io.Discard, command{as: "step", name: "good", argv: []string{"true"}})
	require.NoError(t, err)
	ok, err = b.sum(&shown)
	require.NoError(t, err)
	require.True(t, ok)
}

func TestRunOfAMissingCommandCounts(t *testing.T) {
	b := book{dir: t.TempDir()}
	_, err := run(b, io.Discard, command{as: "step", name: "gone", argv: []string{"/no/such/program"}})
	require.Error(t, err)
	var shown strings.Builder
	_, err = b.sum(&shown)
	require.NoError(t, err)
	require.Contains(t, shown.String(), "0 passed, 1 failed")
}
