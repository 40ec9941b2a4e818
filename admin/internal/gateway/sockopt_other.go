//go:build !linux

package gateway

import (
	"syscall"
	"time"
)

// setUserTimeout does nothing where the system has no such option: yamux's
// pings and the heartbeats notice a dead path as well.
func setUserTimeout(syscall.RawConn, time.Duration) error { return nil }
