package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// AlertStore is a store under test with the tables of alerting.
type AlertStore interface {
	Store
	notify.Tables
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
