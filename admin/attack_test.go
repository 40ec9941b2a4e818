package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
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

var attackFor = flag.Duration("attack", 500*time.Millisecond, "how long each attack of TestAttacks lasts (the figures of docs/acceptance.md: 60s)")

// victimEnv makes this test binary an admin node of its own, so that its
// memory can be told apart from the attackers'.
const victimEnv = "CARILLON_TEST_VICTIM"

// victimSays is what the victim prints once it serves.
type victimSays struct{ URL, Wire, Token, Attacker string }

func runVictim(dir string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	a, err := admin.New(ctx, admin.Config{
		DataDir: dir, HTTPAddress: "127.0.0.1:0", ExecutorAddress: "127.0.0.1:0", AdminPassword: password,
		Webhook: admin.WebhookConfig{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	shop, err := a.Provision(ctx, "shop")
	if err != nil {
		return err
	}
	attacker, err := a.Provision(ctx, "attacker")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(victimSays{a.URL(), a.ExecutorAddress(), shop.JoinToken, attacker.JoinToken}); err != nil {
		return err
	}
	go func() { // until the test closes our standard input
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		stop()
	}()
	return a.Run(ctx)
}

// victim is an admin node in a process of its own, with an honest executor.
type victim struct {
	t *testing.T
	victimSays
	pid   int
	api   *lab.API
	job   string
	shop  *executor.Executor
	lines *logLines
}

// logLines counts the sessions that the honest executor has opened.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

// connected is what the honest executor says of each session that it opens.
const connected = "connected to admin node"

// show tells what the honest executor has said.
func (l *logLines) show(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Log(strings.Join(l.lines, ""))
}

func (l *logLines) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func startVictim(t *testing.T) *victim {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+t.TempDir(), "GOGC=100") // as it is shipped, whatever the tests are run with
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); require.NoError(t, cmd.Wait()) })
	v := &victim{t: t, pid: cmd.Process.Pid, lines: &logLines{}}
	require.NoError(t, json.NewDecoder(out).Decode(&v.victimSays))
	v.api = lab.NewAPI(v.URL)
	require.NoError(t, v.api.Ready(t.Context()))
	require.NoError(t, v.api.SignIn(t.Context(), "admin", password, ""))
	v.startShop()
	return v
}

// startShop runs the executor that must not notice anything, and its job.
func (v *victim) startShop() {
	config := executor.Config{
		Name: "shop", Addresses: []string{v.Wire}, Token: executor.Secret(v.Token), JournalDir: v.t.TempDir(),
		Logger: slog.New(slog.NewTextHandler(v.lines, nil)),
	}
	var err error
	v.shop, err = executor.New(config)
	require.NoError(v.t, err)
	executor.HandleFunc(v.shop, "sell", func(context.Context) error { return nil })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.shop.Run(ctx) }()
	v.t.Cleanup(func() { cancel(); require.NoError(v.t, <-done) })
	select {
	case <-v.shop.Ready():
	case <-time.After(30 * time.Second):
		v.t.Fatal("the executor did not register")
	}
	v.job, err = v.api.MakeJob(v.t.Context(), apiclient.JobWrite{
		Name: "sell", Executor: apiclient.ExecutorChoice{Name: "shop"}, Handler: "sell",
		Schedule: apiclient.ScheduleWrite{Kind: "none", Zone: "UTC"},
	})
	require.NoError(v.t, err)
}

// sell runs the job once and waits for its success.
func (v *victim) sell(ctx context.Context) error {
	id, err := v.api.RunNow(ctx, v.job)
	if err != nil {
		return err
	}
	return lab.Until(ctx, time.Minute, "run "+id, func(ctx context.Context) error {
		r, err := v.api.GetRun(ctx, id)
		if err == nil && r.Value.State != "succeeded" {
			err = fmt.Errorf("it is %s", r.Value.State)
		}
		return err
	})
}

// maxGrowth is what an attack may cost the node (promise P14 in docs/dev/reliability.md). With the race
// detector it says less.
const maxGrowth = memoryFactor * 64 << 20

// from dials from an address of its own, as another host would.
func from(ctx context.Context, local, address string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
	return conn, err
}
