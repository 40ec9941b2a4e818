package gateway

import (
	"net"
	"sync"
	"time"
)

// RefuseAll ends connections of executors at once, so that they try the next node, until the
// returned function is called. A node that starts does so until it has its database.
func RefuseAll(listener *net.TCPListener) (stop func()) {
	var wg sync.WaitGroup
	wg.Go(func() { // ends with stop
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // nothing was said on it
		}
	})
	return func() {
		_ = listener.SetDeadline(time.Now()) // fails on a closed listener only
		wg.Wait()
		_ = listener.SetDeadline(time.Time{})
	}
}
