// Command prose measures how comments and documents read, and shows the sentences that read
// worst. With -check it fails if a figure is worse than the baseline.
//
//	go run ./tools/prose                      all texts, a row for each kind
//	go run ./tools/prose -files admin/tools/bench   a row for each file of a folder, worst first
//	go run ./tools/prose -change REV          only lines that were added since a revision
//	go run ./tools/prose -check               compares with tools/prose/baseline.txt; -update writes it
//
// A figure shows where to look. A sentence that is clear may break each rule.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/tools/checkout"
)

const baseline = "tools/prose/baseline.txt"

type options struct {
	worst                int
	change               string
	files, check, update bool
	paths                []string
}

func main() {
	var o options
	flag.IntVar(&o.worst, "n", 15, "how many of the worst sentences to print")
	flag.StringVar(&o.change, "change", "", "only lines that were added since this revision")
	flag.BoolVar(&o.files, "files", false, "a row for each file, worst first")
	flag.BoolVar(&o.check, "check", false, "fail if a figure is worse than in "+baseline)
	flag.BoolVar(&o.update, "update", false, "write "+baseline)
	flag.Parse()
	o.paths = flag.Args()
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

func run(o options, out io.Writer) error {
	if err := checkout.Enter(); err != nil {
		return err
	}
	rows, worst, err := measure(o.paths, o.change, o.files)
	if err != nil {
		return err
	}
	switch {
	case o.update:
		return os.WriteFile(baseline, []byte(table(rows, false)), 0o600)
	case o.check:
		return check(rows, o.worst, out)
	}
	fmt.Fprint(out, table(rows, o.files))
	printWorst(out, worst, o.worst)
	return nil
}

// check compares with the baseline. It prints the worst sentences of the lines that were added
// since the baseline was written.
func check(rows map[string]figures, most int, out io.Writer) error {
	text, err := os.ReadFile(baseline)
	if err != nil {
		return err
	}
	worse, err := compare(string(text), table(rows, false))
	if err != nil || len(worse) == 0 {
		return err
	}
	written, err := checkout.Git("log", "-1", "--format=%H", "--", baseline)
	if err != nil {
		return err
	}
	_, added, err := measure(nil, cmp.Or(strings.TrimSpace(written), "HEAD"), false)
	if err != nil {
		return err
	}
	for _, line := range worse {
		fmt.Fprintln(out, line)
	}
	printWorst(out, added, most)
	return errors.New("texts read worse than " + baseline + " says: make the sentences above plainer")
}

// compare lists the figures that are worse in the table now than in the table before.
func compare(before, now string) (worse []string, err error) {
	was := map[string][]string{}
	for line := range strings.Lines(before) {
		kind, values := cut(line)
		was[kind] = values
	}
	for line := range strings.Lines(now) {
		kind, values := cut(line)
		for i, v := range values {
			if kind == "" || i == 0 { // the number of sentences
				continue
			}
			if len(was[kind]) <= i {
				return nil, fmt.Errorf("%s has no %s of %q: write it with -update", baseline, columns[i], kind)
			}
			old, err1 := strconv.ParseFloat(was[kind][i], 64)
			is, err2 := strconv.ParseFloat(v, 64)
			if err := errors.Join(err1, err2); err != nil {
				return nil, fmt.Errorf("read %s: %w", baseline, err)
			}
			if is > old {
				worse = append(worse, fmt.Sprintf("%s: %s %s, at most %s", kind, columns[i], v, was[kind][i]))
			}
		}
	}
	return worse, nil
}

// cut cuts a line of a table into its kind and figures; the head has no kind.
func cut(line string) (kind string, values []string) {
	if len(line) <= kindWidth {
		return "", nil
	}
	return strings.TrimSpace(line[:kindWidth]), strings.Fields(line[kindWidth:])
}

var columns = []string{"sentences", "words", "persons", "clauses", "joints", "long"}

const (
	kindWidth = 28
	mostRows  = 60
)

// table has a row for each kind or file.
func table(rows map[string]figures, files bool) string {
	keys := make([]string, 0, len(rows))
	for key := range rows {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if x, y := rows[a].bad(), rows[b].bad(); files && x != y {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(a, b)
	})
	var out strings.Builder
	fmt.Fprintf(&out, "%*s %s\n", kindWidth, "", strings.Join(columns, "  "))
	for _, key := range keys[:min(len(keys), mostRows)] {
		f := rows[key]
		n := float64(f.sentences)
		fmt.Fprintf(&out, "%-*s %9d %6.1f %8.1f %8.1f %7.0f %5.0f\n", kindWidth, key[max(0, len(key)-kindWidth):], f.sentences,
			float64(f.words)/n, 100*float64(f.persons)/n, 100*float64(f.clauses)/n, 100*float64(f.joints)/n, 100*float64(f.long)/n)
	}
	return out.String()
}

func printWorst(out io.Writer, worst []found, most int) {
	slices.SortStableFunc(worst, func(a, b found) int { return cmp.Compare(b.bad, a.bad) })
	for _, w := range worst[:min(len(worst), most)] {
		text := []rune(w.text)
		fmt.Fprintf(out, "\n%s:%d\n  %s\n", w.file, w.line, string(text[:min(len(text), 300)]))
	}
}

// found is a sentence that reads badly.
type found struct {
	bad  float64
	file string
	line int
	text string
}

func measure(paths []string, change string, files bool) (rows map[string]figures, worst []found, err error) {
	names, err := tracked(paths)
	if err != nil {
		return nil, nil, err
	}
	var added map[string]map[int]bool
	if change != "" {
		if added, err = addedSince(change); err != nil {
			return nil, nil, err
		}
	}
	rows = map[string]figures{}
	for _, name := range names {
		only := added[name]
		if change != "" && only == nil {
			continue
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return nil, nil, err
		}
		key := kindOf(name)
		if files {
			key = name
		}
		for _, p := range paragraphs(string(text), filepath.Ext(name) == ".md", only) {
			for _, sentence := range p.sentences() {
				f := score(sentence)
				rows[key] = rows[key].plus(f)
				if bad := f.badness(); bad >= 3 {
					worst = append(worst, found{bad, name, p.line, sentence})
				}
			}
		}
	}
	return rows, worst, nil
}

// tracked are the files with texts that git knows, without generated and translated ones.
func tracked(paths []string) ([]string, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	out, err := checkout.Git(append([]string{"ls-files", "--"}, paths...)...)
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(name string) bool {
		has := func(parts ...string) bool {
			return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(name, p) })
		}
		return !slices.Contains([]string{".go", ".md", ".ts", ".tsx"}, filepath.Ext(name)) ||
			has("node_modules", ".zh-CN.", "/i18n/zh/", "/testdata/", ".pb.go", "_gen.go", "schema.d.ts")
	}), err
}

func kindOf(name string) string {
	switch {
	case strings.HasSuffix(name, ".md") && strings.Contains(name, "/adr/"):
		return "decisions"
	case strings.HasSuffix(name, ".md"):
		return "documents"
	case strings.Contains(name, "_test.go"), strings.Contains(name, "/test/"), strings.Contains(name, "/e2e/"):
		return "comments of tests"
	}
	return "comments"
}

// addedSince are the lines of each file that were added since a revision.
func addedSince(revision string) (map[string]map[int]bool, error) {
	out, err := checkout.Git("diff", "-U0", "--no-color", revision)
	if err != nil {
		return nil, err
	}
	added, name := map[string]map[int]bool{}, ""
	for line := range strings.Lines(out) {
		if rest, is := strings.CutPrefix(line, "+++ "); is {
			name, _ = strings.CutPrefix(strings.TrimSpace(rest), "b/")
			continue
		}
		if !strings.HasPrefix(line, "@@") {
			continue
		}
		if added[name] == nil {
			added[name] = map[int]bool{}
		}
		from, count := hunk(line)
		for n := range count {
			added[name][from+n] = true
		}
	}
	return added, nil
}

// hunk reads the new lines of "@@ -1,2 +3,4 @@".
func hunk(line string) (from, count int) {
	_, after, _ := strings.Cut(line, " +")
	after, _, _ = strings.Cut(after, " ")
	first, n, many := strings.Cut(after, ",")
	from, _ = strconv.Atoi(first)
	if count = 1; many {
		count, _ = strconv.Atoi(n)
	}
	return from, count
}
