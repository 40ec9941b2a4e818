//go:build !linux || !(amd64 || arm64)

package direct

import "net"

// Conn returns conn.
func Conn(conn net.Conn) net.Conn { return conn }

// Pooled returns conn.
func Pooled(conn net.Conn) net.Conn { return conn }
