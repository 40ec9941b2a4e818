package lab

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below Linux's ephemeral range (32768 up), so that no
// outgoing connection can sit on the port while a killed node is down.
const (
	firstPort = 20000
	portCount = 12000
)

// FreeAddress returns 127.0.0.1 with a port that nobody listens on now.
func FreeAddress() (string, error) {
	var last error
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(portCount)))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			last = err
			continue
		}
		return address, listener.Close()
	}
	return "", fmt.Errorf("find a free port: %w", last)
}
