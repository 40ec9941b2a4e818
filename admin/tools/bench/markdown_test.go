package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func keptReport(t *testing.T, r Report) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, raw, 0o600))
	return path
}

func throughputReport(perSecond float64) Report {
	return Report{
		Machine: Machine{CPU: "Some CPU", Cores: 2, Memory: 23 << 30, OS: "linux/amd64", Go: "go1.26", Version: "v1", SQLite: "3.53"},
		Results: []Result{{
			Scenario: "throughput", Variant: "at most once", Database: SQLite, Fires: &Fires{Expected: 100},
			Throughput: &Throughput{PerSecond: perSecond, Floor: 20_000, FloorPercent: perSecond / 200},
		}},
	}
}

func TestTheTableOfADocumentIsMadeFromTheReport(t *testing.T) {
	doc := filepath.Join(t.TempDir(), "bench.md")
	require.NoError(t, os.WriteFile(doc, []byte("before\n"+tableBegin+"\nold\n"+tableEnd+"\nafter\n"), 0o600))
	for _, perSecond := range []float64{1, 6250} { // the second replaces the first
		args := []string{"table", keptReport(t, throughputReport(perSecond)), "--into", doc}
		require.NoError(t, command(t.Context(), args, io.Discard, io.Discard))
	}
	raw, err := os.ReadFile(doc)
	require.NoError(t, err)
	text := string(raw)
	require.True(t, strings.HasPrefix(text, "before\n"+tableBegin) && strings.HasSuffix(text, tableEnd+"\nafter\n"), text)
	require.Contains(t, text, "2 × Some CPU, 23 GiB")
	require.Contains(t, text,
		"| throughput, at most once | SQLite | **6,250/s**; 0 of 100 missed, 0 doubled | 20,000/s | 31 % | 5,000/s ✓ | 10,000/s ✗ |")
	require.NotContains(t, text, "old")
	require.NotContains(t, text, "**1/s**")
}

func TestLaterReportsReplaceResults(t *testing.T) {
	r, err := readReports([]string{keptReport(t, throughputReport(1)), keptReport(t, throughputReport(2))})
	require.NoError(t, err)
	require.Len(t, r.Results, 1)
	require.InDelta(t, 2, r.Results[0].Throughput.PerSecond, 0)

	other := throughputReport(3)
	other.Machine.Cores = 64
	_, err = readReports([]string{keptReport(t, throughputReport(1)), keptReport(t, other)})
	require.Error(t, err, "figures of two machines make no table")
}

func TestTheBenchDocumentHasATable(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "dev", "bench.md"))
	require.NoError(t, err)
	require.Contains(t, string(raw), tableBegin)
	require.Less(t, strings.Index(string(raw), tableBegin), strings.Index(string(raw), tableEnd))
}

func TestTheTableTellsOfALongStall(t *testing.T) {
	for ms, want := range map[float64]string{24: "| 2.0 / 6.0 / 8.0 ms |", 543: "| 2.0 / 6.0 / 8.0 ms; the machine stood still for 543 ms |"} {
		r := throughputReport(1)
		r.Results[0].Throughput = nil
		r.Results[0].Lateness, r.Results[0].FloorLateness = &Spread{P50: 4, P99: 500, Max: 600}, &Spread{P50: 2, P99: 6, Max: 8}
		r.Results[0].Stalls = &Stalls{Disk: ms, Processor: 3}
		require.Contains(t, markdownOf(&r), want)
	}
}

func TestTheTableTellsOfTheRecovery(t *testing.T) {
	r := throughputReport(300)
	r.Results[0].Scenario, r.Results[0].Variant = "overload", "3 × capacity for 90 s, default slots"
	r.Results[0].Throughput.Floor, r.Results[0].Throughput.FloorPercent = 310, 97
	r.Results[0].Overload = &Overload{OnTimeAgain: 4, PausesPerSecond: 40}
	require.Contains(t, markdownOf(&r),
		"| **300/s**; 0 of 100 missed, 0 doubled; fresh runs on time 4 s after it; 40 pauses/s meanwhile | 310/s | 97 % | 90 %, on time after 60 s ✓ | 95 %, 10 s ✓ |")
}

func TestTheTableTellsThePriceOfAnEdge(t *testing.T) {
	r := throughputReport(1)
	r.Results[0] = Result{
		Scenario: "edges", Variant: "1000 each second, default slots", Jobs: 1000, Lateness: &Spread{P50: 322, P99: 640, Max: 900},
		Processes: []Process{{Name: "admin-1", Core: 40, RSS: 90 << 20, PerFire: 401}, {Name: "executor-1", PerFire: 99.6}},
	}
	require.Contains(t, markdownOf(&r),
		"| **322 / 640 / 900 ms**; admin 40 % of a core, 90 MiB; admin-1 401 µs of CPU a fire; executor-1 100 µs of CPU a fire |  |  | p99 150 ms ✗ | p99 75 ms ✗ |")
}
