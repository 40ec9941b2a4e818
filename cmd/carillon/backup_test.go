//go:build proof

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// house is one server as a process, with an executor whose jobs fire
// every second.
type house struct {
	*terminal
	fleet    *lab.Fleet
	node     *lab.Admin
	data     string
	database string
	executor string // its id

	mu   sync.Mutex
	seen map[string]int // guarded by mu: starts by job and fire time
	last time.Time      // guarded by mu: the latest fire time
	held chan string    // keys of runs of "hold"
	let  chan struct{}  // they end when it is closed
}

// newHouse starts it; database is empty for SQLite.
func newHouse(t *testing.T, database string) *house {
	t.Helper()
	h := &house{terminal: newTerminal(t), seen: map[string]int{}, held: make(chan string, 8), let: make(chan struct{})}
	dir := t.TempDir()
	h.data = filepath.Join(dir, "admin-1")
	h.database = filepath.Join(h.data, "carillon.db")
	if database == "" {
		database = "sqlite:" + h.database
	}
	var err error
	h.fleet, err = lab.NewFleet(lab.Options{Dir: dir, Binary: program, DSN: func(int) string { return database }})
	require.NoError(t, err)
	t.Cleanup(h.fleet.Close)
	h.node, err = h.fleet.AddAdmin(t.Context())
	require.NoError(t, err)
	// As an operator's shell has it.
	h.env = append(h.env, "CARILLON_SEALING_KEY_FILE="+filepath.Join(dir, "sealing.key"), "CARILLON_DATA="+h.data, "CARILLON_DATABASE="+database)
	r := h.pipe(h.fleet.Password+"\n", "login", "--url", h.node.API.Base, "--username", "admin", "--password-stdin")
	require.Equal(t, 0, r.code, r.stderr)
	id, token, err := h.node.API.MakeExecutor(t.Context(), "shop")
	require.NoError(t, err)
	h.executor = id
	ex, err := executor.New(executor.Config{
		Name: "shop", Addresses: []string{h.node.Wire}, Token: executor.Secret(token), JournalDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	executor.HandleFunc(ex, "tick", func(ctx context.Context) error {
		task := executor.TaskFrom(ctx)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.seen[fmt.Sprint(task.JobID, " ", task.FireTime.UnixMilli())]++
		if task.FireTime.After(h.last) {
			h.last = task.FireTime
		}
		return nil
	})
	executor.HandleFunc(ex, "hold", func(ctx context.Context) error {
		h.held <- executor.TaskFrom(ctx).Key()
		select {
		case <-h.let:
		case <-ctx.Done():
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	for i := range 30 {
		_, err := h.node.API.MakeJob(t.Context(), apiclient.JobWrite{
			Name: fmt.Sprint("tick-", i), Executor: apiclient.ExecutorChoice{ID: id}, Handler: "tick", Blocking: "parallel",
			Schedule: apiclient.ScheduleWrite{Kind: "cron", Expr: "* * * * * *", Dialect: "seconds", Zone: "UTC"},
			Misfire:  &apiclient.MisfireWrite{Policy: "skip", Threshold: "1s"},
		})
		require.NoError(t, err)
	}
	return h
}

// fires waits until fire times after an instant have started.
func (h *house) fires(after time.Time) {
	h.t.Helper()
	require.Eventually(h.t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.last.After(after)
	}, time.Minute, 20*time.Millisecond, "nothing fires")
}

// holds says that firing is held, and that nothing of three seconds starts.
func (h *house) holds() {
	h.t.Helper()
	require.NoError(h.t, h.node.API.Online(h.t.Context(), h.executor, 1, time.Minute))
	answer, err := http.Get(h.node.API.Base + "/readyz")
	require.NoError(h.t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(h.t, err)
	require.NoError(h.t, answer.Body.Close())
	require.Contains(h.t, string(body), `"held":"db_rollback"`)
	since := time.Now()
	require.Eventually(h.t, func() bool { return time.Since(since) > 3*time.Second }, time.Minute, 100*time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	require.False(h.t, h.last.After(since), "it fires all the same")
}

// twice lists the fire times that were started more than once.
func (h *house) twice() (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, n := range h.seen {
		if n > 1 {
			out = append(out, key)
		}
	}
	return out
}

// start starts the server in the state that a restore has left.
func (h *house) start() {
	h.t.Helper()
	require.NoError(h.t, h.node.Start(h.t.Context()))
}

func (h *house) must(args ...string) result {
	h.t.Helper()
	r := h.run(args...)
	require.Equal(h.t, 0, r.code, "%v: %s", args, r.stderr)
	return r
}

// TestBackupIsTakenUnderLoadAndPutBack with real processes: what ran after the
// backup is not known to it, and nothing of it runs again without an operator.
func TestBackupIsTakenUnderLoadAndPutBack(t *testing.T) {
	h := newHouse(t, "")
	h.fires(time.Now())
	hold, err := h.node.API.MakeJob(t.Context(), apiclient.JobWrite{
		Name: "hold", Executor: apiclient.ExecutorChoice{ID: h.executor}, Handler: "hold", Schedule: apiclient.ScheduleWrite{Kind: "none"},
	})
	require.NoError(t, err)

	file := filepath.Join(t.TempDir(), "carillon backup %.db")
	r := h.must("backup", file)
	require.Equal(t, file+"\n", r.stdout)
	require.Contains(t, r.stderr, "The sealing key is not in it.")
	for _, name := range []string{file, file + ".sha256"} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
	}
	r = h.run("backup", file)
	require.NotZero(t, r.code)
	require.Contains(t, r.stderr, "--force")
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	r = h.run("backup", h.database, "--force")
	require.NotZero(t, r.code)
	require.Contains(t, r.stderr, "is the database itself")

	var made admin.Backup
	other := filepath.Join(filepath.Dir(file), "json.db")
	require.NoError(t, json.Unmarshal([]byte(h.must("backup", other, "--with-sealing-key", "-o", "json").stdout), &made))
	require.Equal(t, "dev", made.Version)
	require.Equal(t, other+".sealing.key", made.SealingKey)
	require.Len(t, made.SHA256, 64)
	h.must("backup", other, "--with-sealing-key", "--force")

	// What the backup does not know: fires, a run that ends while nobody listens.
	h.fires(time.Now().Add(2 * time.Second))
	unknown, err := h.node.API.RunNow(t.Context(), hold)
	require.NoError(t, err)
	<-h.held

	r = h.run("restore", file)
	require.NotZero(t, r.code)
	require.Contains(t, r.stderr, "stop the server first")
	h.node.Process().Kill()
	require.NoError(t, os.WriteFile(file, append(before, 0), 0o600))
	r = h.run("restore", file)
	require.NotZero(t, r.code)
	require.Contains(t, r.stderr, "was changed or is not whole")
	require.NoError(t, os.WriteFile(file, before, 0o600))
	r = h.must("restore", file)
	require.Contains(t, r.stderr, "carillon cluster accept-history")
	require.NotContains(t, r.stderr, "Note:")
	aside, err := filepath.Glob(h.database + ".before-*")
	require.NoError(t, err)
	require.Len(t, aside, 1)

	h.start()
	close(h.let) // its result is of a run that nobody knows
	h.holds()
	require.Contains(t, h.must("cluster").stderr, "a backup of ")
	h.must("cluster", "accept-history", "--yes")
	h.fires(time.Now().Add(2 * time.Second))
	require.Empty(t, h.twice())
	require.Equal(t, 3, h.run("run", "get", unknown).code, "it was never put in again")
	state, err := h.node.API.RunJob(t.Context(), hold, apiclient.RunJobParams{Wait: "20s"}, apiclient.RunRequest{})
	require.NoError(t, err)
	require.Equal(t, "succeeded", state.Value.State, "the executor works")

	// The way back: the database that was put aside knows more than the backup.
	h.node.Process().Stop()
	h.must("restore", aside[0])
	h.start()
	h.holds()
	h.node.Process().Stop()
	h.must("restore", aside[0], "--accept-history")
	h.start()
	h.fires(time.Now())
	require.Empty(t, h.twice())
	run, err := h.node.API.GetRun(t.Context(), unknown)
	require.NoError(t, err)
	require.Equal(t, unknown, run.Value.ID)
}

// TestBackupIsPutBackOnAnotherMachine: nothing there remembers the cluster, and
// it holds all the same.
func TestBackupIsPutBackOnAnotherMachine(t *testing.T) {
	h := newHouse(t, "")
	h.fires(time.Now())
	file := filepath.Join(t.TempDir(), "backup.db")
	h.must("backup", file, "--with-sealing-key")
	h.node.Process().Kill()

	there := newTerminal(t)
	data := filepath.Join(t.TempDir(), "data")
	key := filepath.Join(data, "sealing.key")
	require.NoError(t, os.Rename(file+".sealing.key", file+".elsewhere"))
	r := there.run("restore", file, "--data", data)
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "put the right one at "+key)
	require.NoFileExists(t, key)
	require.NoError(t, os.Rename(file+".elsewhere", file+".sealing.key"))
	var restored admin.Restoration
	r = there.run("restore", file, "--data", data, "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &restored), r.stderr)
	require.Equal(t, key, restored.SealingKey)
	require.Empty(t, restored.Notes)
	require.True(t, restored.Held)

	// The same address, for the executor.
	server, err := lab.Start(lab.Command{Name: "there", Dir: t.TempDir(), Program: program, Env: there.env, Args: []string{
		"server", "--data", data, "--http", strings.TrimPrefix(h.node.API.Base, "http://"), "--executors", h.node.Wire,
	}})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	require.NoError(t, h.node.API.Ready(t.Context()))
	h.holds()
	h.must("cluster", "accept-history", "--yes")
	h.fires(time.Now())
	require.Empty(t, h.twice())
}

func TestBackupRefusesWhatItCannotCopy(t *testing.T) {
	term := newTerminal(t)
	folder := t.TempDir()
	for want, args := range map[string][]string{
		"no such file or directory":  {"backup", filepath.Join(folder, "b.db"), "--data", filepath.Join(folder, "nowhere")},
		"no such file":               {"restore", filepath.Join(folder, "b.db"), "--data", folder},
		"carillon restore --loaded":  {"backup", filepath.Join(folder, "b.db"), "--database", "mysql://a:b@127.0.0.1/c", "--data", folder},
		"give a FILE, or --loaded":   {"restore", "--data", folder},
		"is no database of Carillon": {"backup", filepath.Join(folder, "b.db"), "--database", "sqlite:" + strangeDatabase(t), "--data", folder},
	} {
		r := term.run(args...)
		require.NotZero(t, r.code, args)
		require.Contains(t, r.stderr, want)
		left, err := os.ReadDir(folder)
		require.NoError(t, err)
		require.Empty(t, left, args)
	}
}

// strangeDatabase is an empty file, which SQLite takes for a database.
func strangeDatabase(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "strange.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	return path
}
