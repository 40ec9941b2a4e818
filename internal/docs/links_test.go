package docs

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	"github.com/stretchr/testify/require"
)

// indexes are the documents that have to name every other one of their folder.
var indexes = []string{"docs/guide/README.md", "docs/dev/README.md", "docs/adr/README.md"}

func TestDocumentsLeadWhereTheySay(t *testing.T) {
	found := check(t, os.DirFS("../.."))
	require.Empty(t, found, "\n"+strings.Join(found, "\n"))
}

// TestCheckFinds is the check of the check: each thing that may be wrong is found.
func TestCheckFinds(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	found := check(t, fstest.MapFS{
		"README.md": file("# A\n[good](docs/guide/a.md#two-words-and-code) [up](docs/guide/README.md) [web](https://example.com/x)\n" +
			"[gone](docs/gone.md) [no heading](docs/guide/a.md#three) `[code](nowhere.md)`\n<img alt=\"x\" src=\"docs/x.webp\">\n```\n[block](nowhere.md)\n```\n"),
		"docs/guide/README.md":    file("# Index\n[a](a.md) [same](#index) [not here](#other)\n"),
		"docs/guide/a.md":         file("# A\n## Two words, and `code`\n```\n# three\n```\n## Twice\n## Twice\n[second](#twice-1) [third](#twice-2)\n"),
		"docs/guide/forgotten.md": file("# Forgotten\n"),
		"docs/adr/0001-x.md":      file("# 0001: x\n"),
		"docs/adr/README.md":      file("[0001](0001-x.md)\n"),
		"docs/dev/README.md":      file("# Dev\n"),
		"admin/a.go":              file("// See docs/guide/a.md#twice, docs/adr/0001, docs/guide/b.md and docs/adr/0002.\n"),
		"node_modules/x/b.go":     file("// docs/gone.md\n"),
	})
	require.Equal(t, []string{
		"README.md: docs/gone.md: there is no such file",
		"README.md: docs/guide/a.md#three: there is no such heading",
		"README.md: docs/x.webp: there is no such file",
		"admin/a.go: docs/adr/0002: there is no such file",
		"admin/a.go: docs/guide/b.md: there is no such file",
		"docs/guide/README.md: #other: there is no such heading",
		"docs/guide/README.md: does not name forgotten.md",
		"docs/guide/a.md: #twice-2: there is no such heading",
	}, found)
}

var (
	link    = regexp.MustCompile(`(?:\]\(|\b(?:src|srcset)=")([^)\s"]+)[)"]`)
	code    = regexp.MustCompile("`[^`]*`")
	scheme  = regexp.MustCompile(`^[a-z]+:`)
	heading = regexp.MustCompile(`^#{1,6}\s+(.+)$`)
	marks   = regexp.MustCompile("[`*]|\\]\\([^)]*\\)|\\[")
	// mention is a document's path in a text that is no document.
	mention = regexp.MustCompile(`\bdocs/(?:adr/\d{4}\b|[\w/.-]+\.md(?:#[\w-]+)?)`)
	// others are files in which mentions are looked for. Migrations are not: they
	// are never changed, and name decisions by their number alone.
	others  = regexp.MustCompile(`\.(go|ts|tsx|mjs|sh|yml|yaml|json|py|proto)$|^Makefile$`)
	skipped = regexp.MustCompile(`(^|/)(node_modules|dist|bin|testdata|\.git|\.cache)$`)
)

// check returns what is wrong with the documents below root, sorted.
func check(t *testing.T, root fs.FS) (found []string) {
	t.Helper()
	texts := map[string]string{}
	require.NoError(t, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped.MatchString(name) {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".md") || others.MatchString(name) {
			text, err := fs.ReadFile(root, name)
			texts[name] = string(text)
			return err
		}
		return nil
	}))
	say := func(file, target, what string) { found = append(found, file+": "+target+": there is no such "+what) }
	exists := func(name string) bool {
		_, err := fs.Stat(root, name)
		return err == nil
	}
	delete(texts, "internal/docs/links_test.go") // its wrong paths are meant
	for file, text := range texts {
		if !strings.HasSuffix(file, ".md") {
			for _, target := range mention.FindAllString(text, -1) {
				name, anchor, _ := strings.Cut(target, "#")
				matches := []string{name}
				if !strings.HasSuffix(name, ".md") {
					matches, _ = fs.Glob(root, name+"-*.md")
				}
				switch {
				case len(matches) == 0 || !exists(matches[0]):
					say(file, target, "file")
				case anchor != "" && !slices.Contains(anchors(texts[name]), anchor):
					say(file, target, "heading")
				}
			}
			continue
		}
		for _, target := range links(text) {
			name, anchor, _ := strings.Cut(target, "#")
			full := file
			if name != "" {
				full = path.Join(path.Dir(file), name)
			}
			switch {
			case !exists(full):
				say(file, target, "file")
			case anchor != "" && !slices.Contains(anchors(texts[full]), anchor):
				say(file, target, "heading")
			}
		}
	}
	for _, index := range indexes {
		named := links(texts[index])
		for file := range texts {
			if path.Dir(file) == path.Dir(index) && file != index && !slices.ContainsFunc(named, func(target string) bool {
				name, _, _ := strings.Cut(target, "#")
				return name == path.Base(file)
			}) {
				found = append(found, index+": does not name "+path.Base(file))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// prose are the lines of a document outside of its blocks of code.
func prose(text string) (lines []string) {
	inside := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inside = !inside
		} else if !inside {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return lines
}

// links are a document's links to files and headings of the repository.
func links(text string) (targets []string) {
	for _, line := range prose(text) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
			if !scheme.MatchString(m[1]) {
				targets = append(targets, m[1])
			}
		}
	}
	return targets
}

// anchors are the names that GitHub gives a document's headings: lower case,
// spaces as hyphens, no other punctuation, and a number for those that come again.
func anchors(text string) (names []string) {
	seen := map[string]int{}
	for _, line := range prose(text) {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsNumber(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, strings.TrimSpace(marks.ReplaceAllString(m[1], "")))
		n := seen[name]
		seen[name]++
		if n > 0 {
			name += "-" + strconv.Itoa(n)
		}
		names = append(names, name)
	}
	return names
}
