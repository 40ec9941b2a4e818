package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Cluster keeps the list of admin nodes and what all of them share.
type Cluster interface {
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

	// ClusterValue returns the value under key, setting it to initial if there
	// is none yet; every node gets the same answer. For the cluster id and the
	// fingerprint of the sealing key.
	ClusterValue(ctx context.Context, key, initial string) (string, error)
	// SetClusterValue replaces the value under key.
	SetClusterValue(ctx context.Context, key, value string) error
	// HoldClock notes under domain.ClockHoldValue by how much the database's
	// clock leapt, and under domain.ClockHeldAtValue the alert's CreatedAt, the
	// last time that is believed, for nodes that start later. It records the
	// alert with them, unless there is a hold already.
	HoldClock(ctx context.Context, jump time.Duration, alert domain.AlertEvent) error
	// ConfirmClock notes, by the database's clock, that an operator says this
	// clock is right (PartitionTable.ClockConfirmedAt).
	ConfirmClock(ctx context.Context) (time.Time, error)

	// DescribeDatabase says how the database is set up, and what about that
	// endangers the promises.
	DescribeDatabase(ctx context.Context) (domain.Database, error)

	// SaveSigningKey publishes a node's public key; ListSigningKeys returns
	// those that have not expired.
	SaveSigningKey(ctx context.Context, k domain.SigningKey) error
	ListSigningKeys(ctx context.Context) ([]domain.SigningKey, error)
}
