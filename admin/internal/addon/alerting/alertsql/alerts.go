package alertsql

import (
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Alerts is notify.Tables.
type Alerts struct {
	*db.DB
	specs *record.SpecCache
	// engine hears of rules that name successes.
	engine *engine.Engine
}

var _ notify.Tables = (*Alerts)(nil)

// OwnTables are the tables of alerting. Deliveries are tried for hours, not for days, so that
// none of those that are deleted by their age is under way. Incidents stay as long as events can
// join them.
func OwnTables() []db.OwnedTable {
	return []db.OwnedTable{
		{Name: "alert_events", Key: "id", Late: true, Wake: "tell_at", Only: db.Equal{Column: "expanded_at"}, Old: &db.Old{}},
		{Name: "alert_channels", Key: "id", Secret: true},
		{Name: "alert_settings"},
		{Name: "alert_rules", Key: "id", Wake: "next_at"},
		{Name: "alert_silences", Key: "id", Old: &db.Old{Ends: "ends_at"}},
		{Name: "deliveries", Key: "id", Late: true, Wake: "next_at", Only: db.Equal{Column: "state", Value: int64(noun.DeliveryPending)},
			Claimed: "claimed_by", Busy: "%d alerts are being told", Old: &db.Old{}},
		{Name: "alert_incidents", Key: "id", Children: []string{"alert_receivers"}, Column: "incident_id", Late: true, Wake: "wake_at", Old: &db.Old{Where: "wake_at IS NULL"}},
	}
}

// New works on the engine's database.
func New(e *engine.Engine) *Alerts { return &Alerts{e.DB, e.Specs, e} }
