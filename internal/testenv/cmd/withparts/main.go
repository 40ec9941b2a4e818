// Command withparts runs a command with the servers that tests need:
//
//	go run ./internal/testenv/cmd/withparts -- go test ./...
//
// It starts one private MariaDB for all test packages together and names it
// in CARILLON_TEST_MYSQL_DSN, unless that variable is set already. It ends
// with the command, and with its exit status.
//
//	withparts -name CARILLON_MYSQL -mariadb --innodb-buffer-pool-size=2G -- carillon bench
//
// -name names the server in another variable instead, and -mariadb adds an
// argument for mariadbd.
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
	var server []string
	flag.Func("mariadb", "argument for mariadbd, may be given again", func(arg string) error {
		server = append(server, arg)
		return nil
	})
	flag.Parse() // stops at -- or at the command
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: withparts [-name VARIABLE] [-mariadb ARGUMENT ...] [--] command [argument ...]")
		os.Exit(2)
	}
	status, err := run(*variable, server, flag.Args())
	if err != nil {
		fmt.Fprintf(os.Stderr, "withparts: %v\n", err)
	}
	os.Exit(status)
}

// run returns the command's exit status; 1 for an error of our own.
func run(variable string, extra, args []string) (status int, err error) {
	if os.Getenv(variable) == "" {
		server, err := testenv.NewMariaDB(extra...)
		if err != nil {
			return 1, err
		}
		defer func() {
			if closeErr := server.Close(); closeErr != nil {
				status, err = max(status, 1), errors.Join(err, closeErr)
			}
		}()
		if err := os.Setenv(variable, server.DSN()); err != nil {
			return 1, err
		}
	}
	return runCommand(args)
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
