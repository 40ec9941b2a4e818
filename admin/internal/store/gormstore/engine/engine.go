package engine

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Rules are what the engine asks of others while it moves runs, and its bounds.
type Rules struct {
	// NextFire computes when a fixed delay fires after the end of a run. It may
	// be nil where no job has one.
	NextFire store.NextFireFunc
	// Misfire is asked about runs that start later than their misfire threshold;
	// nil: they start.
	Misfire store.MisfireFunc
	// LogLimits bound what handlers' logs may fill.
	LogLimits store.LogLimits
	// Successes reads what a subscriber of the outbox wants to hear of runs that have
	// succeeded; nil: no run that has succeeded is an event.
	Successes ReadSuccesses
}

// Engine is store.Engine: the transitions of runs.
type Engine struct {
	*core
	Nodes
	Partitions
	Triggers
	DueTimers
	Executions
	Sweeps
	Inventory
	Admission
	Instances
	Progress
	LogAppender
}

var _ store.Engine = (*Engine)(nil)

// core is what the parts of the engine share. Everything is fixed after
// construction; the caches guard themselves.
type core struct {
	*db.DB
	Specs  *record.SpecCache
	limits limitCache
	// maintenance is shared by all that starts runs.
	maintenance maintenanceCache
	success     successes
	Rows        *rowCache
	panics      *rate.Limiter // of executions that are set aside because of one
	nextFireOf  store.NextFireFunc
	misfire     store.MisfireFunc
	// QuarantinedUntil are jobs whose triggers or timers could not be planned
	// (quarantine).
	QuarantinedUntil *lru.Cache[domain.JobID, time.Time]
}

// Each part has the methods of one interface of store, or of a part of it.
type (
	// Nodes is store.Nodes.
	Nodes struct{ *core }
	// Partitions is store.Partitions.
	Partitions struct{ *core }
	// Triggers is store.Triggers.
	Triggers struct {
		*core
		due foundDue[domain.JobID]
	}
	// DueTimers is store.DueTimers.
	DueTimers struct {
		*core
		due foundDue[domain.TimerID]
		hot hotLook
	}
	// Executions moves single runs: created, offered, granted, ended.
	Executions struct{ *core }
	// Sweeps finds the runs that nobody moves, and moves them.
	Sweeps struct{ *core }
	// Inventory compares what instances say they run with the rows.
	Inventory struct{ *core }
	// Admission is store.Admission.
	Admission struct{ *core }
	// Instances is store.Instances.
	Instances struct {
		*core
		counts *lru.Cache[domain.TenantID, instanceCount]
	}
	// Progress is store.Progress.
	Progress struct{ *core }
	// LogAppender is store.LogAppender.
	LogAppender struct {
		*core
		logLimits store.LogLimits
	}
)

// New works on db, and reads revisions through specs.
func New(db *db.DB, specs *record.SpecCache, r Rules) *Engine {
	c := &core{DB: db, Specs: specs, Rows: newRowCache(), panics: newPanicLimiter(), success: successes{read: r.Successes}, nextFireOf: r.NextFire, misfire: r.Misfire,
		QuarantinedUntil: record.NewCache[domain.JobID, time.Time](maxQuarantined)}
	return &Engine{
		core: c, Nodes: Nodes{c}, Partitions: Partitions{c},
		Triggers: Triggers{core: c}, DueTimers: DueTimers{core: c},
		Executions: Executions{c}, Sweeps: Sweeps{c}, Inventory: Inventory{c}, Admission: Admission{c},
		Instances: Instances{c, record.NewCache[domain.TenantID, instanceCount](countedTenants)},
		Progress:  Progress{c}, LogAppender: LogAppender{c, r.LogLimits},
	}
}

func (s *core) JobSpec(ctx context.Context, tenant domain.TenantID, id domain.JobID, revision int64) (spec *domain.JobSpec, err error) {
	key := record.RevisionKey{Job: id, Revision: revision}
	if cached, _ := s.Specs.Entries.Get(key); cached.Spec != nil && cached.Tenant == tenant {
		return cached.Spec, nil
	}
	err = s.Look(ctx, "load job revision", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		specs, err := s.Specs.Load(ctx, q, []record.RevisionKey{key})
		if err != nil {
			return err
		}
		if cached := specs[key]; cached.Spec == nil || cached.Tenant != tenant {
			return domain.Errorf(domain.CodeNotFound, "%w", s.Specs.Why(key))
		}
		spec = specs[key].Spec
		return nil
	})
	return spec, err
}

// KnownSpec returns a revision of a job if this node has it at hand; nil
// otherwise.
func (s *core) KnownSpec(job domain.JobID, revision int64) *domain.JobSpec {
	cached, _ := s.Specs.Entries.Peek(record.RevisionKey{Job: job, Revision: revision})
	return cached.Spec
}
