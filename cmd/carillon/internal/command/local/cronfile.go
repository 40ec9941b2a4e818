package local

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/internal/spelling"
	"github.com/carillon-sched/carillon/schedule"
)

// vector is one line of a file of expected fire times.
type vector struct {
	expr, zone string
	start      time.Time
	want       []time.Time
	ends       bool // nothing fires after want
}

// checkVectors compares each line of in with the engine and writes the
// mismatches. A line that cannot be read counts as a mismatch.
func checkVectors(in io.Reader, dialect schedule.Dialect, out io.Writer) (checked, mismatches int, err error) {
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		checked++
		v, problem := readVector(line)
		if problem == "" {
			problem = v.compare(dialect)
		}
		if problem == "" {
			continue
		}
		mismatches++
		if _, err := fmt.Fprintf(out, "line %d: %s: %s\n", n, v.expr, problem); err != nil {
			return checked, mismatches, err
		}
	}
	if err := lines.Err(); err != nil {
		return checked, mismatches, fmt.Errorf("read vectors: %w", err)
	}
	return checked, mismatches, nil
}

func readVector(line string) (v vector, problem string) {
	fields := strings.Split(line, "\t")
	v.expr = fields[0]
	if len(fields) != 4 {
		return v, fmt.Sprintf("the line has %s separated by tabs, want 4", spelling.Count(len(fields), "field", ""))
	}
	v.zone = fields[1]
	var err error
	if v.start, err = readInstant(fields[2]); err != nil {
		return v, "start: " + err.Error()
	}
	for _, word := range strings.Fields(fields[3]) {
		if v.ends {
			return v, "a fire time after none"
		}
		if word == "none" {
			v.ends = true
			continue
		}
		at, err := readInstant(word)
		if err != nil {
			return v, "fire time: " + err.Error()
		}
		v.want = append(v.want, at)
	}
	if len(v.want) == 0 && !v.ends {
		return v, "the line has no fire times"
	}
	return v, ""
}

// readInstant reads RFC 3339, also without seconds.
func readInstant(text string) (time.Time, error) {
	if t, err := time.Parse("2006-01-02T15:04Z07:00", text); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, text)
}

// compare returns what differs, or "".
func (v vector) compare(dialect schedule.Dialect) string {
	s, err := schedule.Compile(schedule.Spec{Kind: schedule.KindCron, Expr: v.expr, Dialect: dialect, Zone: v.zone})
	if err != nil {
		return err.Error()
	}
	n := len(v.want)
	if v.ends {
		n++
	}
	got := s.NextN(v.start, n)
	for i, want := range v.want {
		if i >= len(got) {
			return fmt.Sprintf("fire %d: want %s, got none", i+1, want.Format(time.RFC3339))
		}
		if !got[i].Equal(want) || got[i].Format(time.RFC3339) != want.Format(time.RFC3339) {
			return fmt.Sprintf("fire %d: want %s, got %s", i+1, want.Format(time.RFC3339), got[i].Format(time.RFC3339))
		}
	}
	if v.ends && len(got) > len(v.want) {
		return fmt.Sprintf("fire %d: want none, got %s", len(got), got[len(got)-1].Format(time.RFC3339))
	}
	return ""
}
