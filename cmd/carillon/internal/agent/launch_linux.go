package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// launchFD is where a launcher reads the order.
const launchFD = 3

// Exit codes of a launcher that did not become the interpreter, as shells have them.
const exitNotStarted = 126

// launch takes on the limits and becomes the interpreter. What goes wrong goes
// to standard error, which is the run's log.
func launch() int {
	syscall.CloseOnExec(launchFD)
	pipe := os.NewFile(launchFD, "order")
	line, err := io.ReadAll(pipe)
	if err == nil {
		var o order
		if err = json.Unmarshal(line, &o); err == nil {
			err = o.become()
		}
	}
	fmt.Fprintln(os.Stderr, "carillon: the script could not be started:", err)
	return exitNotStarted
}

// become returns only with an error.
func (o *order) become() error {
	if err := os.Chdir(o.Dir); err != nil {
		return err
	}
	syscall.Umask(0o077)
	// Programs with the set-user-id bit, such as sudo, give no rights here.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := o.Limits.apply(); err != nil {
		return err
	}
	if err := closeOthers(); err != nil {
		return err
	}
	return syscall.Exec(o.Path, o.Args, o.Env)
}

// closeOthers keeps all but the standard files from the interpreter, also
// those that somebody left open for us.
func closeOthers() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	open, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	for _, file := range open {
		if fd, bad := strconv.Atoi(file.Name()); bad == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return err
}

// apply sets the limits of this process. That of processes comes last: this
// one has threads, which count too.
func (l *Limits) apply() error {
	for _, limit := range []struct {
		name     string
		resource int
		soft     int64
		more     int64 // of the hard limit
	}{
		{"core", unix.RLIMIT_CORE, -1, 0},
		// SIGXCPU first, and SIGKILL for who does not listen.
		{"cpu", unix.RLIMIT_CPU, int64((l.CPU + time.Second - 1) / time.Second), 2},
		{"files", unix.RLIMIT_NOFILE, l.Files, 0},
		{"file size", unix.RLIMIT_FSIZE, l.FileSize, 0},
		{"memory", unix.RLIMIT_DATA, l.Memory, 0},
		{"processes", unix.RLIMIT_NPROC, l.Processes, 0},
	} {
		if limit.soft == 0 {
			continue
		}
		soft := uint64(max(limit.soft, 0))
		err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: soft, Max: soft + uint64(limit.more)})
		if err != nil {
			return fmt.Errorf("limit of %s: %w", limit.name, err)
		}
	}
	return nil
}
