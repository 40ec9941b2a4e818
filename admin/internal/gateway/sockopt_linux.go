package gateway

import (
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, which package syscall
// lacks. Its value is in milliseconds.
const tcpUserTimeout = 18

// setUserTimeout bounds how long sent bytes may stay unacknowledged by the
// peer's kernel. Without it Linux retransmits for a quarter of an hour.
func setUserTimeout(c syscall.RawConn, d time.Duration) error {
	var err error
	if controlErr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	}); controlErr != nil {
		return controlErr
	}
	return err
}
