package run

import (
	"strings"
	"testing"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

func TestListsShowTheErrorFirst(t *testing.T) {
	for _, c := range []struct {
		run  apiclient.Run
		want string
	}{
		{apiclient.Run{Reason: "no_executor"}, "no_executor"},
		{apiclient.Run{Reason: "handler_failed", Error: "no route to db\nat main.go:7"}, "no route to db"},
		{apiclient.Run{Reason: "handler_failed", Error: strings.Repeat("错", 100)}, strings.Repeat("错", maxWhy-1) + "…"},
	} {
		if got := whyCell(c.run); got != c.want {
			t.Errorf("whyCell = %q, want %q", got, c.want)
		}
	}
}

// The name of what failed comes last, for it can be long. An error without a text has its
// fingerprint.
func TestFailuresNameWhatFailed(t *testing.T) {
	cells := func(by string, g apiclient.FailureGroup) (out []string) {
		for _, c := range failureView(by).Columns {
			out = append(out, c.Title+"="+c.Value(g))
		}
		return out
	}
	for by, want := range map[string]string{
		"job":   "FAILURES=2 ENDED=9 LAST=2026-11-29T19:36:00.000Z LAST RUN=7 JOB=pay",
		"label": "FAILURES=2 JOBS=1 LAST=2026-11-29T19:36:00.000Z LAST RUN=7 LABEL=pay",
		"error": "FAILURES=2 JOBS=1 LAST=2026-11-29T19:36:00.000Z LAST RUN=7 FINGERPRINT=00f0 ERROR=00f0",
	} {
		g := apiclient.FailureGroup{Name: "pay", Failures: 2, Ended: 9, Jobs: 1, LastRunID: "7"}
		g.LastAt = time.Date(2026, 11, 29, 19, 36, 0, 0, time.UTC)
		if by == "error" {
			g.Name, g.Fingerprint = "", "00f0"
		}
		if got := strings.Join(cells(by, g), " "); got != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
}
