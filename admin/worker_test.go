package admin_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// workerEnv makes the test binary an application with an executor.
const workerEnv = "CARILLON_TEST_WORKER"

func TestMain(m *testing.M) {
	if raw := os.Getenv(workerEnv); raw != "" {
		runWorker(raw)
		return
	}
	if dir := os.Getenv(victimEnv); dir != "" {
		if err := runVictim(dir); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// workerSetup is what a worker is told through workerEnv.
type workerSetup struct {
	Address, Token, Journal, Witness string
}

// runWorker serves the handler "till" until its standard input ends, or SIGTERM. Each call
// leaves a line in the witness file and says "entered"; the first attempt then
// waits for a line on standard input, whatever becomes of its context.
func runWorker(raw string) {
	var setup workerSetup
	if err := json.Unmarshal([]byte(raw), &setup); err != nil {
		panic(err)
	}
	lines := make(chan string, 16)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
		os.Exit(0) // the test is gone
	}()
	ex, err := executor.New(executor.Config{
		Name: "shop", Addresses: []string{setup.Address}, Token: executor.Secret(setup.Token), JournalDir: setup.Journal,
		KillGrace: 200 * time.Millisecond, DrainTimeout: -1,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		panic(err)
	}
	executor.HandleFunc(ex, "till", func(ctx context.Context) error {
		task := executor.TaskFrom(ctx)
		if err := appendLine(setup.Witness, fmt.Sprintf("%d/%d", task.ExecutionID, task.Attempt)); err != nil {
			return err
		}
		fmt.Println("entered")
		if task.Attempt == 1 {
			<-lines
		}
		return nil
	})
	executor.Handle(ex, "count", func(ctx context.Context, _ struct{}) (reply, error) {
		task := executor.TaskFrom(ctx)
		if err := appendLine(setup.Witness, fmt.Sprintf("%d/%d", task.ExecutionID, task.Attempt)); err != nil {
			return reply{}, err
		}
		fmt.Println("entered")
		return reply{<-lines}, nil
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := ex.Run(ctx); err != nil {
		panic(err)
	}
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// worker is an application in a process of its own.
type worker struct {
	t     *testing.T
	setup workerSetup
	cmd   *exec.Cmd
	in    io.WriteCloser
	said  chan string // lines of its standard output
}

func newWorker(t *testing.T, n *node, address string) *worker {
	t.Helper()
	access, err := n.admin.Provision(t.Context(), "shop")
	require.NoError(t, err)
	dir := t.TempDir()
	w := &worker{t: t, setup: workerSetup{address, access.JoinToken, filepath.Join(dir, "journal"), filepath.Join(dir, "witness")}}
	t.Cleanup(w.kill)
	w.start()
	return w
}

// start runs a new process with the same journal.
func (w *worker) start() {
	w.t.Helper()
	raw, err := json.Marshal(w.setup)
	require.NoError(w.t, err)
	self, err := os.Executable()
	require.NoError(w.t, err)
	w.cmd = exec.Command(self)
	w.cmd.Env = append(os.Environ(), workerEnv+"="+string(raw))
	w.cmd.Stderr = testWriter{w.t}
	w.in, err = w.cmd.StdinPipe()
	require.NoError(w.t, err)
	out, err := w.cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, w.cmd.Start())
	w.said = make(chan string, 16)
	go func(said chan string) {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			said <- lines.Text()
		}
		close(said)
	}(w.said)
}

// kill is SIGKILL, and stop is SIGTERM; they return when the process is gone.
func (w *worker) kill() { w.end(syscall.SIGKILL) }
func (w *worker) stop() { w.end(syscall.SIGTERM) }

func (w *worker) end(how os.Signal) {
	if w.cmd == nil {
		return
	}
	_ = w.cmd.Process.Signal(how)
	for range w.said { // its end: Wait closes the pipe
	}
	_ = w.cmd.Wait()
	w.cmd = nil
}

// entered waits until a handler was entered.
func (w *worker) entered() {
	w.t.Helper()
	select {
	case line, ok := <-w.said:
		require.True(w.t, ok, "the worker ended")
		require.Equal(w.t, "entered", line)
	case <-time.After(time.Minute):
		w.t.Fatal("no handler was entered")
	}
}

func (w *worker) say(line string) {
	w.t.Helper()
	_, err := io.WriteString(w.in, line+"\n")
	require.NoError(w.t, err)
}

// witness returns what the handlers wrote, one "run/attempt" a call.
func (w *worker) witness() []string {
	w.t.Helper()
	raw, err := os.ReadFile(w.setup.Witness)
	require.NoError(w.t, err)
	return strings.Fields(string(raw))
}

// proxy stands between executors and an admin, and can keep back what the
// executors say.
type proxy struct {
	t        *testing.T
	listener net.Listener
	upstream string

	mu    sync.Mutex
	held  bool         // guarded by mu
	kept  bytes.Buffer // guarded by mu: what was kept back
	heard chan struct{}
}

// newProxy listens for executors of the admin that will serve at upstream.
func newProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{t: t, listener: listener, upstream: upstream, heard: make(chan struct{}, 1)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() { listener.Close(); all.Wait() })
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) serve(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer to.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(from, to)
		from.Close()
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !p.keep(buffer[:n]) {
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	to.Close()
	<-done
}

// keep takes bytes that must not go on.
func (p *proxy) keep(b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.held {
		return false
	}
	p.kept.Write(b)
	select {
	case p.heard <- struct{}{}:
	default:
	}
	return true
}

// hold keeps back what executors say from now on; pass ends it for new
// connections (what was kept back is lost, so the old ones are of no use).
func (p *proxy) hold() { p.mu.Lock(); defer p.mu.Unlock(); p.held = true }
func (p *proxy) pass() { p.mu.Lock(); defer p.mu.Unlock(); p.held = false }

// waitKept waits until the word was said and kept back.
func (p *proxy) waitKept(word string) {
	p.t.Helper()
	limit := time.After(time.Minute)
	for {
		p.mu.Lock()
		found := bytes.Contains(p.kept.Bytes(), []byte(word))
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-p.heard:
		case <-limit:
			p.t.Fatalf("no executor said %q", word)
		}
	}
}

// freeAddress returns an address that an admin can come back to after a
// restart: below the range that outgoing connections are given.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		if err == nil {
			require.NoError(t, listener.Close())
			return listener.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}
