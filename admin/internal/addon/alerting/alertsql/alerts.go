package alertsql

import (
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Alerts is store.AlertRules, store.Alerts and store.AlertChannels.
type Alerts struct {
	*db.DB
	specs *record.SpecCache
	// engine hears of rules that name successes.
	engine *engine.Engine
}

// New works on the engine's database.
func New(db *db.DB, specs *record.SpecCache, engine *engine.Engine) Alerts {
	return Alerts{db, specs, engine}
}
