//go:build proof

package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// office is an operator's shell beside a database server and another one to
// restore to, with the files that docs/guide/backup.md speaks of.
type office struct {
	t   *testing.T
	dir string
	env []string
}

// as writes the file with which the clients find a server.
func (o *office) as(file string, server *testenv.Server) {
	o.t.Helper()
	c, err := mysql.ParseDSN(server.DSN())
	require.NoError(o.t, err)
	host, port, _ := strings.Cut(c.Addr, ":")
	require.NoError(o.t, os.WriteFile(filepath.Join(o.dir, file),
		[]byte(fmt.Sprintf("[client]\nhost=%s\nport=%s\nuser=%s\npassword=%s\n", host, port, c.User, c.Passwd)), 0o600))
}

// blocks are the commands of a section of the page, in order.
func (o *office) blocks(title string) (out []string) {
	o.t.Helper()
	text, err := os.ReadFile("../../docs/guide/backup.md")
	require.NoError(o.t, err)
	_, section, ok := strings.Cut(string(text), "## "+title+"\n")
	require.True(o.t, ok, title)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		out = append(out, block[1])
	}
	require.Len(o.t, out, 2, "a command that makes the backup, and those that put it back")
	return out
}

func (o *office) do(script string, env ...string) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = o.dir, append(append(os.Environ(), o.env...), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(o.t, err, "%s\n%s", script, out)
}

// newMariaDB starts a server of the product whose commands the page has.
func newMariaDB(t *testing.T, args ...string) *testenv.Server {
	t.Helper()
	server, err := testenv.NewServer(testenv.Options{Product: testenv.MariaDB, Args: args})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return server
}

// letIn makes the nodes' user on another server.
func letIn(t *testing.T, server *testenv.Server, user *mysql.Config) {
	t.Helper()
	db, err := sql.Open("mysql", server.DSN())
	require.NoError(t, err)
	defer db.Close()
	for _, statement := range []string{
		fmt.Sprintf("CREATE USER %s@'127.0.0.1' IDENTIFIED BY '%s'", user.User, user.Passwd),
		fmt.Sprintf("GRANT ALL PRIVILEGES ON carillon.* TO %s@'127.0.0.1'", user.User),
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
}

// TestServerBackupAsDocumented does what the page says, word by word, while jobs
// fire: a dump that lacks what came after it is held until it is accepted, and one
// with the binary log goes on as if nothing had been.
func TestServerBackupAsDocumented(t *testing.T) {
	binlogs := t.TempDir()
	first := newMariaDB(t, "--log-bin="+filepath.Join(binlogs, "bin"), "--binlog-format=ROW", "--sync-binlog=1")
	endpoint, err := proxy.New(first.Addr(), proxy.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, endpoint.Close()) })
	database, err := lab.CreateDatabase(t.Context(), first, "carillon")
	require.NoError(t, err)
	dsn, err := database.User(t.Context(), "nodes", endpoint.Addr())
	require.NoError(t, err)
	h := newHouse(t, "mysql:"+dsn)
	h.fires(time.Now())

	o := &office{t: t, dir: t.TempDir(), env: []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "BINLOGS=" + binlogs}}
	o.as("backup.cnf", first)
	dump, whole := o.blocks("MariaDB and MySQL: dump"), o.blocks("MariaDB and MySQL: to the last commit")
	// restore puts a backup on a new server, to which the nodes are led.
	restore := func(script string) {
		t.Helper()
		server := newMariaDB(t)
		o.as("restore.cnf", server)
		own, err := mysql.ParseDSN(dsn)
		require.NoError(t, err)
		letIn(t, server, own)
		own.Addr = server.Addr()
		o.do(script, "CARILLON_DATABASE=mysql:"+own.FormatDSN())
		endpoint.Follow(server.Addr())
		h.start()
	}
	o.do(whole[0])
	h.fires(time.Now().Add(2 * time.Second))
	h.node.Process().Kill()
	restore(whole[1])
	h.fires(time.Now())
	require.Empty(t, h.twice())
	require.NotContains(t, h.must("cluster").stderr, "db_rollback")

	h.node.Process().Kill()
	endpoint.Follow(first.Addr())
	h.start() // the first one again: it lacks what came after, and the node knows
	h.holds()
	h.must("cluster", "accept-history", "--yes")
	h.fires(time.Now())
	o.do(dump[0])
	h.fires(time.Now().Add(2 * time.Second))
	h.node.Process().Kill()
	require.NoError(t, os.RemoveAll(h.data)) // a node that never saw the cluster
	restore(dump[1])
	h.holds()
	require.Contains(t, h.must("cluster").stderr, "a backup of ")
	h.must("cluster", "accept-history", "--yes")
	h.fires(time.Now())
	require.Empty(t, h.twice())
}
