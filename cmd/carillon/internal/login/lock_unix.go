//go:build unix

package login

import (
	"os"
	"syscall"
)

// lockFile waits for the exclusive lock of f. It ends when f is closed, also
// by the death of the process.
func lockFile(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			return err
		}
	}
}
