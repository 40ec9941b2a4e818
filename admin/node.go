package admin

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Membership of the cluster.
const (
	// nodeBeat bounds how late others hear that executors have come or gone.
	nodeBeat = time.Second
	// nodeTTL is how long a silent node stays on the list. Nothing depends on
	// it but the list that executors get, and the reuse of node numbers, for
	// which it has to exceed the longest pause of a process that goes on.
	nodeTTL = 30 * time.Second
)

// membership keeps this node on the list and knows the others.
type membership struct {
	cluster store.Nodes
	log     *slog.Logger
	// changed is called with the new list when nodes came or went.
	changed func([]domain.Node)
	beatNow chan struct{} // capacity 1; nobody closes it

	mu   sync.Mutex
	self domain.Node   // guarded by mu
	live []domain.Node // guarded by mu
}

// nudge makes the node beat at once, because it reaches fewer executors.
func (m *membership) nudge() {
	select {
	case m.beatNow <- struct{}{}:
	default:
	}
}

// run beats until ctx ends, then takes the node off the list. It returns an
// error if the node's number was given to another one: then this process must
// not make ids any more.
func (m *membership) run(ctx context.Context, sessions func() int) error {
	tick := time.NewTicker(nodeBeat)
	defer tick.Stop()
	broken := false
	for {
		err := m.beat(ctx, sessions())
		if domain.Is(err, domain.CodeNotFound) {
			return domain.Errorf(domain.CodeUnavailable,
				"this node was silent for more than %s and its number was given to another one; it has to start again", nodeTTL)
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

func (m *membership) beat(ctx context.Context, sessions int) error {
	m.mu.Lock()
	m.self.Sessions = sessions
	self := m.self
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, nodeBeat)
	defer cancel()
	_, live, err := m.cluster.HeartbeatNode(ctx, self, nodeTTL)
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

func (m *membership) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := m.cluster.RemoveNode(ctx, m.self.ID, m.self.BootID); err != nil {
		m.log.Warn("the node could not be taken off the list", "err", err)
	}
	return nil
}

// nodes returns the live nodes as of the last beat.
func (m *membership) nodes() []domain.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.live)
}
