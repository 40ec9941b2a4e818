// Package front answers: what does a node say on its HTTP ports from its first moment on?
//
// A Port answers probes while the node starts, then all requests, and it ends requests in
// order when the node stops. Readiness says whether balancers should send requests here.
package front

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/httpconn"
)

// stopRequests is how long requests under way may still take when the node stops.
const stopRequests = 5 * time.Second

// Options of Serve.
type Options struct {
	Listener net.Listener
	Limiter  *httpconn.Limiter // of the connections
	What     string            // is served there, for errors
	Path     string            // requests may come with it (web.Below)
}

// Port is a listener while it serves. A nil Port is one that the node does not have.
type Port struct {
	server   *http.Server
	handler  atomic.Pointer[http.Handler] // until Open: that of a node that starts
	reason   atomic.Pointer[string]       // why the node does not serve yet
	ended    chan struct{}                // closed when it serves no more
	err      error                        // of serving; read after ended
	deadline time.Time                    // when requests are broken off; set by Refuse
}

// Serve begins to answer probes, and all else with the reason why the node starts. Open
// replaces that.
func Serve(o Options) *Port {
	p := &Port{ended: make(chan struct{})}
	p.Starts("it has not reached its database yet")
	p.Open(web.Starting(func() string { return *p.reason.Load() }))
	p.server = &http.Server{
		Handler:           http.HandlerFunc(p.ServeHTTP),
		ReadHeaderTimeout: 5 * time.Second, // and what the API adds
	}
	web.ServerTimeouts(p.server)
	o.Limiter.Serve(p.server, web.Probes(), web.Overloaded)
	p.server.Handler = web.Below(o.Path, p.server.Handler)
	go func() { // ends with Stop
		defer close(p.ended)
		if err := p.server.Serve(o.Listener); !errors.Is(err, http.ErrServerClosed) {
			p.err = fmt.Errorf("serve %s: %w", o.What, err)
		}
	}()
	return p
}

// ServeHTTP answers with the handler of the moment.
func (p *Port) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*p.handler.Load()).ServeHTTP(w, r)
}

// Starts says why the node does not serve yet.
func (p *Port) Starts(reason string) { p.reason.Store(&reason) }

// Open begins to serve all.
func (p *Port) Open(handler http.Handler) {
	if p != nil {
		p.handler.Store(&handler)
	}
}

// Ended is closed when the port serves no more. Err says why then.
func (p *Port) Ended() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.ended
}

// Err is the error of serving, after Ended.
func (p *Port) Err() error { return p.err }

// Refuse starts the time that requests under way have; new ones are refused by
// the API itself.
func (p *Port) Refuse() {
	if p != nil {
		p.deadline = time.Now().Add(stopRequests)
	}
}

// Stop waits for requests until the deadline, breaks off the rest (long polls
// and the like) and closes the listener.
func (p *Port) Stop() error {
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.Background(), p.deadline)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close()
	}
	<-p.ended
	return p.err
}
