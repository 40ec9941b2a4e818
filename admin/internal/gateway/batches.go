package gateway

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// When a node comes back, all of its executors do. They ask the database
// together: whoever comes while an answer is on its way goes with the next
// question (docs/adr/0028). So many executors have one connection at a time for
// their tokens, one for their registrations, one for what they have under way, and
// one each for those that they replace and for those that leave; the rest of the
// node's (16 by default) is for sessions that stand: their leases must not wait.
const (
	// maxBatch is how many go with one transaction. On SQLite nobody else writes
	// meanwhile.
	maxBatch = 200
	// batchTimeout bounds one question; executors wait for no longer.
	batchTimeout = 5 * time.Second
	// maxEnded is how many are ended with one transaction, those that leave and
	// those that are replaced: it writes all of their executions as well.
	maxEnded = 50
	// maxAuthenticating bounds how many wait for the answer about their token;
	// whoever comes then is asked to come again, while there is time left to tell.
	maxAuthenticating = 2 * maxRegistering
	// maxLookups bounds how many executors ask the database at once for themselves
	// alone, because they have much under way.
	maxLookups = 4
	// maxOrphanLookups is the same for their orphans, which nobody waits for.
	maxOrphanLookups = 1
)

func (g *Gateway) openBatches() {
	g.verifier.authentications = batch.NewCalls(maxBatch, batchTimeout, g.verifier.authenticateAll)
	g.registers = batch.NewCalls(maxBatch, batchTimeout, func(ctx context.Context, list []store.RegisterInstanceParams) ([]store.Registration, error) {
		return g.opt.Fleet.RegisterInstances(ctx, list)
	})
	g.inventories.settles = batch.NewCalls(maxBatch, batchTimeout, func(ctx context.Context, list []store.SettleInventoryParams) ([]domain.SettledInventory, error) {
		return g.opt.Inventory.SettleInventories(ctx, list), nil
	})
	g.succeeds = batch.NewCalls(maxEnded, batchTimeout, func(ctx context.Context, list []store.SupersedeBootsParams) ([]store.SupersededBoots, error) {
		return g.opt.Fleet.SupersedeBoots(ctx, list), nil
	})
	g.intake.leaves = batch.NewCalls(maxEnded, batchTimeout, func(ctx context.Context, list []store.InstanceLeave) ([]error, error) {
		return g.opt.Fleet.LeaveInstances(ctx, list), nil
	})
	g.logs.writes = batch.NewCalls(logFrames, logStoreTime, g.logs.storeLogs)
}
