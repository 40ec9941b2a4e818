package gormstore

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/alertsql"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// alertAging is a store under test with the tables of alerting.
type alertAging struct {
	aging
	notify.Tables
}

func newAlertAging(s *Store) alertAging { return alertAging{newAging(s), alertsql.New(s.Engine)} }

func init() {
	withAddOns = func(a aging) storetest.Store { return newAlertAging(a.Store) }
	ofAddOns = func(o Options) Options {
		o.Successes, o.Tables = alertsql.ReadSuccesses, alertsql.OwnTables()
		return o
	}
}

func (a alertAging) Channels() resource.Store { return alertsql.Channels(a.Store.DB) }

func (a alertAging) Rules() resource.Store { return alertsql.Rules(a.Store.DB) }

func (a alertAging) RulesChanged() { alertsql.New(a.Store.Engine).RulesChanged() }

func (a alertAging) AgeStart(ctx context.Context, id domain.ExecutionID, d time.Duration) error {
	return a.Run(ctx, "age start", func(t *db.Tx) error {
		_, err := t.Exec(ctx, "UPDATE executions SET fire_at = fire_at - ?, not_before = not_before - ?, granted_at = CASE WHEN granted_at = 0 THEN 0 ELSE granted_at - ? END, version = version + 1 WHERE id = ?",
			d.Milliseconds(), d.Milliseconds(), d.Milliseconds(), int64(id))
		return err
	})
}

func (a alertAging) AgeRules(ctx context.Context, tenant domain.TenantID, d time.Duration) error {
	return a.Run(ctx, "age rules", func(t *db.Tx) error {
		for _, statement := range []string{
			"UPDATE alert_rules SET updated_at = updated_at - ?, next_at = next_at - 3600000 WHERE tenant_id = ?",
			"UPDATE jobs SET created_at = created_at - 3600000, updated_at = updated_at - ? WHERE tenant_id = ?",
		} {
			if _, err := t.Exec(ctx, statement, d.Milliseconds(), int64(tenant)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a alertAging) AgeIncident(ctx context.Context, id domain.IncidentID, d time.Duration) error {
	return a.Run(ctx, "age incident", func(t *db.Tx) error {
		_, err := t.Exec(ctx, "UPDATE alert_incidents SET id = id - ? WHERE id = ?", idsIn(d), int64(id))
		return err
	})
}

// The oldest thing that could be told decides, be it an event or a delivery.
func TestOutboxLag(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := newAlertAging(openStore(t, options(t)))
			ctx := t.Context()
			tenant := domain.TenantID(7)
			require.NoError(t, s.CreateTenant(ctx, domain.Tenant{ID: tenant, Name: "acme"}))
			lag := func() time.Duration {
				got, err := s.OutboxLag(ctx)
				require.NoError(t, err)
				return got
			}
			require.Zero(t, lag(), "nothing to tell")
			now, err := s.Now(ctx)
			require.NoError(t, err)
			require.NoError(t, s.RecordAlerts(ctx, []domain.AlertEvent{{
				ID: 1, TenantID: tenant, Kind: domain.AlertNoExecutor, DedupeKey: "k",
			}}))
			require.NoError(t, s.AgeOutbox(ctx, time.Hour))
			require.GreaterOrEqual(t, lag(), time.Hour)
			_, err = s.ExpandAlertEvents(ctx, 10, func(b *notify.AlertBatch) {
				b.Direct = []noun.Delivery{{ID: 2, TenantID: tenant, EventID: 1, Channel: "webhook", Target: "https://example.test", NextAt: now.Add(-time.Minute)}}
			})
			require.NoError(t, err)
			require.GreaterOrEqual(t, lag(), time.Minute)
			require.Less(t, lag(), time.Hour)
			require.NoError(t, s.FinishDelivery(ctx, 2, noun.DeliveryPending, time.Hour, "not now"))
			require.Zero(t, lag(), "it waits for its next time, and for nobody")
			require.NoError(t, s.FinishDelivery(ctx, 2, noun.DeliveryDelivered, 0, ""))
			require.Zero(t, lag())
		})
	}
}
