package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// EnvMySQLHome names the environment variable with a folder that holds MySQL's
// server as build/need.sh unpacks it. Unset or empty: .cache/mysql of the
// repository.
const EnvMySQLHome = "CARILLON_TEST_MYSQL_HOME"

var errNoMySQL = errors.New("MySQL's server is not here: run `build/need.sh mysql`, which unpacks one into .cache/mysql, " +
	"or name a folder with one in " + EnvMySQLHome + ", or a server that runs in " + EnvMySQLDSN)

// findMySQL prefers the server that was unpacked for tests to that of the
// machine, which is used if it is MySQL's own, 8 or newer: MariaDB installs
// its server under that name too.
func findMySQL() (program, error) {
	home := os.Getenv(EnvMySQLHome)
	if home == "" {
		home = inRepository(filepath.Join(".cache", "mysql"))
	}
	if home != "" {
		p, err := unpackedMySQL(home)
		if err == nil || os.Getenv(EnvMySQLHome) != "" {
			return p, err
		}
	}
	path, err := findProgram("mysqld")
	if err != nil {
		return program{}, fmt.Errorf("%w (%w)", errNoMySQL, err)
	}
	version, err := exec.Command(path, "--no-defaults", "--version").Output()
	if err != nil || !isMySQL(version) {
		return program{}, fmt.Errorf("%w (%s says %q)", errNoMySQL, path, version)
	}
	return program{product: MySQL, argv: []string{path}}, nil
}

// unpackedMySQL is the server in a folder where packages were unpacked, the C
// library's among them: it runs with that one, not with the machine's.
func unpackedMySQL(home string) (program, error) {
	loaders, err := filepath.Glob(filepath.Join(home, "usr/lib/*-linux-gnu/ld-linux*.so.*"))
	if err != nil || len(loaders) == 0 {
		return program{}, fmt.Errorf("%w (nothing in %s)", errNoMySQL, home)
	}
	server := filepath.Join(home, "usr/sbin/mysqld")
	if _, err := os.Stat(server); err != nil {
		return program{}, fmt.Errorf("%w (%w)", errNoMySQL, err)
	}
	return program{
		product: MySQL,
		argv:    []string{loaders[0], "--library-path", filepath.Dir(loaders[0]), server},
		paths: []string{
			"--basedir=" + filepath.Join(home, "usr"),
			"--lc-messages-dir=" + filepath.Join(home, "usr/share/mysql"),
			"--character-sets-dir=" + filepath.Join(home, "usr/share/mysql/charsets"),
			"--plugin-dir=" + filepath.Join(home, "usr/lib/mysql/plugin"),
		},
	}, nil
}

var serverVersion = regexp.MustCompile(`Ver (\d+)\.[0-9.]+(-MariaDB)?`)

// isMySQL reads what mysqld --version says.
func isMySQL(version []byte) bool {
	m := serverVersion.FindSubmatch(version)
	if m == nil || len(m[2]) > 0 {
		return false
	}
	major, err := strconv.Atoi(string(m[1]))
	return err == nil && major >= 8
}

// inRepository looks for a path in the folder of the repository, in which
// tests run; empty when there is none.
func inRepository(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; ; dir = filepath.Dir(dir) {
		if found := filepath.Join(dir, path); exists(found) {
			return found
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// mysqlInstaller returns the command that fills home/data with the system
// tables. It took 3 s on 2 cores.
func mysqlInstaller(p program, home string) []string {
	args := []string{
		"--initialize-insecure", // root without a password, on the server's own socket only
		"--datadir=" + filepath.Join(home, "data"),
		"--tmpdir=" + home,
		mysqlRedoLog + "32M",
	}
	return p.command(append(append(args, mysqlArgs...), asRoot()...)...)
}

// mysqlArgs are what only MySQL has to be told.
var mysqlArgs = []string{
	"--loose-mysqlx=OFF",  // a second port
	"--secure-file-priv=", // or else a folder of the machine's has to be there
}
