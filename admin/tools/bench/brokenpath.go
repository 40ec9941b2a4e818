package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// breaks is how often each kind of break is measured.
const breaks = 5

// brokenPaths measures how soon a node notices that an executor is gone: by a
// path that is silent (half-open), and by one that is reset. Gateway and path
// run in this process, so that the instants are exact; the executor is the SDK
// in a process of its own.
func (b *bench) brokenPaths() (parts []part) {
	for _, p := range []struct {
		variant string
		usual   time.Duration
		cut     func(*path)
	}{
		{variantHalfOpen, breaks * 12 * time.Second, (*path).silence},
		{variantReset, breaks * 2 * time.Second, (*path).reset},
	} {
		parts = append(parts, part{
			result: Result{Scenario: "sessions", Variant: p.variant}, usual: p.usual,
			run: func(ctx context.Context, r *Result) error { return b.measureBreaks(ctx, p.cut, r) },
		})
	}
	return parts
}

const (
	variantHalfOpen = "a peer that is silent, noticed"
	variantReset    = "a peer that is reset, noticed"
)

func (b *bench) measureBreaks(ctx context.Context, cut func(*path), r *Result) (err error) {
	way := &path{}
	defer way.close()
	w, err := b.openWire(ctx, way.open)
	if err != nil {
		return err
	}
	defer func() { err = joinClose(err, w.close) }()
	var took []float64
	for i := range breaks {
		// Each break comes at another moment between two heartbeats.
		if err := pause(ctx, time.Second+time.Duration(i)*700*time.Millisecond); err != nil {
			return err
		}
		began := time.Now()
		cut(way)
		select {
		case at := <-w.left:
			took = append(took, millisOf(at.Sub(began)))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		way.heal()
		select {
		case <-w.joined:
		case <-time.After(time.Minute):
			return fmt.Errorf("the executor did not come back")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.Elapsed = spreadOf(took)
	return nil
}

// path forwards connections to one address, and breaks when it is told to. It
// is safe for concurrent use.
type path struct {
	upstream string
	listener net.Listener
	wait     sync.WaitGroup

	mu    sync.Mutex
	ends  map[*net.TCPConn]bool // guarded by mu: both of each connection
	quiet sync.Cond             // bytes pass again
	still bool                  // guarded by mu: no byte passes
}

// open listens, and returns what leads to upstream.
func (p *path) open(upstream string) (address string, err error) {
	p.upstream, p.ends, p.quiet.L = upstream, map[*net.TCPConn]bool{}, &p.mu
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return "", err
	}
	p.wait.Go(func() {
		for {
			conn, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.wait.Go(func() { p.serve(conn.(*net.TCPConn)) })
		}
	})
	return p.listener.Addr().String(), nil
}

func (p *path) serve(client *net.TCPConn) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), "tcp", p.upstream)
	if err != nil {
		_ = client.Close()
		return
	}
	server := conn.(*net.TCPConn)
	p.mu.Lock()
	p.ends[client], p.ends[server] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(gated{p, way[1]}, way[0])
			_ = client.Close()
			_ = server.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	delete(p.ends, client)
	delete(p.ends, server)
	p.mu.Unlock()
}

// gated passes bytes on while the path is whole.
type gated struct {
	p *path
	w *net.TCPConn
}

func (g gated) Write(b []byte) (int, error) {
	g.p.mu.Lock()
	for g.p.still {
		g.p.quiet.Wait()
	}
	g.p.mu.Unlock()
	return g.w.Write(b)
}

// silence lets no byte pass, and ends nothing.
func (p *path) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.still = true
}

// reset ends all connections with RST.
func (p *path) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.ends {
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
}

// heal makes the path whole; connections from before are reset.
func (p *path) heal() {
	p.reset()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.still = false
	p.quiet.Broadcast()
}

func (p *path) close() {
	if p.listener == nil {
		return
	}
	_ = p.listener.Close()
	p.heal()
	p.wait.Wait()
}
