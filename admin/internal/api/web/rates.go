package web

import (
	"context"
	"net/http"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

const (
	// ratedCallers bounds the tenants and keys whose calls are counted; of more,
	// the one that has not called for longest begins anew.
	ratedCallers = 20_000
	// quotaAge is how old a tenant's quota may be that a node goes by.
	quotaAge = 10 * time.Second
	// keyShare is the part of its tenant's calls that one API key may have.
	keyShare = 2
	// reserveShare is what operators' calls have beside the tenant's, as a part
	// of it: pausing, cancelling and the like go through while a program of the
	// same tenant floods.
	reserveShare = 5
)

// rates bounds API calls per second, of each tenant and of each API key, on this
// node. It is safe for concurrent use.
type rates struct {
	maxOf func(ctx context.Context, tenant domain.TenantID) (int64, error)
	now   func() time.Time

	callers *lru.Cache[party, *caller]
}

// party is a user or an API key in a tenant, or, without both, the tenant.
type party struct {
	tenant domain.TenantID
	user   domain.UserID
	key    int64
}

// caller is a tenant (without user and key) or an API key.
type caller struct {
	limit int64     // calls per second; 0 = no limit. Of a new one: all there are
	at    time.Time // when it was read
	calls *rate.Limiter
	// reserve is for operators' calls.
	reserve *rate.Limiter
}

func newRates(maxOf func(context.Context, domain.TenantID) (int64, error)) *rates {
	callers, _ := lru.New[party, *caller](ratedCallers) // fails for a size of 0 only
	return &rates{maxOf: maxOf, now: time.Now, callers: callers}
}

// take counts one call, or returns why there are too many. A database that does
// not answer limits nobody: whoever asks it next hears that.
func (r *rates) take(ctx context.Context, id auth.Identity, operates bool) error {
	now := r.now()
	tenant := r.tenant(ctx, id.Tenant, now)
	if tenant.limit == 0 {
		return nil
	}
	if id.APIKey != 0 {
		key := r.caller(party{tenant: id.Tenant, key: id.APIKey}, max(1, tenant.limit/keyShare), now)
		if !key.allow(now, operates) {
			return tooManyCalls(key.limit, id.Actor())
		}
	}
	if !tenant.allow(now, operates) {
		return tooManyCalls(tenant.limit, "this tenant")
	}
	return nil
}

func (c *caller) allow(now time.Time, operates bool) bool {
	return c.calls.AllowN(now, 1) || operates && c.reserve.AllowN(now, 1)
}

// tenant reads the quota again when it is old.
func (r *rates) tenant(ctx context.Context, id domain.TenantID, now time.Time) *caller {
	c, known := r.callers.Get(party{tenant: id})
	if known && now.Sub(c.at) < quotaAge {
		return c
	}
	limit, err := r.maxOf(ctx, id)
	switch {
	case err == nil:
	case known:
		return c
	default:
		return &caller{}
	}
	return r.caller(party{tenant: id}, limit, now)
}

// caller finds one with this limit, and makes it anew if it has another.
func (r *rates) caller(who party, limit int64, now time.Time) *caller {
	c, known := r.callers.Get(who)
	if known && c.limit == limit && (who.key != 0 || now.Sub(c.at) < quotaAge) {
		return c
	}
	fresh := &caller{limit: limit, at: now}
	if known && c.limit == limit {
		fresh.calls, fresh.reserve = c.calls, c.reserve
	} else {
		reserve := max(1, limit/reserveShare)
		fresh.calls = rate.NewLimiter(rate.Limit(limit), int(limit)) // a second's worth at once
		fresh.reserve = rate.NewLimiter(rate.Limit(reserve), int(reserve))
	}
	r.callers.Add(who, fresh)
	return fresh
}

func tooManyCalls(limit int64, whose string) error {
	err := domain.Errorf(domain.CodeRateLimited, "%s may make %d API calls per second on a node, and makes more: use batches (timers: /timers/batch, /timers/cancel; jobs: /jobs/batch), wait, or ask a platform administrator for a larger quota (api_calls_per_second)", whose, limit)
	err.RetryAfter = time.Second
	return err
}

// operates says whether an operation is one of those that keep things going:
// they have a reserve.
func (op Operation) operates(p Policy) bool {
	return p.perm&domain.PermOperate != 0 && op.Method != http.MethodGet
}
