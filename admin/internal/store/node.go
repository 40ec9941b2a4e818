package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Nodes keeps the list of admin nodes.
type Nodes interface {
	// Now returns the database clock.
	Now(ctx context.Context) (time.Time, error)
	// RegisterNode enters a node and gives it a number (1..domain.MaxNodeID)
	// that no node has whose heartbeat is younger than ttl.
	RegisterNode(ctx context.Context, n domain.Node, ttl time.Duration) (domain.Node, error)
	// HeartbeatNode renews the node's row and returns the database clock and
	// all nodes whose heartbeat is younger than ttl, by id. CodeNotFound: the
	// row was taken over (the node was silent for too long) and the node has
	// to stop and register again.
	HeartbeatNode(ctx context.Context, n domain.Node, ttl time.Duration) (now time.Time, live []domain.Node, err error)
	// RemoveNode takes a node off the list when it stops.
	RemoveNode(ctx context.Context, id domain.NodeID, bootID string) error
}
