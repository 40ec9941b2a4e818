package testenv

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sys/unix"
)

const (
	testUser = "carillon"
	// startLimit is how long a server may take until it answers, crash
	// recovery included; 0.5 to 1 s is usual, the rest is for loaded machines.
	startLimit = 60 * time.Second
	// pingInterval is how often a starting server is asked whether it answers.
	pingInterval = 20 * time.Millisecond
)

var (
	errPortTaken  = errors.New("port was taken by another process")
	errRunning    = errors.New("the server is running already")
	errNotRunning = errors.New("the server is not running")
)

// Server is one private server with a data directory that survives Kill and
// Start. Its methods are safe for use by several goroutines.
type Server struct {
	// Fixed after construction.
	home     string // holds data/, init.sql, server.log, pid, lock
	program  program
	extra    []string
	env      []string
	password string
	guard    *guard
	host     string // an address of its own in space, or 127.0.0.1
	space    string // network namespace; empty = ours

	mu   sync.Mutex
	port int       // guarded by mu; fixed once the first Start succeeded
	cmd  *exec.Cmd // guarded by mu; nil while not running
}

// Options say what server NewServer starts, and where; the zero value is the
// usual one.
type Options struct {
	Product Product // empty = Chosen()
	// Args are added to the server's command line, for example "--log-bin=bin".
	// The size of the redo log has MariaDB's name, --innodb-log-file-size.
	Args []string
	// Dir takes the server's directory, for example on a small file system;
	// empty = DefaultDir.
	Dir string
	// Env is added to the environment of the server, and not of what installs it.
	Env []string
	// Host is the address that it listens on; empty = 127.0.0.1. Space is the
	// network namespace that has it; empty = ours.
	Host, Space string
}

// NewServer installs and starts a server. Close ends it; if the process ends
// without Close, in whatever way, the server ends too. Tests use PrivateServer.
func NewServer(o Options) (*Server, error) {
	s, err := prepareServer(o)
	if err != nil {
		return nil, err
	}
	if err := s.program.install(s.home); err != nil {
		return nil, errors.Join(err, s.guard.release())
	}
	if err := s.firstStart(); err != nil {
		return nil, errors.Join(err, s.guard.release())
	}
	return s, nil
}

// prepareServer makes a server's directory, without any data, and its guard.
func prepareServer(o Options) (*Server, error) {
	if o.Product == "" {
		o.Product = Chosen()
	}
	program, err := o.Product.find()
	if err != nil {
		return nil, err
	}
	if o.Dir == "" {
		o.Dir = DefaultDir()
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	sweep(o.Dir, time.Minute)
	home, err := os.MkdirTemp(o.Dir, homePrefix)
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	g, err := startGuard(home)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	s := &Server{home: home, program: program, extra: o.Args, env: o.Env, password: newSecret(), guard: g, host: o.Host, space: o.Space}
	if err := s.writeInit(""); err != nil {
		return nil, errors.Join(err, g.release())
	}
	return s, nil
}

// writeInit writes the file that creates the test user at each start. The
// password is how Start knows that it talks to this server and not to a stranger
// on a recycled port. first is a statement that goes before.
func (s *Server) writeInit(first string) error {
	user := fmt.Sprintf("%s@'%s'", testUser, s.clients())
	text := fmt.Sprintf("%sCREATE USER IF NOT EXISTS %s IDENTIFIED BY '%s';\nGRANT ALL PRIVILEGES ON *.* TO %s WITH GRANT OPTION;\n",
		first, user, s.password, user)
	return os.WriteFile(filepath.Join(s.home, "init.sql"), []byte(text), 0o600)
}

// clients is where the test user comes from.
func (s *Server) clients() string {
	if s.host == "127.0.0.1" {
		return s.host
	}
	return "%"
}

// firstStart looks for a port until the server could take it.
func (s *Server) firstStart() error {
	const tries = 5
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.port = port
		s.mu.Unlock()
		err = s.Start()
		if err == nil || try == tries || !errors.Is(err, errPortTaken) {
			return err
		}
	}
}

// Start starts the server again after Kill or Stop: same data, same address.
// It returns when the server answers, its crash recovery done.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return errRunning
	}
	log, err := os.Create(s.logPath())
	if err != nil {
		return err
	}
	defer log.Close()
	// MySQL does not start while any process has the pid that it finds in there.
	if err := os.Remove(filepath.Join(s.home, "data", socket+".lock")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	launch := []string{"-c", launchScript, s.home}
	cmd := exec.Command("/bin/sh", append(launch, s.program.serve(s.home, s.space, s.host, s.port, s.extra)...)...)
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for the tests
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.program.product, err)
	}
	s.cmd = cmd
	if err := s.waitReadyLocked(); err != nil {
		return errors.Join(err, s.endLocked(syscall.SIGKILL))
	}
	return nil
}

// waitReadyLocked returns when a login works, or with the end of the server's
// log when it gave up. Asking is the only signal that every build of a server
// gives and that means what we want to know.
func (s *Server) waitReadyLocked() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		err := ping(ctx, s.configLocked())
		if err == nil {
			return nil
		}
		if hasExited(s.cmd.Process.Pid) {
			tail := logTail(s.logPath())
			if bytes.Contains(tail, []byte("Address already in use")) {
				return errPortTaken
			}
			return fmt.Errorf("%s gave up; its log ends with:\n%s", s.program.product, tail)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s did not answer within %v (%w); its log ends with:\n%s",
				s.program.product, startLimit, err, logTail(s.logPath()))
		}
	}
}

// Kill ends the server with SIGKILL, as a crash does, and returns when the
// process is gone. What was committed is there after the next Start.
func (s *Server) Kill() error { return s.end(syscall.SIGKILL) }

// Stop ends the server with SIGTERM, as an operator does, and returns when
// the process is gone. A frozen server is thawed for it.
func (s *Server) Stop() error { return s.end(syscall.SIGTERM) }

// Revive starts the server again if it ended by itself, as its supervisor would
// (InnoDB gives up when it cannot write a page); it reports whether that was so.
func (s *Server) Revive() (bool, error) {
	s.mu.Lock()
	ended := s.cmd != nil && hasExited(s.cmd.Process.Pid)
	if ended {
		if err := s.endLocked(syscall.SIGKILL); err != nil {
			s.mu.Unlock()
			return true, err
		}
	}
	s.mu.Unlock()
	if !ended {
		return false, nil
	}
	return true, s.Start()
}

// Freeze halts the server with SIGSTOP and returns when all its threads stand
// still: connections stay open, and nothing answers, until Thaw, Stop or Kill.
func (s *Server) Freeze() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return errNotRunning
	}
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze the server: %w", err)
	}
	// Its threads stop one by one; the kernel tells the parent after the last.
	info, err := peekChild(s.cmd.Process.Pid, unix.WSTOPPED|unix.WEXITED)
	if err != nil {
		return fmt.Errorf("wait for stop: %w", err)
	}
	if info.Code != cldStopped {
		return fmt.Errorf("freeze the server: it died; its log ends with:\n%s", logTail(s.logPath()))
	}
	return nil
}

// Thaw lets a frozen server go on.
func (s *Server) Thaw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return errNotRunning
	}
	return s.cmd.Process.Signal(syscall.SIGCONT)
}

// Save copies the data of a server that is stopped into dir, which must not
// exist; Restore puts such a copy back, as an operator does with a backup.
func (s *Server) Save(dir string) error {
	return s.whileStopped(func(data string) error { return os.CopyFS(dir, os.DirFS(data)) })
}

// Restore replaces the data of a server that is stopped by what Save wrote.
func (s *Server) Restore(dir string) error {
	return s.whileStopped(func(data string) error {
		return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(dir)))
	})
}

func (s *Server) whileStopped(do func(data string) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		return errRunning
	}
	return do(filepath.Join(s.home, "data"))
}

// Close ends the server for good and removes its data.
func (s *Server) Close() error {
	if err := s.Kill(); err != nil && !errors.Is(err, errNotRunning) {
		return err
	}
	return s.guard.release()
}

// Addr returns host:port; it stays the same over Kill and Start.
func (s *Server) Addr() string { return s.config().Addr }

// DSN returns the data source name of the test user, who may do everything,
// without a database.
func (s *Server) DSN() string { return s.config().FormatDSN() }

// Version is what the server calls itself.
func (s *Server) Version() (version string, err error) {
	err = withServer(s.config(), func(db *sql.DB) error { return db.QueryRow("SELECT VERSION()").Scan(&version) })
	return version, err
}

func (s *Server) end(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return errNotRunning
	}
	return s.endLocked(sig)
}

func (s *Server) endLocked(sig syscall.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal the server: %w", err)
	}
	// A stopped process takes a signal other than SIGKILL only once it goes on.
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("thaw the server: %w", err)
	}
	// How it ended is what we asked for: the exit status says nothing more.
	var exit *exec.ExitError
	if err := s.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("wait for the server: %w", err)
	}
	s.cmd = nil
	return os.Remove(filepath.Join(s.home, "pid"))
}

func (s *Server) config() *mysql.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.configLocked()
}

func (s *Server) configLocked() *mysql.Config {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(s.host, strconv.Itoa(s.port))
	cfg.User, cfg.Passwd = testUser, s.password
	return cfg
}

func (s *Server) logPath() string { return filepath.Join(s.home, "server.log") }

// ping logs in and out again.
func ping(ctx context.Context, cfg *mysql.Config) error {
	cfg.Logger = &mysql.NopLogger{} // a refused connection is what we expect
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

// cldStopped is siginfo's code for a child stopped by a signal (CLD_STOPPED in
// <bits/siginfo-consts.h>); x/sys does not name it.
const cldStopped = 5

// hasExited reports whether the child is dead, without reaping it: Wait still
// has to.
func hasExited(pid int) bool {
	info, err := peekChild(pid, unix.WEXITED|unix.WNOHANG)
	return err == nil && info.Signo != 0
}

// peekChild is waitid(2) that leaves the child's news for the next to ask.
func peekChild(pid, options int) (unix.Siginfo, error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, options|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return info, err
		}
	}
}
