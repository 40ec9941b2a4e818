// Package profile answers: who may look into the memory of this process?
package profile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/carillon-sched/carillon/internal/egress"
)

// Serve serves net/http/pprof of this process at address until ctx ends. Profiles tell about
// everything in memory, and a caller can slow the process down. So it takes only loopback
// addresses.
func Serve(ctx context.Context, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address for profiles: %w", err)
	}
	if !egress.Loopback(host) {
		return fmt.Errorf("address for profiles: %s can be reached from outside; use 127.0.0.1", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("open the port for profiles: %w", err)
	}
	mux := http.NewServeMux() // never http.DefaultServeMux: what imports add to it is not ours to publish
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // nothing waits for a profile under way
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve profiles: %w", err)
	}
	return nil
}
