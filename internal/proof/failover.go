package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv"
)

type plan struct {
	jobs     int
	duration time.Duration
	down     time.Duration
	bound    time.Duration
	dir      string
	asJSON   bool
}

// fleet is what runs.
type fleet struct {
	plan      plan
	binary    string
	self      string
	db        *testenv.MariaDBServer
	password  string
	admins    [2]*process
	adminArgs [2][]string
	adminEnv  []string
	apis      [2]*api
	executors []*process
	executor  string
}

// failover is the proof of the first issue's second point.
func failover(ctx context.Context, args []string) error {
	var p plan
	flags := flag.NewFlagSet("failover", flag.ContinueOnError)
	flags.IntVar(&p.jobs, "jobs", 500, "jobs that fire every second")
	flags.DurationVar(&p.duration, "for", 5*time.Minute, "how long they fire")
	flags.DurationVar(&p.down, "down", 15*time.Second, "how long the killed admin stays down")
	flags.DurationVar(&p.bound, "bound", 5*time.Second, "no start may be later than this")
	flags.StringVar(&p.dir, "dir", "", "folder for data and logs (default: a temporary one, removed when all is well)")
	flags.BoolVar(&p.asJSON, "json", false, "print the figures as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	keep := p.dir != ""
	if !keep {
		dir, err := os.MkdirTemp("", "carillon-proof-")
		if err != nil {
			return err
		}
		p.dir = dir
	}
	f := &fleet{plan: p}
	figures, err := f.run(ctx)
	f.close()
	if err != nil {
		return fmt.Errorf("%w (logs in %s)", err, p.dir)
	}
	figures.print(os.Stdout, p.asJSON)
	if err := figures.verdict(p.bound); err != nil {
		return fmt.Errorf("%w (logs in %s)", err, p.dir)
	}
	if !keep {
		return os.RemoveAll(p.dir)
	}
	return nil
}

func (f *fleet) run(ctx context.Context) (*figures, error) {
	if err := f.build(ctx); err != nil {
		return nil, err
	}
	if err := f.startAdmins(ctx); err != nil {
		return nil, err
	}
	executorID, token, err := f.apis[0].setUp(ctx, f.password, "witness")
	if err != nil {
		return nil, err
	}
	f.executor = executorID
	f.apis[1].token = f.apis[0].token
	if err := f.startExecutors(token); err != nil {
		return nil, err
	}
	if err := f.apis[1].online(ctx, f.executor, 2); err != nil {
		return nil, err
	}
	from := time.Now().Add(time.Duration(f.plan.jobs)*20*time.Millisecond + 5*time.Second).Truncate(time.Second)
	to := from.Add(f.plan.duration)
	say("creating %d jobs, each due every second from %s to %s", f.plan.jobs, from.Format(time.TimeOnly), to.Format(time.TimeOnly))
	if err := f.createJobs(ctx, from, to); err != nil {
		return nil, err
	}
	fault, err := f.breakOneAdmin(ctx, from)
	if err != nil {
		return nil, err
	}
	say("waiting for the last fire time")
	if err := sleepUntil(ctx, to.Add(f.plan.bound+2*time.Second)); err != nil {
		return nil, err
	}
	for _, p := range append(f.executors, f.admins[:]...) {
		if p.ended() {
			return nil, fmt.Errorf("%s ended by itself", p.name)
		}
	}
	return f.count(ctx, from, to, fault)
}

// build makes the binary that is proven.
func (f *fleet) build(ctx context.Context) error {
	var err error
	if f.self, err = os.Executable(); err != nil {
		return err
	}
	f.binary = filepath.Join(f.plan.dir, "carillon")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", f.binary, "./cmd/carillon")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

func (f *fleet) startAdmins(ctx context.Context) error {
	var err error
	if f.db, err = testenv.NewMariaDB(); err != nil {
		return err
	}
	dsn, err := f.createDatabase(ctx)
	if err != nil {
		return err
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	f.password = hex.EncodeToString(secret[:12])
	keyFile := filepath.Join(f.plan.dir, "sealing.key")
	if err := os.WriteFile(keyFile, []byte(hex.EncodeToString(secret)+"\n"), 0o600); err != nil {
		return err
	}
	f.adminEnv = []string{"CARILLON_ADMIN_PASSWORD=" + f.password, "CARILLON_DATABASE=mysql:" + dsn, "CARILLON_SEALING_KEY_FILE=" + keyFile}
	for i := range f.admins {
		ui, err := freePort()
		if err != nil {
			return err
		}
		wire, err := freePort()
		if err != nil {
			return err
		}
		f.apis[i] = &api{base: fmt.Sprintf("http://127.0.0.1:%d", ui)}
		f.adminArgs[i] = []string{
			"server", "--data", filepath.Join(f.plan.dir, fmt.Sprintf("admin-%d", i+1)),
			"--http", fmt.Sprintf("127.0.0.1:%d", ui), "--executors", fmt.Sprintf("127.0.0.1:%d", wire),
			"--node", fmt.Sprintf("admin-%d", i+1),
		}
		if err := f.startAdmin(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) startAdmin(ctx context.Context, i int) (err error) {
	name := fmt.Sprintf("admin-%d", i+1)
	if f.admins[i], err = start(f.plan.dir, name, f.adminEnv, f.binary, f.adminArgs[i]...); err != nil {
		return err
	}
	return f.apis[i].ready(ctx)
}

func (f *fleet) startExecutors(token string) error {
	addr := f.adminArgs[0][6]
	for i := range 2 {
		name := fmt.Sprintf("executor-%d", i+1)
		p, err := start(f.plan.dir, name, []string{"CARILLON_EXECUTOR_TOKEN=" + token}, f.self,
			"executor", "-addr", addr, "-journal", filepath.Join(f.plan.dir, name), "-file", f.witnessFile(i))
		if err != nil {
			return err
		}
		f.executors = append(f.executors, p)
	}
	return nil
}

func (f *fleet) witnessFile(i int) string {
	return filepath.Join(f.plan.dir, fmt.Sprintf("witness-%d.jsonl", i+1))
}

func (f *fleet) createJobs(ctx context.Context, from, to time.Time) error {
	for i := range f.plan.jobs {
		// Validity bounds are inclusive; stop one millisecond before the end.
		job := map[string]any{
			"name": fmt.Sprintf("every-second-%04d", i), "executor": map[string]string{"id": f.executor}, "handler": "tick",
			"schedule": map[string]any{
				"kind": "cron", "expr": "* * * * * *", "dialect": "seconds", "zone": "UTC",
				"startAt": from.UTC().Format("2006-01-02T15:04:05.000Z"),
				"endAt":   to.Add(-time.Millisecond).UTC().Format("2006-01-02T15:04:05.000Z"),
			},
			"misfire": map[string]string{"policy": "once_now", "threshold": "60s"}, "blocking": "parallel",
		}
		if err := f.apis[i%2].call(ctx, http.MethodPost, "/api/v1/jobs", job, nil); err != nil {
			return err
		}
	}
	if left := time.Until(from); left < time.Second {
		return fmt.Errorf("creating the jobs took too long: %s left before the first fire", left)
	}
	return nil
}

// window is the time in which a fault acted.
type window struct{ from, to time.Time }

func (f *fleet) breakOneAdmin(ctx context.Context, from time.Time) (window, error) {
	if err := sleepUntil(ctx, from.Add(f.plan.duration/2)); err != nil {
		return window{}, err
	}
	w := window{from: time.Now()}
	f.admins[0].kill()
	say("killed %s with SIGKILL", f.admins[0].name)
	if err := sleepUntil(ctx, w.from.Add(min(f.plan.down, f.plan.duration/4))); err != nil {
		return w, err
	}
	if err := f.startAdmin(ctx, 0); err != nil {
		return w, err
	}
	w.to = time.Now()
	say("%s is back after %s", f.admins[0].name, w.to.Sub(w.from).Round(time.Millisecond))
	return w, nil
}

func sleepUntil(ctx context.Context, t time.Time) error {
	select {
	case <-ctx.Done():
		return errors.New("interrupted")
	case <-time.After(time.Until(t)):
		return nil
	}
}

// close stops everything in the order of the path.
func (f *fleet) close() {
	for _, p := range f.executors {
		p.stop()
	}
	for _, p := range f.admins {
		if p != nil {
			p.stop()
		}
	}
	if f.db != nil {
		_ = f.db.Close()
	}
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+strings.TrimSpace(format)+"\n", args...)
}
