//go:build linux && (amd64 || arm64) && !race

package direct

import (
	"syscall"
	"unsafe"
)

func read(fd uintptr, p []byte) (int, syscall.Errno) { return call(syscall.SYS_READ, fd, p) }

func write(fd uintptr, p []byte) (int, syscall.Errno) { return call(syscall.SYS_WRITE, fd, p) }

// call repeats a system call until no signal interrupts it. p is not empty.
func call(trap, fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		//nolint:gosec // G103: p is alive until the call returns, as package syscall documents
		n, _, errno := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
