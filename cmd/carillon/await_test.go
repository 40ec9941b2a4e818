package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/carillon-sched/carillon/internal/testenv"
)

// startingServer is a server's process, from its first moment.
type startingServer struct {
	t     *testing.T
	cmd   *exec.Cmd
	url   string
	lines chan logLine // closed when the process has ended
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

type logLine struct{ Msg, Reason, Err, URL string }

func startServer(t *testing.T, database string, args ...string) *startingServer {
	t.Helper()
	s := &startingServer{t: t, lines: make(chan logLine, 1000), url: "http://" + freeAddress(t)}
	args = append([]string{"server", "--data", t.TempDir(), "--http", strings.TrimPrefix(s.url, "http://"),
		"--executors", freeAddress(t), "--log-format", "json", "--database", database}, args...)
	s.cmd = newTerminal(t, "CARILLON_ADMIN_PASSWORD=tower-bell-64").command(context.Background(), args...)
	stderr, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	ended := make(chan struct{})
	go func() { // ends with the process
		defer close(ended)
		defer close(s.lines)
		for scan := bufio.NewScanner(stderr); scan.Scan(); {
			var line logLine
			if json.Unmarshal(scan.Bytes(), &line) != nil {
				line.Msg = scan.Text()
			}
			s.lines <- line
		}
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // if the test has failed
		<-ended
		_ = s.cmd.Wait()
	})
	return s
}

// line returns the next line that begins so, and fails if the process ends
// first. Lines about waiting must not be passed over.
func (s *startingServer) line(begins string) logLine {
	s.t.Helper()
	limit := time.After(30 * time.Second)
	for {
		select {
		case l, ok := <-s.lines:
			if !ok {
				s.t.Fatalf("the server has ended: %v", s.cmd.Wait())
			}
			if strings.HasPrefix(l.Msg, begins) {
				return l
			}
			require.NotContains(s.t, l.Msg, "waits for its database", "a line of its own for each change, and no more")
		case <-limit:
			s.t.Fatalf("no line begins with %q", begins)
		}
	}
}

func (s *startingServer) get(path string) (int, string) {
	s.t.Helper()
	res, err := http.Get(s.url + path)
	require.NoError(s.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return res.StatusCode, string(body)
}

// waits checks what a server says that waits for its database.
func (s *startingServer) waits(reason string) {
	s.t.Helper()
	l := s.line("the node waits for its database")
	require.Equal(s.t, reason, l.Reason, l.Err)
	status, _ := s.get("/healthz")
	require.Equal(s.t, http.StatusOK, status)
	status, body := s.get("/readyz")
	require.Equal(s.t, http.StatusServiceUnavailable, status)
	require.Contains(s.t, body, "this node starts: it waits for its database: "+reason)
	status, _ = s.get("/api/v1/jobs")
	require.Equal(s.t, http.StatusServiceUnavailable, status)
}

func (s *startingServer) serves() {
	s.t.Helper()
	s.line("the database answers, and the node starts")
	s.line("admin node serves")
	status, body := s.get("/readyz")
	require.Equal(s.t, http.StatusOK, status, body)
}

// stop asks the process to end and returns its exit code.
func (s *startingServer) stop() int {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	return s.end()
}

func (s *startingServer) end() int {
	s.t.Helper()
	for range s.lines { // to the end
	}
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

// mysqlFlag makes the value of --database of a driver's data source name.
func mysqlFlag(dsn string, change func(*mysql.Config)) string {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		panic(err)
	}
	out := mysql.NewConfig()
	out.User, out.Passwd, out.Net, out.Addr, out.DBName = cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName
	if change != nil {
		change(out)
	}
	return "mysql:" + out.FormatDSN()
}

// A node that starts while its database is away waits for it and says so.
func TestServerWaitsForMySQL(t *testing.T) {
	t.Parallel()
	db := testenv.PrivateServer(t)
	dsn := mysqlFlag(db.Database(t), nil)
	require.NoError(t, db.Kill())

	s := startServer(t, dsn)
	s.waits("its host refuses connections")
	require.NoError(t, db.Start())
	s.serves()
	require.NoError(t, db.Freeze())
	late := startServer(t, dsn)
	late.waits("it does not answer in time")
	require.NoError(t, db.Kill())
	late.waits("its host refuses connections")
	require.Equal(t, 0, late.stop(), "it was told to stop while it waited")
	require.NoError(t, db.Start())
	require.Equal(t, 0, s.stop())
}

func TestServerGivesUp(t *testing.T) {
	t.Parallel()
	for wait, least := range map[string]time.Duration{"2s": time.Second, "-1s": 0} {
		began := time.Now()
		r := newTerminal(t).run("server", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--executors", "127.0.0.1:0",
			"--database", "mysql://carillon@"+freeAddress(t)+"/carillon", "--database-wait", wait)
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, "the database could not be used within ")
		require.Contains(t, r.stderr, "its host refuses connections")
		require.GreaterOrEqual(t, time.Since(began), least)
	}
}

// What no waiting changes ends the process at once, also with a clear text.
func TestServerRefusedByItsDatabase(t *testing.T) {
	t.Parallel()
	dsn := testenv.Database(t)
	folder := filepath.Join(t.TempDir(), "not", "there", "carillon.db")
	for want, database := range map[string]string{
		"the database server refuses this user and password":      mysqlFlag(dsn, func(c *mysql.Config) { c.User, c.Passwd = "nobody", "wrong" }),
		"the database server has no database of this name":        mysqlFlag(dsn, func(c *mysql.Config) { c.DBName = "carillon_is_not_there" }),
		"no such file or directory":                               "sqlite:" + folder,
		"database: must begin with sqlite: or mysql://":           "postgres://db/carillon",
		"database: expected mysql://user:password@host:port/name": "mysql://user@host",
	} {
		r := newTerminal(t).run("server", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--executors", "127.0.0.1:0", "--database", database)
		require.Equal(t, 1, r.code, want)
		require.Contains(t, r.stderr, want)
		require.NotContains(t, r.stderr, "waits for its database")
	}
}

// Another process may hold the file for as long as it likes: a backup, or the
// node's last life.
func TestServerWaitsForSQLite(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "carillon.db")
	db, err := sql.Open("sqlite", fmt.Sprintf("file:%s?_txlock=exclusive", file))
	require.NoError(t, err)
	defer db.Close()
	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec("CREATE TABLE backup (id INTEGER)")
	require.NoError(t, err)

	s := startServer(t, "sqlite:"+file)
	s.waits("another process has locked its file")
	require.NoError(t, tx.Rollback())
	s.serves()
	require.Equal(t, 0, s.stop())
}
