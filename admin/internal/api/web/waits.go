package web

import (
	"net/url"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Defaults of Deps.Waits: requests of this node that take long because they
// wait for something (the query wait) or stream (a log's download).
const (
	defaultWaitsPerUser   = 500
	defaultWaitsPerTenant = 2_000
)

// Waits bound requests that take long; 0 = default.
type Waits struct {
	PerUser   int // of one user, or one API key
	PerTenant int
}

// waits counts them. It is safe for concurrent use.
type waits struct {
	limit Waits // fixed after construction

	mu      sync.Mutex
	users   map[party]int           // guarded by mu; those with any
	tenants map[domain.TenantID]int // guarded by mu; those with any
}

func partyOf(id auth.Identity) party { return party{id.Tenant, id.User, id.APIKey} }

func newWaits(limit Waits) *waits {
	if limit.PerUser <= 0 {
		limit.PerUser = defaultWaitsPerUser
	}
	if limit.PerTenant <= 0 {
		limit.PerTenant = defaultWaitsPerTenant
	}
	return &waits{limit: limit, users: map[party]int{}, tenants: map[domain.TenantID]int{}}
}

// begin counts one more, or returns why there are enough; end has to be called
// when it is over.
func (w *waits) begin(id auth.Identity) (end func(), err error) {
	who := partyOf(id)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.users[who] >= w.limit.PerUser:
		err = tooManyWait(w.limit.PerUser, id.Actor())
	case w.tenants[who.tenant] >= w.limit.PerTenant:
		err = tooManyWait(w.limit.PerTenant, "this tenant")
	}
	if err != nil {
		return nil, err
	}
	w.users[who]++
	w.tenants[who.tenant]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.users[who]--; w.users[who] == 0 {
			delete(w.users, who)
		}
		if w.tenants[who.tenant]--; w.tenants[who.tenant] == 0 {
			delete(w.tenants, who.tenant)
		}
	}, nil
}

func tooManyWait(limit int, whose string) error {
	err := domain.Errorf(domain.CodeTooManyWaiting, "%d requests of %s wait or stream on this node already: end some of them, or ask without wait", limit, whose)
	err.RetryAfter = time.Second
	return err
}

// takesLong says whether a request may wait or stream.
func (op Operation) takesLong(query url.Values) bool {
	wait := query.Get("wait")
	return op.Produces != "" || wait != "" && wait != "0s" && wait != "0"
}
