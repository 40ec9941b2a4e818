package testenv

import (
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
)

// Peer plays a server, which may be hostile, for each connection until the test ends.
// play ends when its connection is closed.
func Peer(tb testing.TB, play func(net.Conn)) *net.TCPAddr {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("peer for tests: %v", err)
	}
	var work sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn // guarded by mu
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			work.Go(func() { defer conn.Close(); play(conn) })
		}
	})
	tb.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		work.Wait()
	})
	return listener.Addr().(*net.TCPAddr)
}

// Endless is more than a connection carries.
const Endless = 1 << 40

// Speak sends a text so many times, or until the connection ends, and then listens.
func Speak(conn net.Conn, text string, times int) {
	raw := []byte(text) // once: what a peer allocates counts too
	for range times {
		if _, err := conn.Write(raw); err != nil {
			return
		}
	}
	_, _ = io.Copy(io.Discard, conn)
}

// MostForAPeer is what a hostile peer may cost, in bytes.
const MostForAPeer = 16 << 20

// Allocated returns the bytes that the process allocates while f runs. Those that it
// gives back count too.
func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
