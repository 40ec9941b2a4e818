package testenv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// EnvCluster names the environment variable that is set when the server that was
// lent (EnvMySQLDSN) takes the writes of a cluster of three.
const EnvCluster = "CARILLON_TEST_MYSQL_CLUSTER"

// joinLimit is how long a member may take to be one; copying the data of
// another one is part of it.
const joinLimit = 90 * time.Second

// Cluster is some servers that have each other's commits before they answer them:
// Galera of MariaDB, Group Replication of MySQL. All members are there after
// NewCluster; any of them may be killed, frozen and started again.
type Cluster struct {
	product Product
	members []*Server // fixed after construction
	group   []string  // their addresses for each other; then with the port
	kind    clusterKind
}

// ClusterOptions say what NewCluster starts.
type ClusterOptions struct {
	Product Product // empty = Chosen()
	Size    int     // 0 = 3
	Dir     string  // as in Options
	Args    []string
	// Place says where member i is; nil = all are at 127.0.0.1.
	Place func(i int) Place
}

// Place is where a member is: its address for clients, that for other members, and
// the network namespace that has both.
type Place struct{ Host, Group, Space string }

// Member is what a server says about its cluster.
type Member struct {
	// Usable: it is part of the majority and has what the others have.
	Usable bool
	// Writer: it takes writes. Of Galera all do.
	Writer bool
	// State and Size are what it calls itself, and how many members it knows.
	State string
	Size  int
}

// clusterKind is how a product makes a cluster.
type clusterKind interface {
	// place gives member i its arguments, before anything has started; host is its
	// address for other members.
	place(c *Cluster, i int, host string) error
	// first starts member i for the first time: 0 begins the cluster, the others join.
	first(c *Cluster, i int) error
	// again starts a member that was one.
	again(s *Server) error
	// look asks a member.
	look(ctx context.Context, db *sql.DB) (Member, error)
}

// NewCluster starts the members one after the other; it takes 15 to 30 s.
func NewCluster(o ClusterOptions) (c *Cluster, err error) {
	if o.Product == "" {
		o.Product = Chosen()
	}
	if o.Size == 0 {
		o.Size = 3
	}
	c = &Cluster{product: o.Product}
	defer func() {
		if err != nil {
			err, c = errors.Join(err, c.Close()), nil
		}
	}()
	switch o.Product {
	case MariaDB:
		c.kind, err = newGalera()
	case MySQL:
		c.kind = &groupReplication{name: newUUID()}
	default:
		err = fmt.Errorf("there is no cluster of %q", o.Product)
	}
	if err != nil {
		return c, err
	}
	if err := c.prepare(o); err != nil {
		return c, err
	}
	for i := range c.members {
		if err := c.kind.first(c, i); err != nil {
			return c, fmt.Errorf("start member %d: %w", i+1, err)
		}
		for k := range i + 1 { // who sends its data to others is not usable meanwhile
			if err := c.waitUsable(k); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

func (c *Cluster) prepare(o ClusterOptions) error {
	for i := range o.Size {
		one := Options{Product: o.Product, Dir: o.Dir, Args: append([]string{"--innodb-buffer-pool-size=128M"}, o.Args...)}
		at := Place{Host: "127.0.0.1", Group: "127.0.0.1"}
		if o.Place != nil {
			at = o.Place(i)
		}
		one.Host, one.Space = at.Host, at.Space
		s, err := prepareServer(one)
		if err != nil {
			return err
		}
		c.group = append(c.group, at.Group)
		c.members = append(c.members, s)
		s.password = c.members[0].password // they copy the user from each other
		if s.port, err = freePort(); err != nil {
			return err
		}
	}
	hosts := slices.Clone(c.group)
	for i, host := range hosts {
		port, err := freePort()
		if err != nil {
			return err
		}
		c.group[i] = at(host, port)
	}
	for i := range c.members {
		if err := c.kind.place(c, i, hosts[i]); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a member for the first time, with arguments of that start only.
// Later starts create no user: that would be a write of a member's own.
func (s *Server) begin(args ...string) error {
	usual := s.extra
	s.extra = append(append([]string{}, usual...), args...)
	err := s.Start()
	s.extra = usual
	return errors.Join(err, s.dropInit())
}

func (s *Server) dropInit() error {
	err := os.Remove(filepath.Join(s.home, "init.sql"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Members are the servers, in the order of their numbers.
func (c *Cluster) Members() []*Server { return c.members }

// Start starts a member again after Kill or Stop, and returns when it is one.
func (c *Cluster) Start(i int) error {
	if err := c.kind.again(c.members[i]); err != nil {
		return err
	}
	return c.waitUsable(i)
}

// Rejoin makes a member that runs one again, if the others have excluded it: what
// an operator does after its network was away.
func (c *Cluster) Rejoin(i int) error {
	if g, ok := c.kind.(*groupReplication); ok {
		if err := g.rejoin(c.members[i]); err != nil {
			return err
		}
	}
	return c.waitUsable(i)
}

// HandOver makes another member the one that takes writes, as an operator does
// before he stops i. Of Galera all take writes: there is nothing to do.
func (c *Cluster) HandOver(i int) error {
	if g, ok := c.kind.(*groupReplication); ok {
		return g.handOver(c.members[i], c.members[(i+1)%len(c.members)])
	}
	return nil
}

// Look asks member i; an error is one that does not answer.
func (c *Cluster) Look(ctx context.Context, i int) (m Member, err error) {
	err = withServer(c.members[i].config(), func(db *sql.DB) error {
		m, err = c.kind.look(ctx, db)
		return err
	})
	return m, err
}

func (c *Cluster) waitUsable(i int) error {
	ctx, cancel := context.WithTimeout(context.Background(), joinLimit)
	defer cancel()
	tick := time.NewTicker(5 * pingInterval)
	defer tick.Stop()
	for {
		m, err := c.Look(ctx, i)
		if err == nil && m.Usable {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("member %d is no member after %v (%+v, %w); its log ends with:\n%s",
				i+1, joinLimit, m, err, logTail(c.members[i].logPath()))
		}
	}
}

// Close ends all members for good.
func (c *Cluster) Close() error {
	var wait sync.WaitGroup
	errs := make([]error, len(c.members))
	for i, s := range c.members {
		wait.Go(func() { errs[i] = s.Close() })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// PrivateCluster starts a cluster for this test alone.
func PrivateCluster(tb testing.TB, o ClusterOptions) *Cluster {
	tb.Helper()
	c, err := NewCluster(o)
	if err != nil {
		tb.Fatalf("cluster of database servers: %v", err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Errorf("close cluster: %v", err)
		}
	})
	return c
}

func at(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
