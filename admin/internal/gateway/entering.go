package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// When a node comes back, all of its executors do. They ask the database
// together: whoever comes while an answer is on its way goes with the next
// question (docs/adr/0028). So a crowd has one connection at a time for its
// tokens, one for its registrations, one for what it has under way, and one each
// for whom it succeeds and for those that leave; the rest of the node's (16 by
// default) is for those that are in: their leases must not wait.
const (
	// togetherMax is how many come in with one transaction. On SQLite nobody else
	// writes meanwhile.
	togetherMax = 200
	// togetherTimeout bounds one question; executors wait for no longer.
	togetherTimeout = 5 * time.Second
	// partMax is how many are ended with one transaction, those that leave and
	// those whose successors come: it writes all of their executions as well.
	partMax = 50
	// maxWaiting bounds how many wait for the answer about their token; whoever
	// comes then is asked to come again, while there is time left to tell.
	maxWaiting = 2 * maxComing
	// maxEntering bounds how many executors ask the database at once for
	// themselves alone, because they have much under way.
	maxEntering = 4
	// maxTidying is the same for what they have not, which nobody waits for.
	maxTidying = 1
)

// knock is somebody at the door: a claim, or an identity that a certificate has
// proven.
type knock struct {
	claim  domain.JoinClaim
	proven bool
	who    domain.ExecutorIdentity // BootID is always there
}

// verdict is the answer to a knock.
type verdict struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
	noJobs   bool
	err      error
}

func (g *Gateway) openEntrance() {
	g.knocks = batch.NewCalls(togetherMax, togetherTimeout, g.judgeKnocks)
	g.registers = batch.NewCalls(togetherMax, togetherTimeout, func(ctx context.Context, list []store.RegisterInstanceParams) ([]store.Registration, error) {
		return g.opt.Fleet.RegisterInstances(ctx, list)
	})
	g.settles = batch.NewCalls(togetherMax, togetherTimeout, func(ctx context.Context, list []store.SettleInventoryParams) ([]domain.SettledInventory, error) {
		return g.opt.Inventory.SettleInventories(ctx, list), nil
	})
	g.succeeds = batch.NewCalls(partMax, togetherTimeout, func(ctx context.Context, list []store.SupersedeBootsParams) ([]store.SupersededBoots, error) {
		return g.opt.Fleet.SupersedeBoots(ctx, list), nil
	})
	g.leaves = batch.NewCalls(partMax, togetherTimeout, func(ctx context.Context, list []store.InstanceLeave) ([]error, error) {
		return g.opt.Fleet.LeaveInstances(ctx, list), nil
	})
	g.entering, g.tidying = make(chan struct{}, maxEntering), make(chan struct{}, maxTidying)
}

// judgeKnocks asks about tokens first, and then whether somebody is denied.
func (g *Gateway) judgeKnocks(ctx context.Context, list []knock) ([]verdict, error) {
	out := make([]verdict, len(list))
	var claims []domain.JoinClaim
	var of []int // the knock of each claim
	for i, k := range list {
		if k.proven {
			out[i].tenant, out[i].executor, out[i].noJobs = k.who.Tenant, k.who.Executor, k.who.NoJobs
		} else {
			claims, of = append(claims, k.claim), append(of, i)
		}
	}
	if len(claims) > 0 {
		verdicts, err := g.opt.Auth.VerifyJoinTokens(ctx, claims)
		if err != nil {
			return nil, err
		}
		for n, v := range verdicts {
			out[of[n]] = verdict{v.Tenant, v.Executor, v.NoJobs, v.Err}
		}
	}
	return out, g.judgeDenied(ctx, list, out)
}

func (g *Gateway) judgeDenied(ctx context.Context, list []knock, out []verdict) error {
	if g.opt.Denials == nil {
		return nil
	}
	var in []domain.ExecutorIdentity
	var of []int // the knock of each identity
	for i, k := range list {
		if out[i].err == nil {
			k.who.Tenant, k.who.Executor = out[i].tenant, out[i].executor
			in, of = append(in, k.who), append(of, i)
		}
	}
	if len(in) == 0 {
		return nil
	}
	denied, err := g.opt.Denials.Denied(ctx, in)
	if err != nil {
		return err
	}
	for n, no := range denied {
		if no != nil {
			out[of[n]] = verdict{err: no}
		}
	}
	return nil
}

// enter waits for one of a few places; leave gives it back.
func enter(ctx context.Context, places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, domain.Errorf(domain.CodeUnavailable, "too many executors come in at once; try again")
	}
}

const (
	// minComing and maxComing bound the sessions between their hello and the end
	// of their registration. More than can be done in time would wait for longer
	// than their executors wait for an answer: of a crowd that comes at once,
	// none would get in.
	minComing = 64
	maxComing = 1024
	// quickEntry is how long a registration takes when there are not too many:
	// a fifth of what its executor waits.
	quickEntry = time.Second
)

// pace finds out how many may be on their way in at once: one more with each
// that was quick, two less with each that was not. The zero value lets minComing
// in. It is safe for concurrent use.
type pace struct {
	mu   sync.Mutex
	more int // guarded by mu: beyond minComing
}

// places is how many may be on their way in, and how many of one tenant, so
// that others find a place.
func (p *pace) places() (all, ofTenant int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all = minComing + p.more
	return all, all - all/4
}

// came is the event that a session has come in, or has given it up, after so long.
func (p *pace) came(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if took <= quickEntry {
		p.more = min(p.more+1, maxComing-minComing)
	} else {
		p.more = max(p.more-2, 0)
	}
}
