package testenv

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// The argument for the size of the redo log. Callers use MariaDB's name; MySQL
// has had its own since 8.0.30 and knows the older one no more.
const (
	redoLog      = "--innodb-log-file-size="
	mysqlRedoLog = "--loose-innodb-redo-log-capacity="
)

// install fills home/data with the system tables.
func (p program) install(home string) error {
	var line []string
	if p.product == MySQL {
		line = mysqlInstaller(p, home)
	} else {
		var err error
		if line, err = mariadbInstaller(home); err != nil {
			return err
		}
	}
	// Into a file, not a buffer: a buffer costs goroutines.
	if err := runLogged(exec.Command(line[0], line[1:]...), filepath.Join(home, "install.log")); err != nil {
		return fmt.Errorf("install %s: %w", p.product, err)
	}
	return nil
}

// serve returns the server's command line. Later arguments win, so extra may
// overrule everything but the identity of the server.
func (p program) serve(home, space, host string, port int, extra []string) []string {
	args := []string{
		"--skip-name-resolve",
		"--skip-log-bin",
		"--transaction-isolation=READ-COMMITTED",
		"--character-set-server=utf8mb4",
		"--max-connections=500",
		// Durable commits, as in production: fault tests kill -9 and count.
		"--innodb-flush-log-at-trx-commit=1",
		redoLog + "32M",
		"--innodb-buffer-pool-size=256M",
	}
	args = append(args, extra...)
	if p.product == MySQL {
		for i, arg := range args {
			if size, ok := strings.CutPrefix(arg, redoLog); ok {
				args[i] = mysqlRedoLog + size
			}
		}
		args = append(args, mysqlArgs...)
	}
	args = append(args,
		"--datadir="+filepath.Join(home, "data"),
		"--bind-address="+host,
		"--port="+strconv.Itoa(port),
		// Relative to the data directory: TMPDIR may be longer than the 107
		// bytes that a socket address holds.
		"--socket="+socket,
		"--pid-file=server.pid",
		"--tmpdir="+home,
	)
	if init := filepath.Join(home, "init.sql"); exists(init) { // later starts of a cluster's members have none
		args = append(args, "--init-file="+init)
	}
	line := p.command(append(args, asRoot()...)...)
	if space != "" {
		line = append([]string{"ip", "netns", "exec", space}, line...) // ip becomes the server
	}
	return line
}

const socket = "server.sock"

// asRoot: the servers refuse to run as root (in containers, CI) unless told to.
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
