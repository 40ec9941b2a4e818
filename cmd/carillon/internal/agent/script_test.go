package agent

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// speaking says in each language what it was given, as JSON in the last line.
var speaking = map[string]string{
	"shell": `read -r input; echo "begins"; echo "doubts" >&2
printf '{"input":%s,"args":["%s","%s"],"shard":"%s/%s","run":"%s"}' "$input" "$1" "$2" "$CARILLON_SHARD_INDEX" "$CARILLON_SHARD_TOTAL" "$CARILLON_RUN_ID"`,
	"python": `import json, os, sys
print("begins"); print("doubts", file=sys.stderr)
e = os.environ
print(json.dumps({"input": json.load(sys.stdin), "args": sys.argv[1:], "shard": e["CARILLON_SHARD_INDEX"] + "/" + e["CARILLON_SHARD_TOTAL"], "run": e["CARILLON_RUN_ID"]}))`,
	"node": `const e = process.env
console.log("begins"); console.error("doubts")
const input = JSON.parse(require("fs").readFileSync(0, "utf8"))
console.log(JSON.stringify({input, args: process.argv.slice(2), shard: e.CARILLON_SHARD_INDEX + "/" + e.CARILLON_SHARD_TOTAL, run: e.CARILLON_RUN_ID}))`,
	"php": `<?php
echo "begins\n"; fwrite(STDERR, "doubts\n");
echo json_encode(["input" => json_decode(file_get_contents("php://stdin")), "args" => array_slice($argv, 1),
  "shard" => getenv("CARILLON_SHARD_INDEX") . "/" . getenv("CARILLON_SHARD_TOTAL"), "run" => getenv("CARILLON_RUN_ID")]), "\n";`,
	"powershell": `Write-Output "begins"; [Console]::Error.WriteLine("doubts")
$in = [Console]::In.ReadToEnd() | ConvertFrom-Json
@{input=$in; args=$args; shard="$env:CARILLON_SHARD_INDEX/$env:CARILLON_SHARD_TOTAL"; run=$env:CARILLON_RUN_ID} | ConvertTo-Json -Compress -Depth 5`,
}

// needed has to be where the tests run, and with the tag proof PHP too. The log says
// which of the others were there.
var needed = []string{"shell", "python", "node"}

func TestEveryLanguageGetsInputArgumentsAndShard(t *testing.T) {
	found, missing, err := findInterpreters(t.Context(), Languages(), DefaultPath)
	require.NoError(t, err)
	for _, name := range missing {
		require.NotContains(t, needed, name, "build/need.sh %s", name)
		t.Logf("no interpreter for %s here", name)
	}
	for _, with := range found {
		t.Run(with.name, func(t *testing.T) {
			b := newBench(t, Options{Limits: DefaultLimits})
			b.opt.Limits.Processes += ownedBy(t, b.who.UID) // other tests may run as this user
			got, err := b.run(t.Context(), with.name, speaking[with.name], `{"a":[1,"x"]}`, "two words; $HOME", "shard {{run.shardIndex}} of {{input.a.1}}")
			require.NoError(t, err, b.log.all())
			require.Zero(t, got.ExitCode)
			require.JSONEq(t, `{"input":{"a":[1,"x"]},"args":["two words; $HOME","shard 1 of x"],"shard":"1/4","run":"4711"}`, string(got.Result))
			lines := b.log.all()
			require.Contains(t, lines, "INFO begins")
			require.Contains(t, lines, "WARN doubts")
		})
	}
}

// Of interpreters that are not here a stand-in shows how they would be called.
func TestHowInterpretersAreCalled(t *testing.T) {
	path := t.TempDir()
	require.NoError(t, os.Chmod(path, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o755))
	for name, want := range map[string]string{
		"python": "-u script.py", "node": "script.js", "php": "script.php", "powershell": "-NoProfile -NonInteractive -File script.ps1",
	} {
		at := map[string]string{"python": "python3", "node": "node", "php": "php", "powershell": "pwsh"}[name]
		program := filepath.Join(path, at)
		require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n[ \"$1\" = --version ] && echo stand-in 1.0 && exit\necho \"$@\"\n"), 0o755))
		found, missing, err := findInterpreters(t.Context(), []string{name, name}, path)
		require.NoError(t, err)
		require.Empty(t, missing)
		require.Len(t, found, 1)
		require.Equal(t, interpreter{found[0].language, program, "stand-in 1.0"}, found[0])
		line := append(append([]string{}, found[0].options...), "script"+found[0].suffix)
		require.Equal(t, want, strings.Join(line, " "))
	}
	_, missing, err := findInterpreters(t.Context(), []string{"shell"}, path)
	require.NoError(t, err)
	require.Equal(t, []string{"shell"}, missing)
	_, _, err = findInterpreters(t.Context(), []string{"cobol"}, path)
	require.ErrorContains(t, err, `there are no scripts in "cobol"; languages are shell, python, node, php, powershell`)
}

func TestHowAScriptEnds(t *testing.T) {
	for name, c := range map[string]struct {
		content, err string
		want         ScriptResult
	}{
		"nothing said":       {"true", "", ScriptResult{}},
		"a text":             {"echo one; echo 'two words '; echo", "", ScriptResult{LastLine: "two words"}},
		"a number":           {"echo 42", "", ScriptResult{Result: json.RawMessage("42")}},
		"without line feed":  {"printf '[1]'", "", ScriptResult{Result: json.RawMessage("[1]")}},
		"Windows' line feed": {`printf '{"a":1}\r\n'`, "", ScriptResult{Result: json.RawMessage(`{"a":1}`)}},
		"not UTF-8":          {`printf 'caf\351'`, "", ScriptResult{LastLine: "caf\uFFFD", NotUTF8: true}},
		"JSON not in UTF-8":  {`printf '{"city":"\260\331"}\n'`, "", ScriptResult{Result: json.RawMessage("{\"city\":\"\uFFFD\"}"), NotUTF8: true}},
		"exit code":          {"echo out; echo 'disk is full' >&2; exit 3", "exit code 3: disk is full", ScriptResult{LastLine: "out"}},
		"signal":             {"kill -SEGV $$", "ended by segmentation fault", ScriptResult{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newBench(t, Options{}).shell(c.content)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.err)
			}
			require.Equal(t, c.want, got)
		})
	}
}

// A script from an editor of Windows fails, or goes on with a wrong first line. Its log
// and its error say why.
func TestScriptsOfWindowsAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		content, hint string
		fails         bool
	}{
		"CRLF":         {"#!/bin/bash\r\nset -e\r\necho hello\r\nif [ 1 = 1 ]; then\r\n  echo yes\r\nfi\r\n", "save it with LF alone", true},
		"BOM":          {"\ufeff#!/bin/bash\necho hello\n", "save it as UTF-8 without BOM", false},
		"both":         {"\ufeffset -e\r\nif true; then\r\nfi\r\n", "and without the byte order mark", true},
		"neither":      {"printf 'a\\r\\n'; exit 1", "", true},
		"CR in a text": {"echo 'a\rb'", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{})
			_, err := b.shell(c.content)
			require.Equal(t, c.fails, err != nil, "%v", err)
			if c.hint == "" {
				for _, line := range b.log.all() {
					require.NotContains(t, line, "save it")
				}
				return
			}
			require.Contains(t, strings.Join(b.log.all(), "\n"), c.hint)
			if c.fails {
				require.ErrorContains(t, err, c.hint)
			}
		})
	}
	require.Empty(t, WindowsHint("python", "\ufeffprint(1)\r\n"), "Python takes both")
	require.NotEmpty(t, WindowsHint("php", "\ufeff<?php\r\n"))
	require.Empty(t, WindowsHint("php", "<?php\r\n"))
	require.Empty(t, WindowsHint("powershell", "\ufeffWrite-Output 1\r\n"))
}

func TestAScriptSeesNothingOfTheAgentsEnvironment(t *testing.T) {
	t.Setenv("CARILLON_EXECUTOR_TOKEN", "cjt_secret")
	t.Setenv("DATABASE_PASSWORD", "handed on")
	b := newBench(t, Options{Env: []string{"DATABASE_PASSWORD", "NOT_SET"}})
	_, err := b.shell("env; ls -A; pwd; umask; ls /proc/self/fd | tr '\\n' ' '")
	require.NoError(t, err)
	names := map[string]string{}
	var rest []string
	for _, line := range b.log.await(t, 1, "INFO ") {
		if name, value, ok := strings.Cut(line, "="); ok {
			names[name] = value
		} else {
			rest = append(rest, line)
		}
	}
	require.Equal(t, "handed on", names["DATABASE_PASSWORD"])
	require.Equal(t, DefaultPath, names["PATH"])
	require.Equal(t, names["HOME"], names["PWD"])
	require.Equal(t, "2026-01-02T03:04:05.000Z", names["CARILLON_FIRE_TIME"])
	require.NotContains(t, names, "CARILLON_EXECUTOR_TOKEN")
	for name := range names {
		if !strings.HasPrefix(name, "CARILLON_") {
			require.Contains(t, []string{
				"PATH", "HOME", "TMPDIR", "LANG", "USER", "LOGNAME", "TRACEPARENT", "DATABASE_PASSWORD",
				"PWD", "SHLVL", "_", "OLDPWD", // of the shell's own making
			}, name)
		}
	}
	require.Equal(t, "script starts", rest[0])
	require.Equal(t, []string{names["HOME"], "0077", "0 1 2 3 ", "script ended"}, rest[1:], "nothing is there, and no file of ours is open (3 is the listed folder)")
}

func TestTheFolderOfARunIsPrivateAndRemoved(t *testing.T) {
	b := newBench(t, Options{})
	got, err := b.shell(`mkdir -p a/b; touch a/b/c "$TMPDIR/x"; chmod 0 a/b a; stat -c '"%a %U"' "$HOME/.."`)
	require.NoError(t, err)
	require.Contains(t, string(got.Result), "700 "+b.who.Name)
	entries, err := os.ReadDir(b.work.dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "only the lock is left")
}

func TestFoldersOfADeadAgentAreRemoved(t *testing.T) {
	parent := t.TempDir()
	dead, err := openWorkRoot(parent)
	require.NoError(t, err)
	living, err := openWorkRoot(parent)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dead.dir, "left"), nil, 0o600))
	require.NoError(t, dead.lock.Close()) // as the end of its process does
	next, err := openWorkRoot(parent)
	require.NoError(t, err)
	require.NoDirExists(t, dead.dir)
	require.DirExists(t, living.dir)
	require.NoError(t, errors.Join(living.close(), next.close()))
	require.NoError(t, os.Chmod(parent, 0o777))
	_, err = openWorkRoot(parent)
	require.ErrorContains(t, err, "only this user may write to")
}

func TestWhatIsNotAsPromisedDoesNotRun(t *testing.T) {
	b := newBench(t, Options{})
	witness := filepath.Join(t.TempDir(), "ran")
	refused := func(want string, change func(*executor.Task)) {
		t.Helper()
		task := taskOf("shell", "touch "+witness)
		change(&task)
		_, err := b.runScript(t.Context(), b.language("shell"), job{task: task, log: slog.New(b.log)})
		require.ErrorContains(t, err, want)
		require.NoFileExists(t, witness)
		require.Empty(t, b.log.all())
	}
	refused("the job names no script", func(task *executor.Task) { task.Script = nil })
	refused("is named", func(task *executor.Task) { task.Script.Content = append(task.Script.Content, '\n') })
	refused("is named", func(task *executor.Task) { task.Script.SHA256[0] ^= 1 })
	refused(`is in "python"`, func(task *executor.Task) { task.Script.Language = "python" })
	refused("the limit is 65536", func(task *executor.Task) { task.Script.Content = make([]byte, 65537) })
	refused("no such value", func(task *executor.Task) { task.Script.Args = []string{"{{secret}}"} })
	b.opt.ScriptKeys = []ed25519.PublicKey{make([]byte, ed25519.PublicKeySize)}
	refused("no key that is trusted here", func(*executor.Task) {})
}

// It starts a child, a child that detaches itself as daemons do, and one that
// does not hear SIGTERM.
const family = `
trap 'echo bye; exit 3' TERM
sleep 1000 & echo pid $!
(setsid sh -c 'echo pid $$; setsid sh -c "echo pid \$\$; exec sleep 1000" & exec sleep 1000' &)
sh -c 'trap "" TERM; echo pid $$; while :; do sleep 1000; done' &
echo pid $$
while :; do sleep 1000 & wait $!; done
`

func TestACancelledScriptEndsWithAllItsChildren(t *testing.T) {
	b := newBench(t, Options{KillGrace: time.Minute})
	ctx, cancel := context.WithCancelCause(t.Context())
	killed := errors.New("killed by a person")
	var err error
	done := make(chan struct{})
	go func() { defer close(done); _, err = b.run(ctx, "shell", family, "{}") }()
	pids := b.log.await(t, 5, "INFO pid ")
	for _, pid := range pids {
		require.False(t, gone(pid))
	}
	cancel(killed)
	<-done
	require.ErrorIs(t, err, killed)
	require.Contains(t, b.log.all(), "INFO bye", "it was asked first")
	requireGone(t, pids...)
}

func TestAScriptThatIgnoresTheRequestIsKilled(t *testing.T) {
	b := newBench(t, Options{KillGrace: 20 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err = b.run(ctx, "shell", "trap '' TERM; echo pid $$; sleep 1000 & echo pid $!; while :; do wait; done", "{}")
	}()
	pids := b.log.await(t, 2, "INFO pid ")
	cancel()
	<-done
	require.ErrorIs(t, err, context.Canceled)
	requireGone(t, pids...)
}

// When the lease is lost another instance may run the same soon: nobody is asked.
func TestAScriptWithoutALeaseIsKilledAtOnce(t *testing.T) {
	b := newBench(t, Options{KillGrace: time.Hour})
	ctx, cancel := context.WithCancelCause(t.Context())
	var err error
	done := make(chan struct{})
	go func() { defer close(done); _, err = b.run(ctx, "shell", family, "{}") }()
	pids := b.log.await(t, 5, "INFO pid ")
	cancel(executor.ErrLeaseLost)
	<-done
	require.ErrorIs(t, err, executor.ErrLeaseLost)
	require.NotContains(t, b.log.all(), "INFO bye")
	requireGone(t, pids...)
}

func TestWhatAScriptLeavesBehindIsEnded(t *testing.T) {
	b := newBench(t, Options{})
	got, err := b.shell(`setsid sleep 1000 & echo pid $!; (trap "" TERM HUP; sleep 1000) & echo pid $!; echo '"done"'`)
	require.NoError(t, err)
	require.JSONEq(t, `"done"`, string(got.Result))
	require.Contains(t, b.log.all(), "WARN processes that the script left behind were ended")
	requireGone(t, b.log.await(t, 2, "INFO pid ")...)
}

// agentToKill is an agent in a process of its own.
func agentToKill(parent string) int {
	who, err := findUser(scriptUser(), os.Getuid())
	if err != nil {
		return 1
	}
	work, err := openWorkRoot(parent)
	if err != nil {
		return 1
	}
	a := &Agent{opt: Options{Path: DefaultPath, MaxOutput: 1 << 20, KillGrace: time.Minute}, log: slog.Default(), who: who, work: work}
	found, _, _ := findInterpreters(context.Background(), []string{"shell"}, DefaultPath)
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	_, _ = a.runScript(context.Background(), &found[0], job{task: taskOf("shell", family), log: log})
	return 0
}

// A script that leaves many dead and living children costs a few searches of
// /proc, and not one for each. The end of the script is told before that work.
func TestManyChildrenAreReapedInFewSearches(t *testing.T) {
	b := newBench(t, Options{})
	with := b.language("python")
	dir, err := b.work.make("script.py", []byte(`
import os, time
for i in range(200):
    if os.fork() == 0: os._exit(0)
for i in range(20):
    if os.fork() == 0: time.sleep(600)
print("forked", flush=True)
`), b.who)
	require.NoError(t, err)
	defer func() { require.NoError(t, dir.remove()) }()
	j := job{task: taskOf("python", ""), input: json.RawMessage("{}"), log: slog.New(b.log)}
	sv, err := b.startSupervisor(j, order{
		Path: with.path, Args: []string{with.path, dir.script}, Env: b.environment(j.task, dir), Dir: dir.work, Grace: time.Minute, User: b.who,
	})
	require.NoError(t, err)
	told := 0
	end, err := sv.wait(func() { told++ })
	require.NoError(t, err)
	require.Equal(t, 1, told)
	require.Equal(t, 20, end.Left)
	require.Zero(t, end.Code)
	require.LessOrEqual(t, end.Looks, 20)
}

// A context that ends while the rest of a run is cleared away is not why its
// script has ended.
func TestATimeoutAfterTheScriptsEnd(t *testing.T) {
	b := newBench(t, Options{MaxOutput: 1}) // lines are logged at the end
	ctx, cancel := context.WithCancelCause(t.Context())
	b.log.onLine = func(line string) {
		if line == "WARN the last word" {
			cancel(executor.ErrTimeout)
		}
	}
	_, err := b.run(ctx, "shell", `echo 'the last word' >&2; exit 3`, "{}")
	require.EqualError(t, err, "exit code 3: the last word")
	require.ErrorIs(t, context.Cause(ctx), executor.ErrTimeout)
}

func TestScriptsDieWithTheirAgent(t *testing.T) {
	b := newBench(t, Options{}) // only for its folder
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AGENT_TO_KILL="+filepath.Dir(b.work.dir))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var pids []string
	for buf, text := make([]byte, 4096), ""; len(pids) < 5; {
		n, err := out.Read(buf)
		require.NoError(t, err, text)
		text += string(buf[:n])
		pids = pids[:0]
		for _, part := range strings.Split(text, `msg="pid `)[1:] {
			if pid, _, whole := strings.Cut(part, `"`); whole {
				pids = append(pids, pid)
			}
		}
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()
	require.Eventually(t, func() bool {
		for _, pid := range pids {
			if !gone(pid) {
				return false
			}
		}
		return true
	}, time.Minute, 10*time.Millisecond, "the pipe's end tells the supervisor")
}

func TestWhoScriptsRunAs(t *testing.T) {
	_, err := findUser("", 0)
	require.ErrorContains(t, err, "name a user of their own with --run-as")
	_, err = findUser("nobody", 1000)
	require.ErrorContains(t, err, "only root may run scripts as another user")
	_, err = findUser("no-such-user", 0)
	require.ErrorContains(t, err, "no-such-user")
	u, err := findUser("nobody", 0)
	require.NoError(t, err)
	require.True(t, u.Switches)
	u, err = findUser("root", 0)
	require.NoError(t, err)
	require.False(t, u.Switches)
	u, err = findUser("", 1000)
	require.NoError(t, err)
	require.Equal(t, uint32(1000), u.UID)

	b := newBench(t, Options{})
	got, err := b.shell(`printf '"%s %s"' "$(id -un)" "$(id -Gn)"`)
	require.NoError(t, err)
	if os.Getuid() == 0 {
		require.JSONEq(t, `"nobody nogroup"`, string(got.Result), "no group of the agent's is left")
	}
}
