package audit

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Refusals that a node stores: a burst, and then one for each interval. A tenant is named by
// credentials, so that strangers fill the log of the cluster only.
const (
	addressBurst    = 10
	addressInterval = time.Minute
	tenantBurst     = 100
	tenantInterval  = 30 * time.Second
	// limitedOnce bounds the tenants and addresses that are counted. The one that was refused
	// longest ago begins anew.
	limitedOnce = 4096
	// recordTimeout bounds the time that a refused request waits for its entry.
	recordTimeout = 2 * time.Second
)

// refusals stores refusals within their rates. It is safe for concurrent use.
type refusals struct {
	// fixed after construction
	record  func(context.Context, domain.AuditEntry) error
	log     *slog.Logger
	leftOut prometheus.Counter

	mu    sync.Mutex
	rates *lru.Cache[source, *sourceRate] // guarded by mu
}

// source is a tenant, or an address in it.
type source struct {
	tenant  domain.TenantID
	address string
}

type sourceRate struct {
	limit   *rate.Limiter
	leftOut int // since the last one that was stored
}

func newRefusals(metrics prometheus.Registerer, log *slog.Logger, record func(context.Context, domain.AuditEntry) error) *refusals {
	rates, _ := lru.New[source, *sourceRate](limitedOnce) // fails for a size of 0 only
	r := &refusals{record: record, log: log, rates: rates, leftOut: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "carillon_audit_refusals_left_out_total", Help: "Refusals that were not recorded because there were too many.",
	})}
	metrics.MustRegister(r.leftOut)
	return r
}

// take stores a refusal, or counts it. The next one that is stored says how many were left out
// of the same tenant and address.
func (r *refusals) take(ctx context.Context, e domain.AuditEntry, now time.Time) {
	before, allowed := r.allow(e, now)
	if !allowed {
		r.leftOut.Inc()
		return
	}
	if before > 0 {
		e.After = fmt.Sprintf(`{"leftOut":%d}`, before)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := r.record(ctx, e); err != nil {
		r.leftOut.Inc()
		r.log.Warn("refusal not recorded", "operation", e.Operation, "actor", e.Actor, "remote_ip", e.Address, "err", err)
	}
}

func (r *refusals) allow(e domain.AuditEntry, now time.Time) (leftOut int, allowed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	address := r.rateLocked(source{e.Tenant, network(e.Address)}, addressInterval, addressBurst)
	tenant := r.rateLocked(source{e.Tenant, ""}, tenantInterval, tenantBurst)
	if !address.limit.AllowN(now, 1) || !tenant.limit.AllowN(now, 1) {
		address.leftOut++
		return 0, false
	}
	leftOut, address.leftOut = address.leftOut, 0
	return leftOut, true
}

func (r *refusals) rateLocked(s source, interval time.Duration, burst int) *sourceRate {
	found, known := r.rates.Get(s)
	if !known {
		found = &sourceRate{limit: rate.NewLimiter(rate.Every(interval), burst)}
		r.rates.Add(s, found)
	}
	return found
}

// network is the address that is counted. A stranger has as many addresses of IPv6 as a
// network of 64 bits.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return "unknown"
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}
