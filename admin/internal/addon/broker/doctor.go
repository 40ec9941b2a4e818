package broker

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/addon/broker/publish"
	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/internal/egress"
)

const (
	// maxBrokers is how many connections are looked at, and brokersAtOnce how many side by side.
	maxBrokers    = 100
	brokersAtOnce = 16
)

// look lets the brokers of connections let us in, and publishes nothing.
func look(ctx context.Context, e addon.Examination) ([]doctor.Result, error) {
	list, err := NewTable(e.DB, nil).ListAllConnections(ctx, maxBrokers)
	if err != nil || len(list) == 0 {
		return []doctor.Result{doctor.Skip("there are no connections to brokers")}, err
	}
	if e.Box == nil {
		return []doctor.Result{doctor.Skip("their secrets cannot be opened")}, nil
	}
	networks, err := egress.ParseNetworks(e.Settings.List(allow))
	if err != nil {
		return nil, err
	}
	p := publish.New(publish.Options{Secrets: e.Box, AllowPrefixes: networks, Logger: slog.New(slog.DiscardHandler)})
	found := make([]doctor.Result, len(list))
	turn, all := semaphore.NewWeighted(brokersAtOnce), sync.WaitGroup{}
	for i, c := range list {
		all.Go(func() {
			err := turn.Acquire(ctx, 1)
			if err == nil {
				err = p.Look(ctx, c)
				turn.Release(1)
			}
			if err != nil {
				found[i] = doctor.Warn("broker_unreachable", "Look at the broker, or let the tenant correct the connection; until then its messages wait and are tried again.",
					"connection %s of tenant %s (%s, %s): %v", c.Name, c.Tenant, c.Spec.Broker, strings.Join(c.Spec.Addresses, " "), e.Plainly(ctx, err))
			}
		})
	}
	all.Wait()
	found = slices.DeleteFunc(found, func(r doctor.Result) bool { return r.Status == "" })
	if len(found) == 0 {
		return []doctor.Result{doctor.Passed("all %d connections let us in; nothing was published", len(list))}, nil
	}
	return found, nil
}

// sealed are the secrets of connections.
func sealed(ctx context.Context, database *db.DB) (out []addon.Sealed, err error) {
	list, err := NewTable(database, nil).ListAllConnections(ctx, maxBrokers)
	if err != nil {
		return nil, err
	}
	for i := range list {
		c := &list[i]
		out = append(out, addon.Sealed{What: "the secrets of connection " + c.Name, Tenant: c.Tenant, Purpose: secret.PurposeConnection, ID: c.ID, Bytes: c.Sealed})
	}
	return out, nil
}
