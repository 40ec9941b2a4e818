//go:build linux && (amd64 || arm64) && race

package direct

import (
	"errors"
	"syscall"
)

// The race detector takes what is sent to happen before what is received by the
// calls of package syscall.

func read(fd uintptr, p []byte) (int, syscall.Errno) { return repeat(syscall.Read, fd, p) }

func write(fd uintptr, p []byte) (int, syscall.Errno) { return repeat(syscall.Write, fd, p) }

func repeat(call func(fd int, p []byte) (int, error), fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, err := call(int(fd), p)
		if err == nil {
			return n, 0
		}
		errno := syscall.EINVAL
		if errors.As(err, &errno); errno != syscall.EINTR {
			return 0, errno
		}
	}
}
