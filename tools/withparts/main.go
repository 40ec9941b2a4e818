// Command withparts runs a command with the servers that tests need:
//
//	go run ./tools/withparts -- go test ./...
//
// It starts one private database server for all test packages together and
// names it in CARILLON_TEST_MYSQL_DSN, unless that variable is set already. It
// says which server that is, and ends with the command and its exit status.
//
//	withparts -product mysql -name CARILLON_MYSQL -dir /tmp -server --innodb-buffer-pool-size=2G -- go run ./admin/tools/bench
//
// -cluster starts three servers, Galera's or Group Replication's, and names the one
// that takes writes. -product chooses the server, also for those that the command starts itself:
// mariadb, which is the default, or mysql. -name names the server in another
// variable instead, -dir puts its data there instead of into memory, and -server
// adds an argument to its command line.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/carillon-sched/carillon/internal/testenv"
)

func main() {
	variable := flag.String("name", testenv.EnvMySQLDSN, "environment variable that names the server")
	cluster := flag.Bool("cluster", false, "three servers that replicate: Galera of MariaDB, Group Replication of MySQL")
	product := flag.String("product", string(testenv.Chosen()), "mariadb or mysql")
	dir := flag.String("dir", "", "`folder` for the server's data (default: TMPDIR, or in memory when there is room)")
	var args []string
	flag.Func("server", "argument for the server, may be given again", func(arg string) error {
		args = append(args, arg)
		return nil
	})
	flag.Parse() // stops at -- or at the command
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: withparts [-product mariadb|mysql] [-cluster] [-name VARIABLE] [-dir FOLDER] [-server ARGUMENT ...] [--] command [argument ...]")
		os.Exit(2)
	}
	status, err := run(*variable, *cluster, testenv.Options{Product: testenv.Product(*product), Dir: *dir, Args: args}, flag.Args())
	if err != nil {
		fmt.Fprintf(os.Stderr, "withparts: %v\n", err)
	}
	os.Exit(status)
}

// run returns the command's exit status; 1 for an error of our own.
func run(variable string, cluster bool, o testenv.Options, args []string) (status int, err error) {
	if err := os.Setenv(testenv.EnvProduct, string(o.Product)); err != nil {
		return 1, err
	}
	if cluster {
		if err := os.Setenv(testenv.EnvCluster, "yes"); err != nil {
			return 1, err
		}
	}
	if os.Getenv(variable) == "" {
		server, end, err := start(cluster, o)
		if err != nil {
			return 1, err
		}
		defer func() {
			if closeErr := end(); closeErr != nil {
				status, err = max(status, 1), errors.Join(err, closeErr)
			}
		}()
		version, err := server.Version()
		if err != nil {
			return 1, err
		}
		fmt.Fprintf(os.Stderr, "withparts: %s %s\n", o.Product, version)
		if err := os.Setenv(variable, server.DSN()); err != nil {
			return 1, err
		}
	}
	return runCommand(args)
}

// start returns the server that takes writes, and what ends all of them.
func start(cluster bool, o testenv.Options) (*testenv.Server, func() error, error) {
	if !cluster {
		server, err := testenv.NewServer(o)
		if err != nil {
			return nil, nil, err
		}
		return server, server.Close, nil
	}
	c, err := testenv.NewCluster(testenv.ClusterOptions{Product: o.Product, Dir: o.Dir, Args: o.Args})
	if err != nil {
		return nil, nil, err
	}
	return c.Members()[0], c.Close, nil
}

// runCommand passes signals on: the command decides what they mean, and we
// tidy up once it is gone.
func runCommand(args []string) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 4) // a burst of Ctrl-C; more may be lost
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	ended := make(chan error, 1) // one result, so that Wait's goroutine ends
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			_ = cmd.Process.Signal(sig) // it may have ended just now
		case err := <-ended:
			return exitStatus(cmd, err)
		}
	}
}

// exitStatus follows the shell: 128 + signal for a killed command.
func exitStatus(cmd *exec.Cmd, err error) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	if wait, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}
