package console

import (
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/access"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/document"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/past"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/retention"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/timer"
)

// Console is store.Console: the nouns, each with a struct of its own, here or in a
// package beside this one.
type Console struct {
	access.Access
	Executors
	Catalogue
	Jobs
	Calendars
	Scripts
	DocumentSets
	Cells
	Backfills
	timer.Timers
	Statistics
	Runs
	Limits
	Maintenance
	Quotas
	Logs
	Ledger
	retention.Retention
	retention.Rules
	retention.RunPurges
	past.Past
	Cluster
}

var _ store.Console = (*Console)(nil)

// shared is what the nouns have in common, fixed after construction.
type shared struct {
	*db.DB
	specs *record.SpecCache
	// engine ends plans and settles what an edit changes for runs.
	engine *engine.Engine
	// firesPerMinute is the most that a schedule fires in a minute, from now on.
	firesPerMinute func(now time.Time, spec *domain.JobSpec) int
}

type (
	// Executors is store.Executors.
	Executors struct{ *shared }
	// Catalogue is store.Catalogue.
	Catalogue struct{ *shared }
	// Jobs is store.Jobs.
	Jobs struct{ *shared }
	// Calendars is store.Calendars.
	Calendars struct {
		*shared
		table *document.Table
	}
	// Scripts is store.Scripts.
	Scripts struct{ *shared }
	// DocumentSets is store.DocumentSets.
	DocumentSets struct{ *shared }
	// Cells is store.Cells.
	Cells struct{ *shared }
	// Backfills is store.Backfills.
	Backfills struct{ *shared }
	// Statistics is store.Statistics.
	Statistics struct {
		*shared
		atOnce atomic.Int64 // rows of statistics that the next transaction adds to; 0: sumsAtOnce
	}
	// Runs is store.Runs.
	Runs struct{ *shared }
	// Limits is store.Limits.
	Limits struct{ *shared }
	// Maintenance is store.Maintenance.
	Maintenance struct{ *shared }
	// Quotas is store.Quotas.
	Quotas struct{ *shared }
	// Logs is store.Logs.
	Logs struct{ *shared }
	// Ledger is store.Ledger.
	Ledger struct{ *shared }
	// Cluster is store.Cluster.
	Cluster struct{ *shared }
)

// New works on the engine's database. A schedule's firesPerMinute are
// counted where they are bounded; nil: 0 of all of them.
func New(db *db.DB, specs *record.SpecCache, engine *engine.Engine, firesPerMinute func(now time.Time, spec *domain.JobSpec) int) *Console {
	if firesPerMinute == nil {
		firesPerMinute = func(time.Time, *domain.JobSpec) int { return 0 }
	}
	c := &shared{db, specs, engine, firesPerMinute}
	old, rules, purges := retention.New(db)
	return &Console{
		access.New(db, engine), Executors{c}, Catalogue{c}, Jobs{c}, Calendars{c, newCalendarTable(c.DB)}, Scripts{c}, DocumentSets{c}, Cells{c},
		Backfills{c}, timer.New(db, engine), Statistics{shared: c}, Runs{c}, Limits{c}, Maintenance{c}, Quotas{c}, Logs{c}, Ledger{c}, old, rules, purges, past.New(db), Cluster{c},
	}
}
