package testenv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// EnvGaleraHome names the environment variable with a folder that holds Galera's
// library, its scripts and rsync, as build/need.sh unpacks them. Unset or empty:
// .cache/galera of the repository.
const EnvGaleraHome = "CARILLON_TEST_GALERA_HOME"

var errNoGalera = errors.New("there is no Galera here: run `build/need.sh galera`, which unpacks it into .cache/galera, " +
	"or name a folder with it in " + EnvGaleraHome)

type galera struct{ home, library string }

func newGalera() (*galera, error) {
	home := os.Getenv(EnvGaleraHome)
	if home == "" {
		home = inRepository(filepath.Join(".cache", "galera"))
	}
	library := filepath.Join(home, "usr/lib/galera/libgalera_smm.so")
	if home == "" || !exists(library) {
		return nil, errNoGalera
	}
	return &galera{home, library}, nil
}

// These scripts lie in a folder of the server. The server finds the first one by its name,
// and it puts the second one in front of the system's rsync. Without it, an rsync daemon of
// root runs as the user "nobody" and may not enter the folder. The PATH of the server does
// not help, because the server puts the folder of the system's programs in front of it.
const (
	transferMethod = "private"
	transferScript = `#!/bin/sh
PATH=%[1]q:$PATH
export PATH
exec %[2]q "$@"
`
	rsyncScript = `#!/bin/sh
case " $* " in
*" --daemon "*) exec %[1]q "$@" --dparam=uid=%[2]d --dparam=gid=%[2]d ;;
*) exec %[1]q "$@" ;;
esac
`
)

// environment lets a server find its scripts, and those rsync.
func (g *galera) environment(s *Server) ([]string, error) {
	libraries, err := filepath.Glob(filepath.Join(g.home, "usr/lib/*-linux-gnu"))
	if err != nil {
		return nil, err
	}
	programs, own := filepath.Join(g.home, "usr/bin"), filepath.Join(s.home, "bin")
	if err := os.Mkdir(own, 0o700); err != nil {
		return nil, err
	}
	for name, script := range map[string]string{
		"rsync":                       fmt.Sprintf(rsyncScript, filepath.Join(programs, "rsync"), os.Geteuid()),
		"wsrep_sst_" + transferMethod: fmt.Sprintf(transferScript, own, filepath.Join(programs, "wsrep_sst_rsync")),
	} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(script), 0o700); err != nil {
			return nil, err
		}
	}
	return []string{
		"PATH=" + strings.Join(append([]string{own, programs, os.Getenv("PATH")}, sbins...), ":"),
		"LD_LIBRARY_PATH=" + strings.Join(libraries, ":"),
	}, nil
}

func (g *galera) place(c *Cluster, i int, host string) error {
	s := c.members[i]
	env, err := g.environment(s)
	if err != nil {
		return err
	}
	var ports [2]int // of a copy of all data, and of what is missing
	for k := range ports {
		if ports[k], err = freePort(); err != nil {
			return err
		}
	}
	s.env = append(s.env, env...)
	s.extra = append(s.extra,
		"--wsrep-on=ON",
		"--wsrep-provider="+g.library,
		"--wsrep-cluster-name=tests",
		"--wsrep-cluster-address=gcomm://"+strings.Join(c.group, ","),
		fmt.Sprintf("--wsrep-node-name=member-%d", i+1),
		"--wsrep-node-address="+c.group[i],
		"--wsrep-node-incoming-address="+s.Addr(),
		"--wsrep-sst-method="+transferMethod,
		"--wsrep-sst-receive-address="+at(host, ports[0]),
		"--wsrep-provider-options=gmcast.listen_addr=tcp://"+c.group[i]+";ist.recv_addr="+at(host, ports[1])+
			// Half of the usual times until a silent member is excluded.
			";gcache.size=128M;evs.suspect_timeout=PT3S;evs.inactive_timeout=PT7S;evs.install_timeout=PT5S",
		"--binlog-format=ROW",
		"--innodb-autoinc-lock-mode=2",
		"--wsrep-slave-threads=2",
	)
	if i == 0 {
		return s.writeInit("")
	}
	return s.dropInit() // the user comes with the others' data
}

func (g *galera) first(c *Cluster, i int) error {
	s := c.members[i]
	if i == 0 {
		if err := s.program.install(s.home); err != nil {
			return err
		}
		return s.begin("--wsrep-new-cluster")
	}
	if err := os.Mkdir(filepath.Join(s.home, "data"), 0o700); err != nil {
		return err
	}
	if err := s.begin(); err != nil { // the one that sends the data may know more
		return fmt.Errorf("%w\nthe log of member 1 ends with:\n%s", err, logTail(c.members[0].logPath()))
	}
	return nil
}

var recovered = regexp.MustCompile(`WSREP: Recovered position: (\S+)`)

// again does what the service of MariaDB's packages does: a server that crashed
// has to find out how far its data goes, or it would be sent all of it.
func (g *galera) again(s *Server) error {
	line := s.program.serve(s.home, "", "127.0.0.1", 0, append(append([]string{}, s.extra...), "--wsrep-recover", "--skip-networking"))
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), s.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("find out how far the data goes: %w\n%s", err, out)
	}
	at := recovered.FindSubmatch(out)
	if at == nil {
		return fmt.Errorf("the server does not say how far its data goes:\n%s", out)
	}
	return s.begin("--wsrep-start-position=" + string(at[1]))
}

func (g *galera) look(ctx context.Context, db *sql.DB) (m Member, err error) {
	says := map[string]string{}
	rows, err := db.QueryContext(ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN"+
		" ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_local_state_comment', 'wsrep_cluster_size')")
	if err != nil {
		return m, err
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return m, err
		}
		says[strings.ToLower(name)] = value
	}
	m.State = says["wsrep_local_state_comment"]
	m.Usable = says["wsrep_ready"] == "ON" && says["wsrep_cluster_status"] == "Primary" && m.State == "Synced"
	m.Writer = m.Usable
	_, err = fmt.Sscan(says["wsrep_cluster_size"], &m.Size)
	return m, errors.Join(err, rows.Err())
}
