package storetest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// AlertStore is a store under test with the tables of alerting.
type AlertStore interface {
	Store
	notify.Tables
	// Channels is the table of alert channels, and Rules that of alert rules.
	Channels() resource.Store
	Rules() resource.Store
	// RulesChanged is called after each change of a rule.
	RulesChanged()
	// AgeStart makes a run have been due, and started, d earlier; AgeRules makes a tenant's jobs and
	// rules have been edited so, and the rules be due.
	AgeStart(ctx context.Context, id domain.ExecutionID, d time.Duration) error
	AgeRules(ctx context.Context, tenant domain.TenantID, d time.Duration) error
	// AgeIncident makes an incident have been opened d earlier: its id says when.
	AgeIncident(ctx context.Context, id domain.IncidentID, d time.Duration) error
}

// alertFixture is a fixture whose store has the tables of alerting.
type alertFixture struct {
	*fixture
	s AlertStore
}

// PutChannel writes an alert channel: a new one has version 0.
func PutChannel(ctx context.Context, s resource.Store, c noun.AlertChannel) (noun.AlertChannel, error) {
	spec, err := json.Marshal(&c.Spec)
	if err != nil {
		return noun.AlertChannel{}, err
	}
	row := resource.Row{Meta: resource.Meta{ID: int64(c.ID), Tenant: c.TenantID, Name: c.Spec.Name, Version: c.Version, Sealed: c.Secrets}, Spec: spec}
	if c.Version == 0 {
		row, err = s.Create(ctx, row)
	} else {
		row, err = s.Replace(ctx, row)
	}
	if err != nil {
		return noun.AlertChannel{}, err
	}
	if row, err = s.Find(ctx, c.TenantID, row.ID); err != nil {
		return noun.AlertChannel{}, err
	}
	return noun.AlertChannelOf(&row)
}

// PutRule writes an alert rule: a new one has version 0.
func PutRule(ctx context.Context, s AlertStore, r noun.AlertRule) (noun.AlertRule, error) {
	defer s.RulesChanged()
	spec, err := json.Marshal(noun.TextOf(&r.Spec))
	if err != nil {
		return noun.AlertRule{}, err
	}
	row := resource.Row{Meta: resource.Meta{ID: int64(r.ID), Tenant: r.TenantID, Name: r.Spec.Name, Version: r.Version}, Spec: spec}
	if r.Version == 0 {
		row, err = s.Rules().Create(ctx, row)
	} else {
		row, err = s.Rules().Replace(ctx, row)
	}
	if err != nil {
		return noun.AlertRule{}, err
	}
	if row, err = s.Rules().Find(ctx, r.TenantID, row.ID); err != nil {
		return noun.AlertRule{}, err
	}
	return noun.AlertRuleOf(&row)
}

func (f *alertFixture) putRule(r noun.AlertRule) (noun.AlertRule, error) {
	return PutRule(f.ctx, f.s, r)
}

func (f *alertFixture) put(c noun.AlertChannel) (noun.AlertChannel, error) {
	return PutChannel(f.ctx, f.s.Channels(), c)
}

func (f *alertFixture) remove(c noun.AlertChannel) error {
	return f.s.Channels().Delete(f.ctx, c.TenantID, int64(c.ID), 0, "anna")
}

func init() {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *alertFixture)
	}{
		{"Alerts", testAlerts},
		{"MissedAlerts", testMissedAlerts},
		{"MissedByPause", testMissedByPause},
		{"MissedWithoutAnInstance", testMissedWithoutAnInstance},
		{"AlertChannels", testAlertChannels},
		{"AlertChannelsMost", testAlertChannelsMost},
		{"AlertChannelDeliveries", testAlertChannelDeliveries},
		{"Deliveries", testDeliveries},
		{"DeadClaims", testDeadClaims},
		{"DeliveryRace", testDeliveryRace},
		{"Incidents", testIncidents},
		{"IncidentOfManyEvents", testIncidentOfManyEvents},
		{"AbsorbedIncident", testAbsorbedIncident},
		{"IncidentRace", testIncidentRace},
		{"AlertRules", testAlertRules},
		{"Silences", testSilences},
		{"DefaultReceiver", testDefaultReceiver},
		{"IncidentWishes", testIncidentWishes},
		{"LookedForRules", testLookedForRules},
		{"SuccessRules", testSuccessRules},
		{"PileIncident", testPileIncident},
		{"LostInstancesExplained", testLostInstancesExplained},
		{"AlertWall", testAlertWall},
	} {
		addOnTests = append(addOnTests, suiteTest{test.name, func(t *testing.T, f *fixture) { test.run(t, &alertFixture{f, f.s.(AlertStore)}) }})
	}
}
