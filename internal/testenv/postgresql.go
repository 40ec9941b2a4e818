package testenv

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

var errNoPostgreSQL = errors.New("PostgreSQL's server is not installed: run `build/need.sh postgresql`")

// sharedPostgreSQL is the process's own server. Its guard ends it.
var sharedPostgreSQL = sync.OnceValues(startPostgreSQL)

// PostgreSQL creates an empty database that no other test knows and returns its
// data source name for the driver "postgres", which the test imports
// (github.com/lib/pq): only tests of what users do with PostgreSQL need it. The server is
// started at the first call.
func PostgreSQL(tb testing.TB) string {
	tb.Helper()
	server, err := sharedPostgreSQL()
	if err != nil {
		tb.Fatalf("PostgreSQL for tests: %v", err)
	}
	name := "carillon_test_" + newSecret()
	if err := executePostgreSQL(tb.Context(), server.dsn("postgres"), `CREATE DATABASE "`+name+`"`); err != nil {
		tb.Fatalf("database for test: %v", err)
	}
	return server.dsn(name)
}

// postgresql is a server that lives as long as its guard is reachable.
type postgresql struct {
	guard    *guard
	home     string
	password string
	port     int
}

func startPostgreSQL() (*postgresql, error) {
	bin, err := findPostgreSQL()
	if err != nil {
		return nil, err
	}
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	sweep(DefaultDir(), time.Minute)
	home, err := os.MkdirTemp(DefaultDir(), homePrefix)
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	g, err := startGuard(home)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	p := &postgresql{guard: g, home: home, password: newSecret()}
	if err = p.install(bin, as); err == nil {
		err = p.serve(bin, as)
	}
	if err != nil {
		return nil, errors.Join(err, g.release())
	}
	return p, nil
}

func (p *postgresql) install(bin string, as *syscall.Credential) error {
	for name, content := range map[string]string{
		"password": p.password,
		"signal":   "QUIT", // KILL would leave its shared memory behind
	} {
		if err := os.WriteFile(filepath.Join(p.home, name), []byte(content), 0o600); err != nil {
			return err
		}
		if err := own(filepath.Join(p.home, name), as); err != nil {
			return err
		}
	}
	if err := own(p.home, as); err != nil {
		return err
	}
	install := exec.Command(filepath.Join(bin, "initdb"), "--pgdata="+filepath.Join(p.home, "data"), "--username="+testUser,
		"--auth=scram-sha-256", "--pwfile="+filepath.Join(p.home, "password"), "--encoding=UTF8", "--no-sync", "--no-instructions")
	install.Dir, install.SysProcAttr = p.home, &syscall.SysProcAttr{Credential: as}
	if err := runLogged(install, filepath.Join(p.home, "install.log")); err != nil {
		return fmt.Errorf("install PostgreSQL: %w", err)
	}
	return nil
}

// serve looks for a port until the server could take it.
func (p *postgresql) serve(bin string, as *syscall.Credential) (err error) {
	const tries = 5
	for try := 1; ; try++ {
		if p.port, err = freePort(); err != nil {
			return err
		}
		cmd := exec.Command("/bin/sh", "-c", launchScript, p.home,
			filepath.Join(bin, "postgres"), "-D", filepath.Join(p.home, "data"), "-p", strconv.Itoa(p.port),
			"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "dynamic_shared_memory_type=mmap",
			"-c", "max_connections=200", "-c", "fsync=off")
		cmd.Dir, cmd.SysProcAttr = p.home, &syscall.SysProcAttr{Setsid: true, Credential: as}
		log := filepath.Join(p.home, "server.log")
		err = startLogged(cmd, log)
		if err == nil {
			err = awaitPostgreSQL(cmd, p.dsn("postgres"), log)
		}
		if err == nil || try == tries || !errors.Is(err, errPortTaken) {
			return err
		}
	}
}

func startLogged(cmd *exec.Cmd, path string) error {
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Start()
}

// awaitPostgreSQL returns when a login works.
func awaitPostgreSQL(cmd *exec.Cmd, dsn, log string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		err := executePostgreSQL(ctx, dsn, "SELECT 1")
		if err == nil {
			return nil
		}
		if hasExited(cmd.Process.Pid) {
			tail := logTail(log)
			if bytes.Contains(tail, []byte("Address already in use")) {
				return errPortTaken
			}
			return fmt.Errorf("PostgreSQL gave up; its log ends with:\n%s", tail)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL did not answer within %v (%w); its log ends with:\n%s", startLimit, err, logTail(log))
		}
	}
}

func executePostgreSQL(ctx context.Context, dsn, statement string) error {
	db, err := sql.Open("postgres", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

func (p *postgresql) dsn(database string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/%s?sslmode=disable", testUser, p.password, p.port, database)
}

// findPostgreSQL returns the folder with the newest server's programs, which
// Debian keeps out of PATH.
func findPostgreSQL() (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return "", errNoPostgreSQL
	}
	return filepath.Dir(slices.Max(found)), nil
}

// unprivileged is who runs the server where root runs the tests: it refuses to
// run as root. nil elsewhere.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// own gives a file to whom the server runs as.
func own(path string, as *syscall.Credential) error {
	if as == nil {
		return nil
	}
	return os.Chown(path, int(as.Uid), int(as.Gid))
}
