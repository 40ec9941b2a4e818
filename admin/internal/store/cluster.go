package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Cluster keeps what all nodes share.
type Cluster interface {
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
	// DoubtHistory leaves word in the database for nodes that come later, and
	// records the alert with it, once for all nodes.
	DoubtHistory(ctx context.Context, r domain.Rollback, alert domain.AlertEvent) error
	// AcceptHistory begins the next epoch: the database is right as it is.
	// CodeConflict: nobody has found that it is not.
	AcceptHistory(ctx context.Context) (domain.History, error)
	// ListPartitionLags says of each partition, in order, what its next work is.
	ListPartitionLags(ctx context.Context) ([]domain.PartitionLag, error)
}
