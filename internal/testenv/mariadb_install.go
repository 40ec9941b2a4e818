package testenv

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// errNoMariaDB is the whole help text: it is the first thing a contributor
// without the package reads.
var errNoMariaDB = errors.New("mariadbd is not installed: run `build/need.sh mariadb`, " +
	"or `apt-get install mariadb-server-core mariadb-client-core`, " +
	"or name a server in " + EnvMySQLDSN)

// sbins are where distributions put servers; often not on a user's PATH.
var sbins = []string{"/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/usr/local/bin"}

func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range sbins {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w (no %s)", errNoMariaDB, name)
}

// installMariaDB fills home/data with the system tables and writes the file
// that creates the test user at each start. It took 0.5 to 2 s on 2 cores.
func installMariaDB(home, password string) error {
	install, err := findProgram("mariadb-install-db")
	if err != nil {
		return err
	}
	args := append([]string{
		"--no-defaults",
		"--datadir=" + filepath.Join(home, "data"),
		"--skip-test-db",
		"--skip-name-resolve",
		"--innodb-log-file-size=32M", // as in serverArgs: no rewrite at the first start
		// A starting server removes the temporary tables that it finds here,
		// those of another one's installation too: 41 of 120 failed, 12 at a time.
		"--tmpdir=" + home,
	}, asRoot()...)
	cmd := exec.Command(install, args...)
	// Into a file, not a buffer: a buffer costs goroutines.
	if err := runLogged(cmd, filepath.Join(home, "install.log")); err != nil {
		return fmt.Errorf("mariadb-install-db: %w", err)
	}
	// The password is how Start knows that it talks to this server and not to
	// a stranger on a recycled port.
	init := fmt.Sprintf("CREATE USER IF NOT EXISTS %s@'127.0.0.1' IDENTIFIED BY '%s';\n"+
		"GRANT ALL PRIVILEGES ON *.* TO %s@'127.0.0.1' WITH GRANT OPTION;\n",
		testUser, password, testUser)
	return os.WriteFile(filepath.Join(home, "init.sql"), []byte(init), 0o600)
}

// serverArgs returns mariadbd's command line. Later arguments win, so extra
// may overrule everything but the identity of the server.
func serverArgs(home string, port int, extra []string) []string {
	args := []string{
		"--no-defaults", // must be first: nothing of the machine's own server
		"--skip-name-resolve",
		"--skip-log-bin",
		"--transaction-isolation=READ-COMMITTED",
		"--character-set-server=utf8mb4",
		"--max-connections=500",
		// Durable commits, as in production: fault tests kill -9 and count.
		"--innodb-flush-log-at-trx-commit=1",
		"--innodb-log-file-size=32M",
		"--innodb-buffer-pool-size=256M",
	}
	args = append(args, extra...)
	args = append(args,
		"--datadir="+filepath.Join(home, "data"), // guardScript looks for this one
		"--init-file="+filepath.Join(home, "init.sql"),
		"--bind-address=127.0.0.1",
		"--port="+strconv.Itoa(port),
		// Relative to the data directory: TMPDIR may be longer than the 107
		// bytes that a socket address holds.
		"--socket=mariadbd.sock",
		"--pid-file=mariadbd.pid",
		"--tmpdir="+filepath.Join(home, "data"),
	)
	return append(args, asRoot()...)
}

// asRoot: mariadbd refuses to run as root (in containers, CI) unless told to.
func asRoot() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// runLogged runs cmd with its output in the file logPath, and puts the end of
// it into the error.
func runLogged(cmd *exec.Cmd, logPath string) error {
	log, err := os.Create(logPath)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, logTail(logPath))
	}
	return nil
}

// logTail returns the last lines of a log, for an error message.
func logTail(path string) []byte {
	const lines = 40 // mariadb-install-db ends with 25 that are the same each time
	text, err := os.ReadFile(path)
	if err != nil {
		return []byte(err.Error())
	}
	end := len(text)
	for range lines {
		at := bytes.LastIndexByte(text[:end], '\n')
		if at < 0 {
			return text
		}
		end = at
	}
	return text[end+1:]
}

// newSecret returns 26 random letters and digits.
func newSecret() string { return rand.Text() }
