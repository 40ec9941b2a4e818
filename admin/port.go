package admin

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

// port is a listener, of UI and API or of metrics alone, while it serves.
type port struct {
	server   *http.Server
	handler  atomic.Pointer[http.Handler] // until open: that of a node that starts
	reason   *atomic.Pointer[string]      // why the front does not serve yet
	ended    chan struct{}                // closed when it serves no more
	err      error                        // of serving; read after ended
	deadline time.Time                    // when requests are broken off; set by refuse
}

// startFront begins to answer probes; UI, API and metrics follow with open.
func (a *Admin) startFront() *port {
	reason := &atomic.Pointer[string]{}
	starting := web.Starting(func() string { return *reason.Load() })
	p := &port{reason: reason}
	p.starts("it has not reached its database yet")
	p.serve(a.httpListener, a.httpConns, "UI and API", a.config.path(), starting)
	return p
}

// current answers with the handler of the moment.
func (p *port) current(w http.ResponseWriter, r *http.Request) { (*p.handler.Load()).ServeHTTP(w, r) }

// serve begins to answer with a handler, which open replaces. Requests may come with the
// path.
func (p *port) serve(l net.Listener, in *httpconn.Limiter, what, path string, handler http.Handler) {
	p.ended = make(chan struct{})
	p.handler.Store(&handler)
	p.server = &http.Server{
		Handler:           http.HandlerFunc(p.current),
		ReadHeaderTimeout: 5 * time.Second, // and what the API adds
	}
	web.ServerTimeouts(p.server)
	in.Serve(p.server, web.Probes(), web.Overloaded)
	p.server.Handler = web.Below(path, p.server.Handler)
	go func() { // ends with stop, which Run and Close call
		defer close(p.ended)
		if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.err = fmt.Errorf("serve %s: %w", what, err)
		}
	}()
}

// Handler serves what the node's own HTTP port serves, for an application that has the
// node in its process and mounts it on its own server. It takes requests with the path of
// Config.BaseURL, and without it. The limits and timeouts of connections are those of that
// server. It answers 503 until the node serves.
func (a *Admin) Handler() http.Handler {
	return web.Below(a.config.path(), http.HandlerFunc(a.front.current))
}

// notYet answers scrapes of a node that has not reached its database.
func notYet(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "the node starts", http.StatusServiceUnavailable)
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
