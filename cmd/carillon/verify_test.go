package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/verify"
)

// history writes a minute of a job that fires every second, with what starts
// leaves out.
func history(t *testing.T, minRuns int, starts func(second int) int) string {
	t.Helper()
	begin := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	folder := filepath.Join(t.TempDir(), "history")
	w, err := verify.CreateFile(folder, "test")
	require.NoError(t, err)
	at := func(second int, d time.Duration) verify.Time {
		return verify.At(begin.Add(time.Duration(second)*time.Second + d))
	}
	write := func(r verify.Record) { require.NoError(t, w.Append(r)) }
	write(&verify.Plan{From: at(0, 0), To: at(59, 0), MinRuns: minRuns})
	write(&verify.Call{Op: verify.OpCreate, Job: "7", Tenant: "1", Invoke: at(-2, 0), Ack: at(-1, 0),
		Spec: &verify.Spec{Kind: "cron", Expr: "* * * * * *", Blocking: "parallel"}})
	for second := range 60 {
		for n := range starts(second) {
			write(&verify.Run{Job: "7", Key: at(second, 0).Std().String(), Fence: 1, Boot: "b", Tenant: "1", Attempt: 1, FireAt: at(second, 0),
				Start: at(second, time.Duration(n+1)*time.Millisecond), End: at(second, 9*time.Millisecond)})
		}
	}
	require.NoError(t, w.Close())
	return folder
}

func TestVerify(t *testing.T) {
	term := newTerminal(t)
	once := func(int) int { return 1 }
	r := term.run("verify", history(t, 60, once))
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "clean: 60 expected, 60 accounted, 0 missed, 0 double, worst late 1.0 ms\n")

	r = term.run("verify", history(t, 61, once))
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stdout, "Not enough evidence: runs: 60, at least 61 planned\n")

	page := filepath.Join(t.TempDir(), "page.html")
	r = term.run("verify", history(t, 1, func(second int) int { return second % 3 }), "--html", page, "-o", "json")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, `"missed": 20`)
	require.Contains(t, r.stdout, `"double": 20`)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "<svg")

	r = term.run("verify", filepath.Join(t.TempDir(), "nowhere"))
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "no such file")
	require.Equal(t, 2, term.run("verify").code)
	require.Equal(t, 2, term.run("verify", history(t, 1, once), "-o", "yaml").code)
}

func TestVerifyDatabase(t *testing.T) {
	term := newTerminal(t)
	data := t.TempDir()
	r := term.run("verify", "--since", "1h", "--data", filepath.Join(data, "nowhere"))
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "no database")
	require.Equal(t, 0, term.run("migrate", "--data", data).code)
	r = term.run("verify", "--since", "1h", "--data", data)
	require.Equal(t, 0, r.code, "%s", r.stdout)
	// The server's own file is theirs too, with settings that they do not use.
	file := filepath.Join(t.TempDir(), "carillon.yaml")
	require.NoError(t, os.WriteFile(file, []byte("data: "+data+"\nhttp: 127.0.0.1:9000\nprofiles: 127.0.0.1:6060\n"), 0o600))
	r = term.run("migrate", "--dry-run", "--config", file)
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "up to date")
	require.Contains(t, term.run("verify", "--since", "1h", "--config", file).stdout, "0 expected")
	require.Contains(t, term.run("migrate", "--data", data, "--http", "127.0.0.1:9000").stderr, "unknown flag: --http")
	for _, args := range [][]string{{"--since", "-1h"}, {"--since", "2161h"}, {"somewhere", "--since", "1h"}} {
		require.Equal(t, 2, term.run(append([]string{"verify", "--data", data}, args...)...).code, args)
	}
}
