package doctor

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// Port looks whether a node can listen on the address. When somebody does
// already, holder says who; nil = nobody can be asked.
func Port(ctx context.Context, address string, holder func(context.Context) Result) Result {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		if err := listener.Close(); err != nil {
			return Warn("port_close", "See the system's log.", "%s: %v", address, err)
		}
		return Passed("%s is free", address)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && holder != nil:
		return holder(ctx)
	case errors.Is(err, syscall.EADDRINUSE):
		return Warn("port_in_use", "If that is no Carillon node, end it or choose another port.", "somebody listens on %s", address)
	case errors.Is(err, syscall.EACCES):
		return Fail("port_not_allowed", "Take a port from 1024 on, or allow it (systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE).",
			"this user may not listen on %s", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return Fail("address_not_here", "Give an address of this machine, or none before the colon for all of them.", "this machine has no address %s", address)
	default:
		return Fail("port_unusable", "Give host:port with an address of this machine.", "%v", err)
	}
}
