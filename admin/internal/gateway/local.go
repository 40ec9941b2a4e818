package gateway

import (
	"context"
	"net"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// An executor in this process is a session like any other, but for the way of its
// bytes, which is memory, and for who it is, which whoever opens the connection
// knows (docs/adr/0070): it shows no join token, and needs no certificate. It has
// this node alone, and says nothing about whether others can reach the node.

// localConn is the gateway's end of a connection from this process.
type localConn struct {
	net.Conn
	tenant   domain.TenantID
	executor domain.ExecutorID
}

// DialLocal opens a connection from this process for one executor of a tenant. It
// fails when ctx ends before the gateway has taken it.
func (g *Gateway) DialLocal(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case g.locals <- &localConn{there, tenant, executor}:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// acceptLocal takes connections from this process until ctx ends.
func (g *Gateway) acceptLocal(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case conn := <-g.locals:
			who := g.admission.connect(addressOf(conn.RemoteAddr()), conn)
			if who == nil {
				_ = conn.Close() // it tries again
				continue
			}
			g.tasks.spawn(func() error { return g.serveConn(ctx, conn, who) })
		}
	}
}

// prove is the identity that a local connection was opened for; false: it is none.
func (c *localConn) prove(p *peer) (domain.ExecutorIdentity, bool) {
	if c == nil {
		return domain.ExecutorIdentity{}, false
	}
	return domain.ExecutorIdentity{Tenant: c.tenant, Executor: c.executor, BootID: p.hello.BootId, NoJobs: true}, true
}
