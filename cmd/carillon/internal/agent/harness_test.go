package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

func TestMain(m *testing.M) {
	if code, is := Child(os.Args); is {
		os.Exit(code)
	}
	if dir := os.Getenv("AGENT_TO_KILL"); dir != "" {
		os.Exit(agentToKill(dir))
	}
	goleak.VerifyTestMain(m)
}

// runLog collects the lines of a run.
type runLog struct {
	mu    sync.Mutex
	lines []string
	grew  chan struct{} // capacity 1
	// onLine is called with each line; nil = nothing is.
	onLine func(string)
}

func (r *runLog) Enabled(context.Context, slog.Level) bool { return true }
func (r *runLog) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *runLog) WithGroup(string) slog.Handler            { return r }
func (r *runLog) Handle(_ context.Context, record slog.Record) error {
	line := record.Level.String() + " " + record.Message
	r.mu.Lock()
	r.lines = append(r.lines, line)
	r.mu.Unlock()
	if r.onLine != nil {
		r.onLine(line)
	}
	select {
	case r.grew <- struct{}{}:
	default:
	}
	return nil
}

// LeaveOut implements leaver.
func (r *runLog) LeaveOut(lines int64, why string) {
	_ = r.Handle(context.Background(), slog.NewRecord(time.Now(), slog.LevelWarn, fmt.Sprintf("%d lines left out: %s", lines, why), 0))
}

func (r *runLog) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.lines...)
}

// await waits for n lines that begin so, and returns what follows.
func (r *runLog) await(t *testing.T, n int, prefix string) []string {
	t.Helper()
	for over := time.After(time.Minute); ; {
		var found []string
		for _, line := range r.all() {
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				found = append(found, rest)
			}
		}
		if len(found) >= n {
			return found
		}
		select {
		case <-r.grew:
		case <-over:
			t.Fatalf("%d lines %q did not come; there are %q", n, prefix, r.all())
		}
	}
}

// bench is an agent without a connection.
type bench struct {
	t *testing.T
	*Agent
	log *runLog
	dir string // of the scripts
}

// scriptUser is whom tests run scripts as: never root.
func scriptUser() string {
	if os.Getuid() == 0 {
		return "nobody"
	}
	return ""
}

func newBench(t *testing.T, opt Options) *bench {
	t.Helper()
	opt.Limits.Processes = max(opt.Limits.Processes, 0)
	if opt.Path == "" {
		opt.Path = DefaultPath
	}
	if opt.MaxOutput == 0 {
		opt.MaxOutput = DefaultMaxOutput
	}
	if opt.KillGrace == 0 {
		opt.KillGrace = time.Minute
	}
	who, err := findUser(scriptUser(), os.Getuid())
	require.NoError(t, err)
	// t.TempDir is for its owner alone, and the scripts' user has to get through.
	parent, err := os.MkdirTemp("", "carillon-agent-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(parent)) })
	require.NoError(t, os.Chmod(parent, 0o711))
	work, err := openWorkRoot(parent)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, work.close()) })
	return &bench{t: t, dir: parent, log: &runLog{grew: make(chan struct{}, 1)}, Agent: &Agent{opt: opt, log: slog.New(slog.DiscardHandler), who: who, work: work}}
}

// language finds an interpreter that has to be there.
func (b *bench) language(name string) *interpreter {
	b.t.Helper()
	found, missing, err := findInterpreters(b.t.Context(), []string{name}, b.opt.Path)
	require.NoError(b.t, err)
	require.Empty(b.t, missing, "build/need.sh %s", name)
	return &found[0]
}

func taskOf(language, content string, args ...string) executor.Task {
	sum := sha256.Sum256([]byte(content))
	return executor.Task{
		ExecutionID: 4711, Fence: 3, Attempt: 2, MaxAttempts: 5, TenantID: 1, JobID: 8, JobName: "nightly", Cause: "schedule",
		FireTime: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ShardIndex: 1, ShardTotal: 4,
		Script: &executor.Script{ID: 6, Name: "report", Revision: 7, Language: language, SHA256: sum[:], Content: []byte(content), Args: args},
	}
}

func (b *bench) run(ctx context.Context, language, content, input string, args ...string) (ScriptResult, error) {
	b.t.Helper()
	return b.runScript(ctx, b.language(language), job{task: taskOf(language, content, args...), input: json.RawMessage(input), log: slog.New(b.log)})
}

func (b *bench) shell(content string) (ScriptResult, error) {
	b.t.Helper()
	return b.run(b.t.Context(), "shell", content, "{}")
}

// gone reports whether there is no such process any more.
func gone(pid string) bool {
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	return err == nil && syscall.Kill(n, 0) == syscall.ESRCH
}

func requireGone(t *testing.T, pids ...string) {
	t.Helper()
	for _, pid := range pids {
		require.True(t, gone(pid), "process %s lives on", pid)
	}
}

// ownedBy counts processes and threads of a user.
func ownedBy(t *testing.T, uid uint32) (n int64) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		info, err := os.Stat("/proc/" + entry.Name())
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != uid {
			continue
		}
		threads, _ := os.ReadDir(fmt.Sprintf("/proc/%s/task", entry.Name()))
		n += int64(len(threads))
	}
	return n
}

// inFolder counts the processes that were started from a folder, by their command lines.
func inFolder(t *testing.T, dir string) (n int64) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, name := range lines {
		line, _ := os.ReadFile(name) // it may have ended meanwhile
		if bytes.Contains(line, []byte(dir)) {
			n++
		}
	}
	return n
}
