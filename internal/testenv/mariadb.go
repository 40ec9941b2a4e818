package testenv

import (
	"errors"
	"fmt"
	"path/filepath"
)

// errNoMariaDB is the whole help text: it is the first thing a contributor
// without the package reads.
var errNoMariaDB = errors.New("mariadbd is not installed: run `build/need.sh mariadb`, " +
	"or `apt-get install mariadb-server-core mariadb-client-core`, " +
	"or name a server in " + EnvMySQLDSN)

// mariadbInstaller returns the command that fills home/data with the system
// tables. It took 0.5 to 2 s on 2 cores.
func mariadbInstaller(home string) ([]string, error) {
	install, err := findProgram("mariadb-install-db")
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", errNoMariaDB, err)
	}
	return append([]string{
		install,
		"--no-defaults",
		"--datadir=" + filepath.Join(home, "data"),
		"--skip-test-db",
		"--skip-name-resolve",
		redoLog + "32M", // as in serverArgs: no rewrite at the first start
		// A starting server removes the temporary tables that it finds here,
		// those of another one's installation too: 41 of 120 failed, 12 at a time.
		"--tmpdir=" + home,
	}, asRoot()...), nil
}
