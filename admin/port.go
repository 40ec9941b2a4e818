package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// stopRequests is how long requests under way may still take when the node stops.
const stopRequests = 5 * time.Second

// port is the listener of UI and API while it serves.
type port struct {
	server   *http.Server
	ended    chan struct{} // closed when it serves no more
	err      error         // of serving; read after ended
	deadline time.Time     // when requests are broken off; set by refuse
}

// startFront begins to serve UI, API, probes and metrics.
func (a *Admin) startFront() *port {
	p := &port{server: a.http, ended: make(chan struct{})}
	go func() { // ends with stop, which Run calls in any case
		defer close(p.ended)
		if err := a.http.Serve(a.httpListener); !errors.Is(err, http.ErrServerClosed) {
			p.err = fmt.Errorf("serve UI and API: %w", err)
		}
	}()
	return p
}

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
