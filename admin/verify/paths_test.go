package verify_test

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/verify"
)

// write puts a history into files of a folder, the runs in two lines each.
func write(t testing.TB, h *verify.History) (dir string) {
	t.Helper()
	dir = t.TempDir()
	one, err := verify.CreateFile(dir, "one")
	require.NoError(t, err)
	two, err := verify.CreateFile(filepath.Join(dir, "more"), "two")
	require.NoError(t, err)
	put := func(w *verify.Writer, r verify.Record) { require.NoError(t, w.Append(r)) }
	for i := range h.Rows {
		put(two, &h.Rows[i])
	}
	for i := range h.Runs {
		begun := h.Runs[i]
		begun.End, begun.Cancelled, begun.Failed = 0, false, false
		put(one, &begun)
		if h.Runs[i].End != 0 {
			put(one, &h.Runs[i])
		}
	}
	for i := range h.Calls {
		put(one, &h.Calls[i])
	}
	for i := range h.Faults {
		put(two, &h.Faults[i])
	}
	for i := range h.Nodes {
		put(two, &h.Nodes[i])
	}
	put(two, h.Plan)
	require.NoError(t, errors.Join(one.Close(), two.Close()))
	return dir
}

// sameFromFiles judges a history in files, and expects the report that it got
// in memory; which examples of many are shown may differ.
func sameFromFiles(t testing.TB, h *verify.History, want *verify.Report) {
	t.Helper()
	room := t.TempDir()
	got, err := verify.CheckPaths(room, write(t, h))
	var line *verify.LineError
	if errors.As(err, &line) {
		return // such a mutant cannot be written down
	}
	require.NoError(t, err)
	left, err := os.ReadDir(room)
	require.NoError(t, err)
	require.Empty(t, left, "it cleans up")
	comparable := func(r verify.Report) verify.Report {
		r.Examples = nil
		slices.SortFunc(r.Short, func(a, b verify.Evidence) int { return cmp.Compare(a.What, b.What) })
		return r
	}
	require.Equal(t, comparable(*want), comparable(*got))
}

func TestFilesAreJudgedInParts(t *testing.T) {
	for seed := range uint64(3) {
		h := newWorld(seed)
		sameFromFiles(t, h, check(t, h))
		h.Rows = nil
		sameFromFiles(t, h, check(t, h))
	}
	_, err := verify.CheckPaths(t.TempDir(), write(t, &verify.History{Plan: &verify.Plan{From: at(0), To: at(time.Second)}}))
	require.NoError(t, err)
	_, err = verify.CheckPaths(t.TempDir(), t.TempDir())
	require.Error(t, err)
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = verify.CheckPaths(t.TempDir(), empty)
	require.ErrorIs(t, err, verify.ErrNoPlan)
}

// A key that two jobs have is found though they are in different parts.
func TestAKeyOfTwoJobsIsFoundInFiles(t *testing.T) {
	for name, damage := range map[string]func(h *verify.History, a, b int){
		"a row under another job":       func(h *verify.History, a, b int) { h.Rows[a].Job = h.Rows[b].Job },
		"a run with the key of another": func(h *verify.History, a, b int) { h.Runs[0].Key = h.Rows[b].Key },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				h := clone(newWorld(seed))
				a := 0
				b := slices.IndexFunc(h.Rows, func(r verify.Row) bool {
					return r.Job != h.Rows[a].Job && r.Job != h.Runs[0].Job && r.State == "succeeded"
				})
				damage(h, a, b)
				r := check(t, h)
				require.Equal(t, 1, r.ExitCode())
				sameFromFiles(t, h, r)
			}
		})
	}
}

// Of two rows with one key the first counts, whose turn depends on the parts.
func TestARowKeyOfTwoJobsIsFoundInFiles(t *testing.T) {
	h := clone(newWorld(1))
	b := slices.IndexFunc(h.Rows, func(r verify.Row) bool { return r.Job != h.Rows[0].Job })
	h.Rows[0].Key = h.Rows[b].Key
	r, err := verify.CheckPaths(t.TempDir(), write(t, h))
	require.NoError(t, err)
	require.Equal(t, check(t, h).Counts[verify.Double], r.Counts[verify.Double])
	require.Positive(t, r.Counts[verify.Double])
}

// pathRows is the size of the history in files; ten million:
//
//	go test ./admin/verify -run - -bench CheckPaths -benchtime 1x -rows 10000000
var pathRows = flag.Int("rows", 20_000, "executions of the history in files")

// BenchmarkCheckPaths judges executions of 500 jobs that fire once a second.
func BenchmarkCheckPaths(b *testing.B) {
	dir := b.TempDir()
	generate(b, filepath.Join(dir, "history.jsonl"), 500, *pathRows/500)
	b.ResetTimer()
	for b.Loop() {
		r, err := verify.CheckPaths(b.TempDir(), dir)
		require.NoError(b, err)
		require.Equal(b, 0, r.ExitCode(), "%+v", r)
		require.Equal(b, *pathRows/500*500, r.Ran)
	}
	b.ReportMetric(float64(b.N**pathRows)/b.Elapsed().Seconds(), "executions/s")
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(b, err)
	peak, err := strconv.Atoi(string(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)[1]))
	require.NoError(b, err)
	b.ReportMetric(float64(peak)/1024, "MiB-peak")
}

// generate writes a healthy history: three lines for each execution.
func generate(b *testing.B, path string, jobs, seconds int) {
	b.Helper()
	f, err := os.Create(path)
	require.NoError(b, err)
	out := bufio.NewWriterSize(f, 1<<20)
	second := int64(time.Second / time.Microsecond)
	zero := int64(at(0))
	fmt.Fprintf(out, `{"type":"plan","from":%d,"to":%d,"minRuns":1}`+"\n", zero, zero+int64(seconds-1)*second)
	for job := range jobs {
		fmt.Fprintf(out, `{"type":"call","op":"create","tenant":"1","job":"job %d","revision":1,"invoke":%d,"ack":%d,`+
			`"spec":{"kind":"fixed_rate","every":%d,"anchor":%d,"endAt":%d,"blocking":"parallel"}}`+"\n",
			job, zero-5*second, zero-4*second, second, zero, zero+int64(seconds-1)*second+1000)
	}
	key := 1 << 50
	for s := range seconds {
		fire := zero + int64(s)*second
		for job := range jobs {
			key++
			run := fmt.Sprintf(`{"type":"run","job":"job %d","key":"%d","fence":1,"boot":"e1-1","tenant":"1","shard":0,"start":%d`, job, key, fire+4100)
			rest := fmt.Sprintf(`,"attempt":1,"fireAt":%d,"node":"e1"}`, fire)
			fmt.Fprintf(out, "%s%s\n%s,\"end\":%d%s\n", run, rest, run, fire+104_100, rest)
			fmt.Fprintf(out, `{"type":"row","key":"%d","tenant":"1","job":"job %d","revision":1,"cause":"schedule","fireAt":%d,"state":"succeeded","fence":1,"attempt":1,`+
				`"plannedAt":%d,"offeredAt":%d,"grantedAt":%d,"startedAt":%d,"finishedAt":%d,"node":"n1"}`+"\n",
				key, job, fire, fire-2*second, fire+1000, fire+2000, fire+4000, fire+106_000)
		}
	}
	require.NoError(b, errors.Join(out.Flush(), f.Close()))
}
