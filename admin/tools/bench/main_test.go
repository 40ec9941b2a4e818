//go:build proof

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if dir := built.dir; dir != "" {
			if err := os.RemoveAll(dir); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
		os.Exit(code)
	}))
}

// built are the bench and the carillon that it measures, made once for all tests
// that need them: processes as they are shipped, without the race detector.
var built struct {
	sync.Once
	dir string
	err error
}

func programs(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "carillon-bench-test-"); built.err == nil {
			const module = "github.com/carillon-sched/carillon/"
			built.err = lab.GoBuild(context.Background(), "", "-o", built.dir+"/", module+"cmd/carillon", module+"admin/tools/bench")
		}
	})
	require.NoError(t, built.err)
	return built.dir
}

func TestFlags(t *testing.T) {
	t.Setenv("CARILLON_MYSQL", "user:secret@tcp(127.0.0.1:3306)/")
	var said strings.Builder
	o, to, err := parse([]string{"--scenario", "steady,burst", "--scenario", "idle", "--jobs", "1,2", "--json"}, &said)
	require.NoError(t, err)
	require.Equal(t, []string{"steady", "burst", "idle"}, o.Scenarios)
	require.Equal(t, []int{1, 2}, o.Jobs)
	require.Equal(t, "user:secret@tcp(127.0.0.1:3306)/", o.MySQL)
	require.Equal(t, formJSON, to.output)
	for _, args := range [][]string{{"-o", "yaml"}, {"--scenarios", "idle"}, {"steady"}, {"--window", "soon"}} {
		_, _, err := parse(args, &said)
		require.Error(t, err, args)
	}
	_, _, err = parse([]string{"--help"}, &said)
	require.ErrorIs(t, err, pflag.ErrHelp)
	require.Contains(t, said.String(), "three times what can be done")
	require.NotContains(t, said.String(), "secret")
	require.ErrorContains(t, command(t.Context(), []string{"tables"}, &said, &said), "no command \"tables\"")
}

func TestFiguresAreAlignedToTheRight(t *testing.T) {
	text := textOf(&Report{Machine: Machine{OS: "linux/amd64", Go: "go1.26", Version: "v1"}, Results: []Result{
		{Scenario: "steady", Variant: "1,000 a second", Lateness: &Spread{P50: 4.24, P99: 11.2, Max: 123.4}, Processes: []Process{{Name: "admin-1", Core: 31, PerFire: 310}}},
		{Scenario: "idle", Variant: "µ", Failed: "no luck"},
	}})
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	require.Equal(t, []string{
		"SCENARIO   VARIANT          DATABASE   FIRES/S   FLOOR   %   DUE   MISSED   DOUBLED   LATE p50/p99/max ms   TOOK p50/p99/max ms   FLOOR ms   STALL disk/cpu ms   CPU % OF A CORE, MiB, µs A FIRE",
		"steady     1,000 a second   -                -       -   -     -        -         -      4.2 / 11.2 / 123                     -          -                   -   admin-1 31 % 0 310",
		"idle       µ                -                -       -   -     -        -         -                     -                     -          -                   -   -",
		"idle, µ: FAILED: no luck",
	}, lines[len(lines)-4:])
}

// The bench measures with real processes: every fire that was due started once,
// and each figure has its floor.
func TestBenchMeasuresARealFleet(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "report", "bench.json")
	cmd := exec.CommandContext(t.Context(), programs(t)+"/bench", "--carillon", programs(t)+"/carillon", "--database", "sqlite", "--scenario", "steady", "--window", "2s",
		"--dir", dir, "--report", report)
	var said strings.Builder
	cmd.Stderr = &said
	table, err := cmd.Output()
	require.NoError(t, err, said.String())
	require.Contains(t, string(table), "steady")

	raw, err := os.ReadFile(report)
	require.NoError(t, err)
	var r Report
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Positive(t, r.Machine.Cores)
	require.NotEmpty(t, r.Machine.SQLite)
	require.Len(t, r.Results, 1)
	got := r.Results[0]
	require.Empty(t, got.Failed)
	require.Equal(t, &Fires{Expected: 2000, Rows: 2000, Started: 2000}, got.Fires)
	require.Equal(t, 2000, got.Lateness.Count)
	require.Positive(t, got.FloorLateness.P50)
	require.Len(t, got.Processes, 3, "an admin and two executors")
	left, err := filepath.Glob(filepath.Join(dir, "carillon-bench-*"))
	require.NoError(t, err)
	require.Empty(t, left, "data of a good run is removed")
}

// The wire is measured without a database, beside yamux alone; every command
// was carried out once.
func TestBenchMeasuresTheWire(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "bench.json")
	cmd := exec.CommandContext(t.Context(), programs(t)+"/bench", "--carillon", programs(t)+"/carillon", "--database", "sqlite", "--scenario", "dispatch", "--window", "500ms",
		"--dir", dir, "--report", report)
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(t, cmd.Run(), said.String())
	r, err := readReports([]string{report})
	require.NoError(t, err)
	require.Len(t, r.Results, 2)
	for _, got := range r.Results {
		require.Positive(t, got.Throughput.Floor)
		require.Positive(t, got.Fires.Started)
		require.Equal(t, &Fires{Expected: got.Fires.Started, Rows: got.Fires.Started, Started: got.Fires.Started}, got.Fires)
	}
	require.Positive(t, r.Results[0].FloorRoundTrip.P50)
	require.Nil(t, r.Results[1].RoundTrip)
}

func TestBenchStopsItsProcessesOnCtrlC(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), programs(t)+"/bench", "--carillon", programs(t)+"/carillon", "--database", "sqlite", "--scenario", "idle", "--quick", "--dir", dir)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return len(processesOf(t, dir)) >= 3 }, time.Minute, 50*time.Millisecond,
		"an admin and two executors work in the folder")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Error(t, cmd.Wait())
	require.Empty(t, processesOf(t, dir))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// processesOf lists the processes below the bench that have the folder on
// their command line.
func processesOf(t *testing.T, dir string) (found []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range lines {
		line, _ := os.ReadFile(path) // it may have ended meanwhile
		if text := string(line); strings.Contains(text, dir) && !strings.Contains(text, "\x00--scenario\x00") {
			found = append(found, text)
		}
	}
	return found
}
