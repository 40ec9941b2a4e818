package web

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	nodebudget "github.com/carillon-sched/carillon/admin/internal/budget"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

const (
	// smallBody is the size, in bytes, up to which a body does not wait behind large ones.
	smallBody = 64 << 10
	// budgetPatience is how long a request waits for its share before it is refused.
	budgetPatience = 5 * time.Second
)

// budget bounds the bytes or processors of a node that requests hold at once. Each tenant
// has a share, and so has each address without a log-in. A request waits for its share
// before it takes more.
type budget struct {
	*nodebudget.Budget[owner]
	what string // is bounded, as refusals name it
}

// owner has a share of a budget.
type owner struct {
	tenant domain.TenantID
	ip     string // of a request without a log-in
}

// budgets are those of a node. The processing of a body takes about four times its bytes,
// the building of an answer about six times.
type budgets struct {
	small, large *budget // bytes of bodies
	answers      *budget // bytes of answers that are built
	sending      *budget // bytes of large answers that wait for their client
	computing    *budget // computations, so that runs have processors too
	reaching     *budget // requests that wait for another host
	messages     *budget // requests in messages of another protocol (Mount)
}

func newBudgets() budgets {
	half := max(runtime.GOMAXPROCS(0)/2, 1)
	return budgets{
		small: newBudget(4<<20, 1<<20, "bytes of bodies"), large: newBudget(12<<20, 8<<20, "bytes of large bodies"),
		answers: newBudget(8<<20, 4<<20, "bytes of large answers"), sending: newBudget(32<<20, 8<<20, "bytes of answers that nobody has read"),
		computing: newBudget(int64(half), int64(max(half/2, 1)), "computations"),
		reaching:  newBudget(16, 4, "requests to other hosts"),
		messages:  newBudget(64, 16, "requests of assistants"),
	}
}

const (
	// largeAnswer is the share that an operation with a large answer takes, in bytes.
	largeAnswer = 1 << 20
	// smallAnswer is the size, in bytes, up to which an answer is sent beside the budget.
	smallAnswer = 16 << 10
	// quickBody is the size, in bytes, up to which a body is checked beside the budget.
	quickBody = 16 << 10
)

func (b budgets) of(size int64) *budget {
	if size <= smallBody {
		return b.small
	}
	return b.large
}

func newBudget(node, share int64, what string) *budget {
	return &budget{nodebudget.New[owner](node, share), what}
}

func ownerOf(id auth.Identity, ip string) owner {
	if id.Known() {
		return owner{tenant: id.Tenant}
	}
	return owner{ip: ip}
}

// take waits until so much is free for the owner, or returns why it waited in vain. done
// has to be called when nothing of it is held any more. It has no effect when called again.
func (b *budget) take(ctx context.Context, who owner, size int64) (done func(), err error) {
	wait, cancel := context.WithTimeout(ctx, budgetPatience)
	defer cancel()
	held, err := b.Take(wait, who, size)
	switch {
	case err == nil:
		return held.Release, nil
	case errors.Is(err, nodebudget.ErrShare):
		err := domain.Errorf(domain.CodeRateLimited, "this node holds %d %s for requests of this tenant or address already, which is the most: send fewer of them at once", b.Share(), b.what)
		err.RetryAfter = time.Second
		return nil, err
	default:
		err := domain.Errorf(domain.CodeUnavailable, "this node holds as many %s for requests as it may: try again in a moment", b.what)
		err.RetryAfter = time.Second
		return nil, err
	}
}
