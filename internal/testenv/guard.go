package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// homePrefix begins the name of every server's directory.
const homePrefix = "carillon-database-"

// guardScript waits for the end of file on descriptor 3, whose other end the
// test process holds, then ends the server of the directory $0 with its process
// group, waits until it is gone and removes the directory. The pid is checked
// against the command line, which names the directory and which a zombie has not:
// a stale pid file must not cost a stranger its life. $0/signal names another signal
// than KILL.
const guardScript = `
read -r _ <&3
pid=$(cat "$0/pid" 2>/dev/null)
serves() { grep -qaF -e "$0" "/proc/$pid/cmdline" 2>/dev/null; }
if [ -n "$pid" ] && serves; then
	kill "-$(cat "$0/signal" 2>/dev/null || echo KILL)" "-$pid" "$pid" # without --, which dash does not know
	while serves; do sleep 0.02; done
fi
rm -rf "$0"
`

// launchScript writes its own pid to $0/pid and then becomes the server: the
// pid file is there before the server is, so the guard can miss nothing.
const launchScript = `echo $$ >"$0/pid" && exec "$@"`

// A guard is a small shell process that outlives the test process for as long
// as it takes to tidy up. Parent-death signals (PR_SET_PDEATHSIG) would do
// half of it: they follow a thread, so Go needs a goroutine locked to one for
// as long as the server runs, which every leak check would report, and they
// leave the directory behind.
type guard struct {
	life *os.File  // write end of the pipe; nothing is ever written to it
	cmd  *exec.Cmd // the shell; it holds the flock on the home's lock file
}

// startGuard begins to watch over home, a directory that exists.
func startGuard(home string) (*guard, error) {
	lock, err := os.OpenFile(filepath.Join(home, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer lock.Close() // the guard's own copy keeps the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", home, err)
	}
	watched, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer watched.Close()
	cmd := guardCommand(home, watched)
	cmd.ExtraFiles = append(cmd.ExtraFiles, lock)
	if err := cmd.Start(); err != nil {
		life.Close()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	return &guard{life: life, cmd: cmd}, nil
}

// guardCommand prepares the script with descriptor 3 = watched. It gets a
// session of its own, so that Ctrl-C ends the tests and not their guard, and
// none of our output files, so that `go test` does not wait for it.
func guardCommand(home string, watched *os.File) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-c", guardScript, home)
	cmd.ExtraFiles = []*os.File{watched}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// release tells the guard that its time has come, and waits until the server
// is ended and the directory removed.
func (g *guard) release() error {
	if err := g.life.Close(); err != nil {
		return fmt.Errorf("release guard: %w", err)
	}
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("wait for guard: %w", err)
	}
	return nil
}

// sweep removes what is left of servers whose guard was killed too. It tells
// them by the lock that a living guard holds. Directories younger than grace
// may be just about to be locked and are left alone. Errors are ignored: a
// directory of another user is none of our business.
func sweep(tempDir string, grace time.Duration) {
	homes, _ := filepath.Glob(filepath.Join(tempDir, homePrefix+"*"))
	for _, home := range homes {
		info, err := os.Stat(home)
		if err != nil || time.Since(info.ModTime()) < grace || guarded(home) {
			continue
		}
		nothing, err := os.Open(os.DevNull) // at its end from the beginning
		if err != nil {
			continue
		}
		_ = guardCommand(home, nothing).Run()
		nothing.Close()
	}
}

// guarded reports whether a guard holds the lock of home.
func guarded(home string) bool {
	lock, err := os.Open(filepath.Join(home, "lock"))
	if err != nil {
		return false
	}
	defer lock.Close()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
