package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// operatorPages are read in an emergency: what they say to type has to work.
var operatorPages = []string{"operations.md", "runbooks.md", "security.md", "backup.md", "access.md", "database-clusters.md"}

// citedCommand is a command line in a block of code, indented or fenced, or in a sentence.
var citedCommand = regexp.MustCompile("(?m)^(?: {4,})?(?:sudo )?(carillon [a-z][^\n]*)|`(carillon [a-z][^`]*)`")

// Each command that a page for operators cites exists, with its flags.
func TestPagesOfOperatorsCiteCommandsThatExist(t *testing.T) {
	root := newRoot()
	cited := 0
	for _, page := range operatorPages {
		raw, err := os.ReadFile("../../docs/guide/" + page)
		require.NoError(t, err)
		for _, m := range citedCommand.FindAllStringSubmatch(string(raw), -1) {
			cited++
			line := m[1] + m[2]
			if problem := cites(root, line); problem != "" {
				t.Errorf("%s: %s: %s", page, line, problem)
			}
		}
	}
	require.Greater(t, cited, 150)
	for line, problem := range map[string]string{
		"carillon cluster accept-history": "", "carillon job pause JOB --note 'a --b'  # --why": "", "carillon run list --state lost --since=1h | wc -l": "",
		"carillon clusters": "there is no such command", "carillon cluster accept": "there is no such command", "carillon run list --sate lost": "there is no flag --sate",
	} {
		require.Equal(t, problem, cites(root, line), line)
	}
}

// hinted is a command line in a text of the program.
var hinted = regexp.MustCompile(`carillon [a-z][a-z-]*(?: (?:[A-Za-z0-9=.%_-]+|'[^']*'))*`)

// Each command that a message of the program names exists, with its flags. Names that are put
// together are tested where they are.
func TestMessagesNameCommandsThatExist(t *testing.T) {
	root := newRoot()
	named := 0
	for _, folder := range []string{"..", "../../admin", "../../internal", "../../executor-sdk"} {
		require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				text, is := n.(*ast.BasicLit)
				if !is || text.Kind != token.STRING {
					return true
				}
				for _, line := range hinted.FindAllString(text.Value, -1) {
					if next := strings.Fields(line)[1]; !slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == next }) {
						continue // it is no command line
					}
					if strings.HasPrefix(line, "carillon generate -check") || strings.HasSuffix(line, "script signing key") {
						continue // it reads its flags itself, and the name of a key
					}
					named++
					if problem := cites(root, line); problem != "" {
						t.Errorf("%s: %s: %s", path, line, problem)
					}
				}
				return true
			})
			return nil
		}))
	}
	require.Greater(t, named, 100)
}

var (
	quotedWords = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	flagWord    = regexp.MustCompile(`^--?([a-z][a-z-]*)(=.*)?$`)
)

// cites says what is wrong with a command line; empty: nothing.
func cites(root *cobra.Command, line string) string {
	line, _, _ = strings.Cut(quotedWords.ReplaceAllString(line, "WORD"), " #")
	line, _, _ = strings.Cut(line, " | ")
	words := strings.Fields(strings.TrimSuffix(line, "\\"))[1:]
	cmd := root
	for len(words) > 0 && cmd.HasSubCommands() {
		next, _, err := cmd.Find(words[:1])
		if err != nil || next == cmd {
			break
		}
		cmd, words = next, words[1:]
	}
	if cmd == root || cmd.HasSubCommands() && !cmd.Runnable() && len(words) > 0 && !strings.HasPrefix(words[0], "-") ||
		cmd.HasSubCommands() && cmd.Runnable() && len(words) > 0 && regexp.MustCompile(`^[a-z][a-z-]+$`).MatchString(words[0]) {
		return "there is no such command"
	}
	for _, word := range words {
		m := flagWord.FindStringSubmatch(word)
		if m == nil {
			continue
		}
		known := m[1] == "help"
		for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags(), cmd.InheritedFlags()} {
			known = known || set.Lookup(m[1]) != nil || len(m[1]) == 1 && set.ShorthandLookup(m[1]) != nil
		}
		if !known {
			return "there is no flag --" + m[1]
		}
	}
	return ""
}
