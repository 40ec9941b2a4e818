package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api"
)

// stopRequests is how long requests under way may still take when the node stops.
const stopRequests = 5 * time.Second

// port is the listener of UI and API while it serves.
type port struct {
	server   *http.Server
	handler  atomic.Pointer[http.Handler] // until open: that of a node that starts
	reason   atomic.Pointer[string]       // why it does not serve yet
	ended    chan struct{}                // closed when it serves no more
	err      error                        // of serving; read after ended
	deadline time.Time                    // when requests are broken off; set by refuse
}

// startFront begins to answer probes; UI, API and metrics follow with open.
func (a *Admin) startFront() *port {
	p := &port{ended: make(chan struct{})}
	starting := api.Starting(func() string { return *p.reason.Load() })
	p.handler.Store(&starting)
	p.starts("it has not reached its database yet")
	p.server = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*p.handler.Load()).ServeHTTP(w, r) }),
		ReadHeaderTimeout: 5 * time.Second, // and what the API adds
	}
	api.ServerTimeouts(p.server)
	go func() { // ends with stop, which Run and Close call
		defer close(p.ended)
		if err := p.server.Serve(a.httpListener); !errors.Is(err, http.ErrServerClosed) {
			p.err = fmt.Errorf("serve UI and API: %w", err)
		}
	}()
	return p
}

// starts says why the node does not serve yet.
func (p *port) starts(reason string) { p.reason.Store(&reason) }

// open begins to serve all.
func (p *port) open(handler http.Handler) { p.handler.Store(&handler) }

// refuse starts the time that requests under way have; new ones are refused by
// the API itself.
func (p *port) refuse() { p.deadline = time.Now().Add(stopRequests) }

// stop waits for requests until the deadline, breaks off the rest (long polls
// and the like) and closes the listener.
func (p *port) stop() error {
	ctx, cancel := context.WithDeadline(context.Background(), p.deadline)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close()
	}
	<-p.ended
	return p.err
}
