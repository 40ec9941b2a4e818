package main

import (
	"slices"
	"strings"
	"testing"
)

func TestScore(t *testing.T) {
	for sentence, want := range map[string]figures{
		"A node renews its lease every second.":              {1, 7, 0, 0, 0, 0},
		"What waits is found by nobody who looks.":           {1, 8, 2, 1, 0, 0},
		"The row is stale: its node has gone.":               {1, 8, 0, 0, 1, 0},
		"Who may read this list?":                            {1, 5, 0, 0, 0, 0},
		"It reads" + strings.Repeat(" many words", 15) + ".": {1, 32, 0, 0, 0, 1},
	} {
		if got := score(sentence); got != want {
			t.Errorf("%q: %+v, want %+v", sentence, got, want)
		}
	}
}

func TestParagraphs(t *testing.T) {
	program := "package p\n\n//go:generate x\n\n// One is first.\n// It goes on here.\nvar a = `\n// no comment\n`\n\n// Two follows at the end. See `x: y` there.\n//\n//\tcode\n"
	document := "# Head of it\n\nOne is first.\nIt goes on here.\n\n- Two is an item.\n\n```\nno text of it\n```\n| a cell with more than five words | short |\n|---|---|\n"
	for name, c := range map[string]struct {
		text     string
		document bool
		only     map[int]bool
		want     []string
	}{
		"program":      {program, false, nil, []string{"One is first. It goes on here.", "Two follows at the end. See `x: y` there."}},
		"its new line": {program, false, map[int]bool{6: true}, []string{"It goes on here."}},
		"document":     {document, true, nil, []string{"One is first. It goes on here.", "Two is an item.", "a cell with more than five words"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range paragraphs(c.text, c.document, c.only) {
				got = append(got, p.text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	got := paragraph{1, "Two follows at the end. See `x: y` and [the list](list.md) there. No."}.sentences()
	if want := []string{"Two follows at the end.", "See X and X there."}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCompare(t *testing.T) {
	before := table(map[string]figures{"comments": {100, 1300, 8, 11, 29, 3}}, false)
	for name, c := range map[string]struct {
		now  figures
		want []string
	}{
		"the same":              {figures{200, 2600, 16, 22, 58, 6}, nil},
		"less than can be seen": {figures{10_000, 130_001, 804, 1104, 2904, 304}, nil},
		"one is worse":          {figures{100, 1300, 9, 10, 29, 3}, []string{"comments: persons 9.0, at most 8.0"}},
	} {
		got, err := compare(before, table(map[string]figures{"comments": c.now}, false))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	if _, err := compare(before, table(map[string]figures{"documents": {1, 5, 0, 0, 0, 0}}, false)); err == nil {
		t.Error("a kind that the baseline lacks is no error")
	}
}

func TestHunk(t *testing.T) {
	for line, want := range map[string][2]int{"@@ -1,2 +3,4 @@ func": {3, 4}, "@@ -1 +7 @@": {7, 1}, "@@ -5,2 +4,0 @@": {4, 0}} {
		if from, count := hunk(line); from != want[0] || count != want[1] {
			t.Errorf("%q: %d, %d, want %v", line, from, count, want)
		}
	}
}
