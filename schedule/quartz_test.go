package schedule

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"
)

// vectorLayouts: the seconds are left out when they are zero.
var vectorLayouts = []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04Z07:00"}

// TestQuartzVectors compares with fire times that Quartz 2.3.2 itself gave.
func TestQuartzVectors(t *testing.T) {
	for _, file := range []string{"testdata/quartz-cron.tsv", "testdata/quartz-more.tsv"} {
		checkVectors(t, file)
	}
}

func checkVectors(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	checked := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		checkVector(t, line)
		checked++
	}
	if checked < 900 {
		t.Errorf("%s: only %d vectors", name, checked)
	}
}

// checkVector reads "expression, zone, start, fires" separated by tabs.
func checkVector(t *testing.T, line string) {
	t.Helper()
	col := strings.Split(line, "\t")
	if len(col) != 4 {
		t.Fatalf("bad vector %q", line)
	}
	c, err := Parse(col[0], DialectQuartz)
	if err != nil {
		t.Errorf("%s", err)
		return
	}
	loc := mustZone(t, col[1])
	at, err := time.Parse(time.RFC3339, col[2])
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range strings.Fields(col[3]) {
		next, ok := c.NextIn(at, loc, DST{})
		if !ok {
			if want != "none" {
				t.Errorf("%s in %s after %s: fire %d: none, want %s", col[0], col[1], col[2], i+1, want)
			}
			return
		}
		if want == "none" || !next.Equal(parseVectorTime(t, want)) {
			t.Errorf("%s in %s after %s: fire %d: %s, want %s", col[0], col[1], col[2], i+1, next.Format(time.RFC3339), want)
			return
		}
		at = next
	}
}

func parseVectorTime(t *testing.T, text string) time.Time {
	t.Helper()
	for _, layout := range vectorLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	t.Fatalf("bad time %q", text)
	return time.Time{}
}

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}
