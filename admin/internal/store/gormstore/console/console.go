package console

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Console is store.Console: the nouns, each with a struct of its own.
type Console struct {
	Accounts
	Tokens
	Invitations
	Executors
	Catalogue
	Trust
	Refusals
	Jobs
	Calendars
	Scripts
	Backfills
	Runs
	Limits
	Quotas
	Logs
	Alerts
	Ledger
	Retention
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
	// Accounts is tenants, users and memberships of store.Accounts.
	Accounts struct{ *shared }
	// Tokens is the refresh tokens, API keys and join tokens of store.Accounts.
	Tokens struct{ *shared }
	// Invitations is store.Invitations.
	Invitations struct{ *shared }
	// Executors is store.Executors.
	Executors struct{ *shared }
	// Catalogue is store.Catalogue.
	Catalogue struct{ *shared }
	// Trust is store.Trust.
	Trust struct{ *shared }
	// Refusals is store.Refusals.
	Refusals struct{ *shared }
	// Jobs is store.Jobs.
	Jobs struct{ *shared }
	// Calendars is store.Calendars.
	Calendars struct{ *shared }
	// Scripts is store.Scripts.
	Scripts struct{ *shared }
	// Backfills is store.Backfills.
	Backfills struct{ *shared }
	// Runs is store.Runs.
	Runs struct{ *shared }
	// Limits is store.Limits.
	Limits struct{ *shared }
	// Quotas is store.Quotas.
	Quotas struct{ *shared }
	// Logs is store.Logs.
	Logs struct{ *shared }
	// Alerts is store.Alerts.
	Alerts struct{ *shared }
	// Ledger is store.Ledger.
	Ledger struct{ *shared }
	// Retention is store.Retention.
	Retention struct{ *shared }
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
	return &Console{
		Accounts{c}, Tokens{c}, Invitations{c}, Executors{c}, Catalogue{c}, Trust{c}, Refusals{c}, Jobs{c}, Calendars{c}, Scripts{c},
		Backfills{c}, Runs{c}, Limits{c}, Quotas{c}, Logs{c}, Alerts{c}, Ledger{c}, Retention{c}, Cluster{c},
	}
}
