package alertsql

import (
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
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

// New works on the engine's database.
func New(e *engine.Engine) *Alerts { return &Alerts{e.DB, e.Specs, e} }
