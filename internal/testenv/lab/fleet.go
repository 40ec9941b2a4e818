package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// Build makes the binary into dir, and returns its path. flags are further
// arguments of go build.
func Build(ctx context.Context, dir, name string, flags ...string) (string, error) {
	path := filepath.Join(dir, name)
	args := append([]string{"-o", path}, flags...)
	return path, GoBuild(ctx, "", append(args, "./cmd/carillon")...)
}

// GoBuild is go build in a directory, empty = this one, without cgo as all is
// shipped. Messages of the compiler go to standard error. A directory without a go.work
// does not take part in the workspace of a directory above it.
func GoBuild(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if _, err := os.Stat(filepath.Join(dir, "go.work")); dir != "" && err != nil {
		cmd.Env = append(cmd.Env, "GOWORK=off")
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// Options of a fleet.
type Options struct {
	// Dir takes data, journals and logs.
	Dir string
	// Binary is carillon.
	Binary string
	// DSN returns the database of admin i, as --database takes it.
	DSN func(i int) string
	// Host is the address that admin i listens on; nil = 127.0.0.1. One that
	// is not loopback is opened with --insecure-bind.
	Host func(i int) string
	// Advertise returns what executors are told to dial for admin i, given
	// where it listens; nil = that.
	Advertise func(i int, listens string) (string, error)
	// Env and Flags are added for admin i; may be nil.
	Env, Flags func(i int) []string
}

// Fleet is admin nodes and executors as processes.
type Fleet struct {
	Options
	// Password of the user "admin".
	Password string
	Admins   []*Admin

	keyFile   string
	mu        sync.Mutex
	executors []*Process // guarded by mu; all that were started
}

// Admin is one node: its settings outlive its process.
type Admin struct {
	Name string
	API  *API
	Wire string // host:port that executors are told to dial

	process atomic.Pointer[Process] // tests ask about a node while it is started again
	binary  string
	args    []string
	env     []string
	dir     string
}

// NewFleet starts nothing yet.
func NewFleet(o Options) (*Fleet, error) {
	f := &Fleet{Options: o}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	f.Password = hex.EncodeToString(secret[:12])
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	f.keyFile = filepath.Join(o.Dir, "sealing.key")
	return f, os.WriteFile(f.keyFile, []byte(hex.EncodeToString(secret)+"\n"), 0o600)
}

// AddAdmin starts one more node and waits until it is ready.
func (f *Fleet) AddAdmin(ctx context.Context) (*Admin, error) {
	i := len(f.Admins)
	host := "127.0.0.1"
	if f.Host != nil {
		host = f.Host(i)
	}
	ui, err := FreePort(host)
	if err != nil {
		return nil, err
	}
	wire, err := FreePort(host)
	if err != nil {
		return nil, err
	}
	a := &Admin{Name: fmt.Sprintf("admin-%d", i+1), API: NewAPI("http://" + ui), Wire: wire, binary: f.Binary, dir: f.Dir}
	if f.Advertise != nil {
		if a.Wire, err = f.Advertise(i, wire); err != nil {
			return nil, err
		}
	}
	a.args = []string{"server", "--data", filepath.Join(f.Dir, a.Name), "--http", ui, "--executors", wire, "--node", a.Name, "--advertise", a.Wire}
	if ip := net.ParseIP(host); ip != nil && !ip.IsLoopback() {
		metrics, err := FreePort(host) // on its own port the node tells them to nobody else's machine
		if err != nil {
			return nil, err
		}
		a.API.metrics = "http://" + metrics
		a.args = append(a.args, "--insecure-bind", "--metrics-listen", metrics)
	}
	a.env = []string{"CARILLON_ADMIN_PASSWORD=" + f.Password, "CARILLON_DATABASE=" + f.DSN(i), "CARILLON_SEALING_KEY_FILE=" + f.keyFile}
	if f.Env != nil {
		a.env = append(a.env, f.Env(i)...)
	}
	if f.Flags != nil {
		a.args = append(a.args, f.Flags(i)...)
	}
	f.Admins = append(f.Admins, a)
	if err := a.Start(ctx); err != nil {
		return nil, err
	}
	if i > 0 {
		a.API.Token = f.Admins[0].API.Token
		return a, nil
	}
	return a, a.API.SignIn(ctx, "admin", f.Password, "")
}

// Start starts the node (again) with the same settings and waits until it is
// ready.
func (a *Admin) Start(ctx context.Context) error {
	if err := a.Launch(); err != nil {
		return err
	}
	p := a.Process()
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.Done():
			cancel()
		case <-wait.Done():
		}
	}()
	err := a.API.Ready(wait)
	if err != nil && p.Ended() {
		err = ErrEnded
	}
	if err != nil {
		return fmt.Errorf("%w (log: %s)", err, p.LogFile)
	}
	return nil
}

// ErrEnded: the process ended before it was ready.
var ErrEnded = errors.New("the process ended before it was ready")

// Launch is Start without waiting.
func (a *Admin) Launch() error {
	p, err := Start(Command{Name: a.Name, Dir: a.dir, Env: a.env, Program: a.binary, Args: a.args})
	if err == nil {
		a.process.Store(p)
	}
	return err
}

// Use makes the node's next process run another binary.
func (a *Admin) Use(binary string) { a.binary = binary }

// Process returns the node's process as it was started last; nil: never.
func (a *Admin) Process() *Process { return a.process.Load() }

// StartExecutor starts a process of an executor; c.Dir defaults to the fleet's.
func (f *Fleet) StartExecutor(c Command) (*Process, error) {
	if c.Dir == "" {
		c.Dir = f.Dir
	}
	p, err := Start(c)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.executors = append(f.executors, p)
	return p, nil
}

// Close stops everything in the order of the path: executors, then admins.
func (f *Fleet) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	stopAll(f.executors)
	var admins []*Process
	for _, a := range f.Admins {
		if a.Process() != nil {
			admins = append(admins, a.Process())
		}
	}
	stopAll(admins)
}

func stopAll(list []*Process) {
	var wg sync.WaitGroup
	for _, p := range list {
		wg.Go(p.Stop)
	}
	wg.Wait()
}

// FreePort returns host:port that nobody listens on. The port lies below the
// ephemeral range, so that no outgoing connection sits on it while its owner
// is down and wants it back.
func FreePort(host string) (string, error) {
	const tries = 100
	var errs error
	for range tries {
		var n [2]byte
		if _, err := rand.Read(n[:]); err != nil {
			return "", err
		}
		addr := net.JoinHostPort(host, fmt.Sprint(10000+(int(n[0])<<8|int(n[1]))%10000))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			errs = err
			continue
		}
		return addr, l.Close()
	}
	return "", errors.Join(errors.New("no free port"), errs)
}
