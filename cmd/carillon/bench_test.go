package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/bench"
)

// The bench measures with real processes: every fire that was due started once,
// and each figure has its floor.
func TestBenchMeasuresARealFleet(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "report", "bench.json")
	cmd := exec.CommandContext(t.Context(), program, "bench", "--database", "sqlite", "--scenario", "steady", "--window", "2s",
		"--dir", dir, "--report", report)
	var said strings.Builder
	cmd.Stderr = &said
	table, err := cmd.Output()
	require.NoError(t, err, said.String())
	require.Contains(t, string(table), "steady")

	raw, err := os.ReadFile(report)
	require.NoError(t, err)
	var r bench.Report
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Positive(t, r.Machine.Cores)
	require.NotEmpty(t, r.Machine.SQLite)
	require.Len(t, r.Results, 1)
	got := r.Results[0]
	require.Empty(t, got.Failed)
	require.Equal(t, &bench.Fires{Expected: 2000, Rows: 2000, Started: 2000}, got.Fires)
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
	cmd := exec.CommandContext(t.Context(), program, "bench", "--database", "sqlite", "--scenario", "dispatch", "--window", "500ms",
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
		require.Equal(t, &bench.Fires{Expected: got.Fires.Started, Rows: got.Fires.Started, Started: got.Fires.Started}, got.Fires)
	}
	require.Positive(t, r.Results[0].FloorRoundTrip.P50)
	require.Nil(t, r.Results[1].RoundTrip)
}

func TestBenchStopsItsProcessesOnCtrlC(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, "bench", "--database", "sqlite", "--scenario", "idle", "--quick", "--dir", dir)
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
