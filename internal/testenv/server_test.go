package testenv

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// envOrphan turns the test binary into the process that TestServerDiesWithProcess
// kills.
const envOrphan = "CARILLON_TESTENV_ORPHAN"

func TestMain(m *testing.M) {
	if os.Getenv(envOrphan) != "" {
		becomeOrphanMaker()
	}
	goleak.VerifyTestMain(m)
}

// becomeOrphanMaker starts a server, tells its home and address, and waits to
// be killed.
func becomeOrphanMaker() {
	server, err := NewServer(Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, server.home)
	select {}
}

func TestDatabasesAreEmptyAndApart(t *testing.T) {
	first, second := open(t, Database(t)), open(t, Database(t))
	mustExec(t, first, "CREATE TABLE bell (id INT PRIMARY KEY)")
	mustExec(t, second, "CREATE TABLE bell (id INT PRIMARY KEY)") // no clash: another database
	mustExec(t, first, "INSERT INTO bell VALUES (1)")
	require.Equal(t, 0, count(t, second, "SELECT COUNT(*) FROM bell"))
}

func TestDefaultDirIsTMPDIROrHasRoom(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	require.Equal(t, dir, DefaultDir())
	require.False(t, hasSpace(memoryDir, math.MaxUint64))
	require.False(t, hasSpace("/proc", 0), "it is no file system in memory")
}

// TestServersLeaveOthersTemporaryTables: a starting server removes those that
// it finds, and one under installation beside it would fail for the lack of them.
func TestServersLeaveOthersTemporaryTables(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	table := filepath.Join(os.TempDir(), "#sql-temptable-5a86-1-3.MAI")
	require.NoError(t, os.WriteFile(table, nil, 0o600))
	server, err := NewServer(Options{})
	require.NoError(t, err)
	require.NoError(t, server.Close())
	require.FileExists(t, table)
}

func TestDatabaseIsDroppedWithItsTest(t *testing.T) {
	var dsn string
	t.Run("inner", func(t *testing.T) {
		dsn = Database(t)
		mustExec(t, open(t, dsn), "CREATE TABLE bell (id INT)")
	})
	cfg, err := mysql.ParseDSN(dsn)
	require.NoError(t, err)
	require.Error(t, ping(t.Context(), cfg), "the database should be gone")
	cfg.DBName = ""
	require.NoError(t, ping(t.Context(), cfg), "the server should not")
}

func TestDSNSpeaksAsTheServerDoes(t *testing.T) {
	db := open(t, Database(t))
	mustExec(t, db, "CREATE TABLE bell (id INT PRIMARY KEY, tone VARCHAR(8), at DATETIME(3))")
	mustExec(t, db, "INSERT INTO bell VALUES (1, '编钟', ?)", time.UnixMilli(1_700_000_000_123).UTC())

	var at time.Time
	require.NoError(t, db.QueryRow("SELECT at FROM bell").Scan(&at), "parseTime")
	require.Equal(t, int64(1_700_000_000_123), at.UnixMilli())

	result, err := db.Exec("UPDATE bell SET tone = '编钟' WHERE id = 1")
	require.NoError(t, err)
	rows, err := result.RowsAffected()
	require.NoError(t, err)
	require.Equal(t, int64(1), rows, "clientFoundRows: matched, though nothing changed")

	name, err := isolationVariable(t.Context(), mustConfig(t))
	require.NoError(t, err)
	var level string
	require.NoError(t, db.QueryRow("SELECT @@"+name).Scan(&level))
	require.Equal(t, "READ-COMMITTED", level)
}

func TestKillKeepsWhatWasCommitted(t *testing.T) {
	server := PrivateServer(t)
	db := open(t, server.Database(t))
	mustExec(t, db, "CREATE TABLE bell (id INT PRIMARY KEY)")
	mustExec(t, db, "INSERT INTO bell VALUES (1)")
	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO bell VALUES (2)")
	require.NoError(t, err)

	addr := server.Addr()
	require.NoError(t, server.Kill())
	require.Error(t, tx.Commit(), "its server is dead")
	require.Error(t, db.Ping())
	require.ErrorIs(t, server.Kill(), errNotRunning)
	require.ErrorIs(t, server.Freeze(), errNotRunning)

	require.NoError(t, server.Start())
	require.ErrorIs(t, server.Start(), errRunning)
	require.Equal(t, addr, server.Addr())
	require.Equal(t, 1, count(t, db, "SELECT COUNT(*) FROM bell"), "the open transaction left nothing")

	require.NoError(t, server.Stop())
	require.NoError(t, server.Start())
	require.Equal(t, 1, count(t, db, "SELECT COUNT(*) FROM bell"))
}

func TestReviveStartsWhatEndedByItself(t *testing.T) {
	server, err := NewServer(Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	died, err := server.Revive()
	require.NoError(t, err)
	require.False(t, died)
	process := server.cmd.Process
	require.NoError(t, process.Signal(syscall.SIGABRT))
	require.Eventually(t, func() bool { return hasExited(process.Pid) }, 30*time.Second, 10*time.Millisecond)
	died, err = server.Revive()
	require.NoError(t, err)
	require.True(t, died)
	require.NoError(t, ping(t.Context(), server.config()))
}

func TestFreezeSilencesUntilThaw(t *testing.T) {
	server := PrivateServer(t, "--log-bin=bin")
	db := open(t, server.Database(t))
	require.Equal(t, 1, count(t, db, "SELECT @@log_bin"), "extra arguments count")

	require.NoError(t, server.Freeze())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, db.PingContext(ctx), context.DeadlineExceeded)

	require.NoError(t, server.Thaw())
	require.NoError(t, db.Ping())

	require.NoError(t, server.Freeze())
	require.NoError(t, server.Stop(), "a frozen server can be stopped")
}

// TestServerDiesWithProcess kills a test process the hard way and expects its
// server and its directory to be gone.
func TestServerDiesWithProcess(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envOrphan+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var home string
	_, err = fmt.Fscanln(out, &home)
	require.NoError(t, err)
	pid := strings.TrimSpace(readFile(t, filepath.Join(home, "pid")))
	lock, err := os.Open(filepath.Join(home, "lock"))
	require.NoError(t, err)
	defer lock.Close()
	require.True(t, guarded(home))

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	// The guard holds this lock until it has done its work.
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	require.NoDirExists(t, home)
	cmdline, _ := os.ReadFile("/proc/" + pid + "/cmdline") // empty for a zombie that nobody reaps
	require.NotContains(t, string(cmdline), home)
}

func TestSweepTakesOnlyTheAbandoned(t *testing.T) {
	temp := t.TempDir()
	abandoned := makeHome(t, temp, "abandoned")
	young := makeHome(t, temp, "young")
	alive := makeHome(t, temp, "alive")
	g, err := startGuard(alive)
	require.NoError(t, err)
	longAgo := time.Now().Add(-time.Hour)
	for _, home := range []string{abandoned, alive} {
		require.NoError(t, os.Chtimes(home, longAgo, longAgo))
	}

	sweep(temp, time.Minute)
	require.NoDirExists(t, abandoned)
	require.DirExists(t, young)
	require.DirExists(t, alive)
	require.NoError(t, g.release())
	require.NoDirExists(t, alive)
}

// A pid file that names somebody else must not hurt him.
func TestGuardSparesStrangers(t *testing.T) {
	stranger := exec.Command("cat") // lives until its input is closed
	input, err := stranger.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, stranger.Start())
	home := makeHome(t, t.TempDir(), "recycled")
	require.NoError(t, os.WriteFile(filepath.Join(home, "pid"), fmt.Appendln(nil, stranger.Process.Pid), 0o600))
	g, err := startGuard(home)
	require.NoError(t, err)
	require.NoError(t, g.release())
	require.NoDirExists(t, home)
	require.NoError(t, input.Close())
	require.NoError(t, stranger.Wait(), "a killed cat would not end with status 0")
}

func TestMissingServerSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(EnvMySQLHome, t.TempDir())
	saved := sbins
	sbins = nil
	t.Cleanup(func() { sbins = saved })
	_, err := NewServer(Options{Product: MariaDB})
	require.ErrorIs(t, err, errNoMariaDB)
	require.ErrorContains(t, err, "apt-get install mariadb-server-core")
	_, err = NewServer(Options{Product: MySQL})
	require.ErrorIs(t, err, errNoMySQL)
	require.ErrorContains(t, err, "build/need.sh mysql")
	_, err = NewServer(Options{Product: "oracle"})
	require.ErrorContains(t, err, "mariadb or mysql")
}

func TestMySQLIsToldFromItsFork(t *testing.T) {
	for said, is := range map[string]bool{
		"mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)": false,
		"/usr/sbin/mysqld  Ver 8.0.43-0ubuntu0.24.04.1 for Linux on x86_64 ((Ubuntu))":      true,
		"/x/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))":                             true,
		"mysqld  Ver 5.7.44 for Linux on x86_64 (MySQL Community Server (GPL))":             false,
		"": false,
	} {
		require.Equal(t, is, isMySQL([]byte(said)), said)
	}
}

func TestTheChosenProductIsStarted(t *testing.T) {
	version, err := PrivateServer(t).Version()
	require.NoError(t, err)
	require.Equal(t, Chosen() == MariaDB, strings.Contains(version, "MariaDB"), version)
}

func TestBrokenServerShowsItsLog(t *testing.T) {
	_, err := NewServer(Options{Args: []string{"--no-such-option=1"}})
	require.ErrorContains(t, err, "unknown variable 'no-such-option=1'")
}

func makeHome(t *testing.T, temp, name string) string {
	home := filepath.Join(temp, homePrefix+name)
	require.NoError(t, os.MkdirAll(filepath.Join(home, "data"), 0o700))
	return home
}

func mustConfig(t *testing.T) *mysql.Config {
	cfg, err := sharedConfig()
	require.NoError(t, err)
	return cfg
}

func open(t *testing.T, dsn string) *sql.DB {
	db, err := sql.Open("mysql", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func mustExec(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	_, err := db.Exec(query, args...)
	require.NoError(t, err)
}

func count(t *testing.T, db *sql.DB, query string) int {
	t.Helper()
	var n int
	require.NoError(t, db.QueryRow(query).Scan(&n))
	return n
}

func readFile(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
