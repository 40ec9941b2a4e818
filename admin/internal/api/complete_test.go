package api

import (
	"context"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// complete adds to the dependencies what a test has not set: the node serves, and
// other rooms do nothing.
func complete(d Deps) Deps {
	d.Metrics = prometheus.NewRegistry()
	or(&d.Denied, func() {})
	or(&d.DrainsChanged, func(context.Context) {})
	or(&d.BeforeDisable, func(context.Context) error { return nil })
	or(&d.DisabledChanged, func(context.Context) {})
	or(&d.JobsChanged, func() {})
	or(&d.Ready, func(ctx context.Context) error { return d.Store.Ping(ctx) })
	or(&d.ClockHeld, func() (at time.Time, jump time.Duration, held bool) { return at, 0, false })
	or(&d.Weights, func([]byte) (map[string]int, error) { return nil, nil })
	or(&d.Draining, func() bool { return false })
	or(&d.Closing, func() bool { return false })
	or(&d.Nodes, func() []domain.Node { return nil })
	or(&d.Held, func() []domain.PartitionTerm { return nil })
	or(&d.TimersSet, func(time.Time) {})
	or(&d.Declaration, func(context.Context, store.JobView) (domain.DeclaredJob, error) {
		return domain.DeclaredJob{}, domain.Errorf(domain.CodeNotFound, "nothing declares it")
	})
	or(&d.AddOns, func(*web.Server, *Actions) {})
	or(&d.FollowCalendar, func(context.Context, domain.CalendarID) {})
	or(&d.TenantMade, func(context.Context, domain.Tenant) {})
	or(&d.TryAddress, func(context.Context, domain.TenantID, []byte) (nodehandler.Trial, error) {
		return nodehandler.Trial{OK: true, Status: 200}, nil
	})
	or(&d.BuiltInChanged, func(context.Context, domain.TenantID) {})
	or(&d.GivenBack, func(context.Context, domain.TenantID, domain.ExecutorID) {})
	return d
}

// or sets a function that is not set.
func or[F any](f *F, otherwise F) {
	if reflect.ValueOf(*f).IsNil() {
		*f = otherwise
	}
}
