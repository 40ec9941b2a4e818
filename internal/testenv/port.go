package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below Linux's ephemeral range (32768 up), so that no
// outgoing connection of another test can sit on the port while a killed
// server is down and wants it back.
const (
	firstPort = 20000
	portCount = 12000
)

// freePort returns a TCP port of 127.0.0.1 that nobody listens on. Somebody
// else may take it before the caller does: whoever starts a server on it
// tries again with another one.
func freePort() (int, error) {
	const tries = 100
	var last error
	for range tries {
		port := firstPort + rand.IntN(portCount)
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("no free port after %d tries: %w", tries, last)
}
