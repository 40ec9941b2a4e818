package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
	"github.com/carillon-sched/carillon/tools/faults/netns"
)

// cluster is a database of three servers, each in a network namespace of its own,
// behind one endpoint that leads to the writer.
type cluster struct {
	*testenv.Cluster
	net  *netns.Net
	path *proxy.Proxy

	mu       sync.Mutex
	writer   int // guarded by mu
	switches int // guarded by mu

	stop context.CancelFunc
	done chan struct{}
}

// The networks that a member has: one for clients, one for the other members.
const (
	clientNet = 0
	groupNet  = 1
)

// newCluster starts the servers, and what follows their writer.
func (s *stage) newCluster(product testenv.Product) (*cluster, error) {
	const size = 3
	net, err := netns.New(2, size)
	var no *netns.Unable
	if errors.As(err, &no) {
		return nil, &unableError{no.Error()}
	}
	if err != nil {
		return nil, err
	}
	s.defers(net.Close)
	servers, err := testenv.NewCluster(testenv.ClusterOptions{
		Product: product, Size: size, Dir: s.set.serverDir(), Args: []string{"--innodb-log-file-size=128M"},
		Place: func(i int) testenv.Place {
			return testenv.Place{Host: net.Inside(i, clientNet), Group: net.Inside(i, groupNet), Space: net.Space(i)}
		},
	})
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: servers, net: net, done: make(chan struct{})}
	if c.path, err = proxy.New(servers.Members()[0].Addr(), proxy.Options{}); err != nil {
		return nil, errors.Join(err, servers.Close())
	}
	s.defers(c.path.Close)
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	go c.follow(ctx) // Close waits for it
	return c, nil
}

// Close ends the servers.
func (c *cluster) Close() error {
	c.stop()
	<-c.done
	return c.Cluster.Close()
}

// DSN is that of the endpoint.
func (c *cluster) DSN() string {
	config, err := mysql.ParseDSN(c.Members()[0].DSN())
	if err != nil {
		panic(err) // our own
	}
	config.Addr = c.path.Addr()
	return config.FormatDSN()
}

// Addr is where admin nodes connect.
func (c *cluster) Addr() string { return c.path.Addr() }

// Version is that of its members.
func (c *cluster) Version() (string, error) {
	version, err := c.Members()[0].Version()
	return fmt.Sprintf("%s, three servers", version), err
}

// Writer is the member that the endpoint leads to.
func (c *cluster) Writer() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writer
}

// Times of the endpoint, as load balancers have them.
const (
	checkEvery = 200 * time.Millisecond
	checkLimit = time.Second
	// checkFails is how often a writer does not answer until another one is looked for.
	checkFails = 2
)

// follow does what HAProxy, ProxySQL and MySQL Router do: it asks the writer whether
// it is one, and leads to another member, and resets all connections, when it is not
// or does not answer. It never goes back by itself.
func (c *cluster) follow(ctx context.Context) {
	defer close(c.done)
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	fails := 0
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		writer := c.Writer()
		is, err := c.check(ctx, writer)
		switch {
		case is:
			fails = 0
			continue
		case err != nil && !refused(err):
			if fails++; fails < checkFails {
				continue
			}
		}
		if next := c.another(ctx, writer); next >= 0 {
			fails = 0
			c.mu.Lock()
			c.writer, c.switches = next, c.switches+1
			c.mu.Unlock()
			c.path.Follow(c.Members()[next].Addr())
			say("the endpoint leads to member %d", next+1)
		}
	}
}

// refused: a server that has ended says so at once.
func refused(err error) bool {
	var timeout interface{ Timeout() bool }
	return !errors.Is(err, context.DeadlineExceeded) && !(errors.As(err, &timeout) && timeout.Timeout())
}

func (c *cluster) check(ctx context.Context, i int) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	m, err := c.Look(ctx, i)
	return err == nil && m.Writer, err
}

// another is the first of the other members that takes writes; -1 = none.
func (c *cluster) another(ctx context.Context, writer int) int {
	n := len(c.Members())
	is := make([]bool, n)
	var wait sync.WaitGroup
	for i := range n {
		if i != writer {
			wait.Go(func() { is[i], _ = c.check(ctx, i) }) // who does not answer is none
		}
	}
	wait.Wait()
	for i := range n {
		if is[i] {
			return i
		}
	}
	return -1
}

// cut takes member i off one or both networks.
func (c *cluster) cut(i int, nets ...int) (heal func() error, err error) {
	for _, b := range nets {
		err = errors.Join(err, c.net.Pull(i, b))
	}
	return func() (err error) {
		for _, b := range nets {
			err = errors.Join(err, c.net.Plug(i, b))
		}
		return errors.Join(err, c.Rejoin(i))
	}, err
}
