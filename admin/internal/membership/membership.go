// Package membership answers: which nodes are in the cluster?
//
// Each node writes a sign of life once a second, and reads those of the other nodes.
package membership

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

const (
	// beatEvery bounds how late others hear that executors have come or gone.
	beatEvery = time.Second
	// leaveTime bounds how long the node takes to leave the list.
	leaveTime = 2 * time.Second
	// TTL is how long a silent node stays on the list. Nothing depends on
	// it but the list that executors get, and the reuse of node numbers, for
	// which it has to exceed the longest pause of a process that goes on.
	TTL = 30 * time.Second
)

// Store is what a member asks of the database.
type Store interface {
	HeartbeatNode(ctx context.Context, n domain.Node, ttl time.Duration) (now time.Time, live []domain.Node, err error)
	RemoveNode(ctx context.Context, id domain.NodeID, bootID string) error
}

// Member keeps this node on the list and knows the others.
type Member struct {
	// fixed after construction
	domain.Node // as registered
	store       Store
	log         *slog.Logger
	changed     func([]domain.Node)
	beatNow     chan struct{} // capacity 1; it is never closed

	mu   sync.Mutex
	live []domain.Node // guarded by mu
}

// New returns the member of a node that was registered. changed is called with the new list
// when nodes came or went.
func New(s Store, self domain.Node, changed func([]domain.Node), log *slog.Logger) *Member {
	return &Member{Node: self, store: s, changed: changed, log: log.With("component", "cluster"), beatNow: make(chan struct{}, 1)}
}

// Nudge makes the node beat at once, because it reaches fewer executors.
func (m *Member) Nudge() {
	select {
	case m.beatNow <- struct{}{}:
	default:
	}
}

// Run beats until ctx ends, then takes the node off the list. It returns an
// error if the node's number was given to another one: then this process must
// not make ids any more.
func (m *Member) Run(ctx context.Context, sessions func() int) error {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	broken := false
	for {
		err := m.beat(ctx, sessions())
		if domain.Is(err, domain.CodeNotFound) {
			return domain.Errorf(domain.CodeUnavailable,
				"this node was silent for more than %s and its number was given to another one; it has to start again", TTL)
		}
		if (err != nil) != broken && ctx.Err() == nil {
			broken = err != nil
			if broken {
				m.log.Warn("the node's heartbeat cannot be written", "err", err)
			} else {
				m.log.Info("the node's heartbeat is written again")
			}
		}
		select {
		case <-ctx.Done():
			return m.leave()
		case <-tick.C:
		case <-m.beatNow:
		}
	}
}

func (m *Member) beat(ctx context.Context, sessions int) error {
	self := m.Node
	self.Sessions = sessions
	ctx, cancel := context.WithTimeout(ctx, beatEvery)
	defer cancel()
	_, live, err := m.store.HeartbeatNode(ctx, self, TTL)
	if err != nil {
		return err
	}
	m.mu.Lock()
	same := slices.EqualFunc(m.live, live, func(a, b domain.Node) bool {
		return a.ID == b.ID && a.BootID == b.BootID && a.ExecutorAddress == b.ExecutorAddress
	})
	m.live = live
	m.mu.Unlock()
	if !same {
		m.changed(live)
	}
	return nil
}

func (m *Member) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	if err := m.store.RemoveNode(ctx, m.ID, m.BootID); err != nil {
		m.log.Warn("the node could not be taken off the list", "err", err)
	}
	return nil
}

// Nodes returns the live nodes as of the last beat.
func (m *Member) Nodes() []domain.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.live)
}
