//go:build !linux

package gateway

import "syscall"

// setUserTimeout does nothing where the system has no such option: yamux's
// pings and the heartbeats notice a dead path as well.
func setUserTimeout(syscall.RawConn) error { return nil }
