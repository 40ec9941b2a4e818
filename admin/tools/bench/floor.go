package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/completer"
	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
)

// Stages of a run's life, as far as the database sees it.
const (
	stageClaim  = "claim"
	stageOffer  = "offer"
	stageGrant  = "grant"
	stageFinish = "finish"
)

// shape is how the product cuts its work into transactions.
type shape struct {
	claim, offer, finish int // rows in one transaction
	workers              map[string]int
}

// fullShape is the product's, with full batches: the best it can do.
func fullShape() shape {
	return shape{
		claim: scheduler.ClaimLimit, offer: dispatch.OfferBatch, finish: completer.ResultBatch,
		workers: map[string]int{
			stageClaim: 1, stageOffer: dispatch.OfferWorkers, stageGrant: dispatch.OfferWorkers, stageFinish: completer.ResultWorkers,
		},
	}
}

// round is how many runs make every batch a full one.
func (s shape) round() int { return 8 * max(s.claim, s.offer, s.finish) }

// floorPlan says what is recorded.
type floorPlan struct {
	kind    string
	handler string
	shape   shape
	lives   int
	// ahead: everything is claimed before the first offer, as before a burst.
	ahead bool
}

// floor is a recorded life of so many runs, sent again with nothing around it.
type floor struct {
	steps  []step
	result *replayed
	plan   floorPlan
}

// measureFloor records the plan's lives on one fresh database and repeats them
// on another one with the same rows.
func (b *bench) measureFloor(ctx context.Context, p floorPlan) (_ *floor, err error) {
	dir, err := os.MkdirTemp(b.o.Dir, "floor-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if removeErr := os.RemoveAll(dir); err == nil {
			err = removeErr
		}
	}()
	seed := newFloorSeed(p)
	f := &floor{plan: p}
	if f.steps, err = b.recordLives(ctx, dir, seed, p); err != nil {
		return nil, fmt.Errorf("record the floor's statements: %w", err)
	}
	f.result, err = b.repeatLives(ctx, dir, seed, f.steps, p)
	return f, err
}

// floorSeed is the rows that both databases begin with.
type floorSeed struct {
	tenant   domain.Tenant
	executor domain.Executor
	instance domain.Instance
	jobs     []domain.Job
	first    time.Time
}

func newFloorSeed(p floorPlan) *floorSeed {
	ids := domain.NewIDSource(loaderNode, time.Now)
	// Far enough back that every fire time of the recording has passed.
	s := &floorSeed{first: time.Now().Add(-24 * time.Hour).Truncate(time.Second).UTC()}
	s.tenant = domain.Tenant{ID: domain.TenantID(ids.Next()), Name: "floor", CreatedAt: s.first}
	s.executor = domain.Executor{ID: domain.ExecutorID(ids.Next()), TenantID: s.tenant.ID, Name: "floor", CreatedAt: s.first}
	s.instance = domain.Instance{
		ID: domain.InstanceID(ids.Next()), TenantID: s.tenant.ID, Executor: s.executor.ID, BootID: "floor", Name: "floor",
		Handlers: []string{p.handler}, Slots: loadSlots, StartedAt: s.first,
	}
	n := p.lives
	if !p.ahead {
		n = min(n, p.shape.round()) // each fires once a round
	}
	for i := range n {
		id := domain.JobID(ids.Next())
		for domain.PartitionOf(id) != i%domain.Partitions { // all partitions alike, so that batches come out full
			id = domain.JobID(ids.Next())
		}
		s.jobs = append(s.jobs, domain.Job{
			ID: id, TenantID: s.tenant.ID, Executor: s.executor.ID, State: domain.JobEnabled,
			Source: domain.SourceConsole, CreatedBy: "bench", Spec: ticking(number("floor", i), p.handler, time.Second, s.first),
		})
	}
	return s
}

func (s *floorSeed) plant(ctx context.Context, st *gormstore.Store) error {
	if err := st.CreateTenant(ctx, s.tenant); err != nil {
		return err
	}
	if err := st.CreateExecutor(ctx, s.executor); err != nil {
		return err
	}
	registered, err := st.RegisterInstances(ctx, []store.RegisterInstanceParams{{Instance: s.instance, TTL: time.Hour}})
	if err != nil {
		return err
	}
	if registered[0].Err != nil {
		return registered[0].Err
	}
	return benchdata.LoadJobs(ctx, st.DB, s.jobs, func(int) time.Time { return s.first })
}

// hold takes all partitions of a new database: in both the terms are the same.
func (s *floorSeed) hold(ctx context.Context, st *gormstore.Store) ([]domain.PartitionTerm, error) {
	table, err := st.ReadPartitions(ctx)
	if err != nil {
		return nil, err
	}
	want := make([]domain.PartitionTerm, len(table.Leases))
	for i, l := range table.Leases {
		want[i] = l.PartitionTerm
	}
	got, err := st.AcquirePartitions(ctx, store.AcquirePartitionsParams{Node: 1, BootID: "floor", Want: want, TTL: time.Hour})
	if err == nil && len(got) != domain.Partitions {
		err = fmt.Errorf("acquired %d of %d partitions", len(got), domain.Partitions)
	}
	held := make([]domain.PartitionTerm, len(got))
	for i, l := range got {
		held[i] = l.PartitionTerm
	}
	return held, err
}

// recordLives leads runs through the store, one call after the other.
func (b *bench) recordLives(ctx context.Context, dir string, seed *floorSeed, p floorPlan) (_ []step, err error) {
	db, err := b.newDatabase(ctx, p.kind, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = joinClose(err, db.drop) }()
	r := &recorder{}
	o := db.options()
	ids := domain.NewIDSource(loaderNode, time.Now)
	o.NewID, o.Connector = ids.Next, r.wrap
	st, err := gormstore.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = joinClose(err, st.Close) }()
	if err := seed.plant(ctx, st); err != nil {
		return nil, err
	}
	l := &lives{st: st, r: r, ids: ids, seed: seed, p: p, madeBy: map[domain.ExecutionID]int{}}
	if l.held, err = seed.hold(ctx, st); err != nil {
		return nil, err
	}
	if p.ahead {
		err = l.ahead(ctx)
		return l.steps, err
	}
	for _, j := range seed.jobs { // the product knows them by heart after a while
		if _, err := st.JobSpec(ctx, j.TenantID, j.ID, 1); err != nil {
			return nil, err
		}
	}
	err = l.stream(ctx)
	return l.steps, err
}

func (b *bench) repeatLives(ctx context.Context, dir string, seed *floorSeed, steps []step, p floorPlan) (_ *replayed, err error) {
	// A second folder: SQLite's file has a fixed name.
	if dir, err = os.MkdirTemp(dir, "again-"); err != nil {
		return nil, err
	}
	db, err := b.newDatabase(ctx, p.kind, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = joinClose(err, db.drop) }()
	r := &recorder{} // for its connectors; it records nothing
	o := db.options()
	o.NewID, o.Connector = domain.NewIDSource(loaderNode, time.Now).Next, r.wrap
	st, err := gormstore.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	if err = seed.plant(ctx, st); err == nil {
		_, err = seed.hold(ctx, st)
	}
	if err := joinClose(err, st.Close); err != nil {
		return nil, err
	}
	again := &replay{steps: steps, workers: p.shape.workers, pools: r.pools, shared: map[int]*sharedConn{}}
	if p.kind == SQLite {
		writer := writerOf(steps)
		conn, err := r.pools[writer].Connect(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { err = joinClose(err, conn.Close) }()
		again.shared[writer] = &sharedConn{conn: conn}
	}
	return again.run(ctx)
}

// writerOf is the pool that begins transactions.
func writerOf(steps []step) int {
	for _, s := range steps {
		for _, o := range s.ops {
			if o.kind == opBegin {
				return o.pool
			}
		}
	}
	return 0
}

func joinClose(err error, closer func() error) error {
	if closeErr := closer(); err == nil {
		return closeErr
	}
	return err
}

// perSecond is the rate of whole lives.
func (f *floor) perSecond() float64 { return float64(f.plan.lives) / f.result.took.Seconds() }

// stages sums the steps up.
func (f *floor) stages() []Stage {
	var out []Stage
	at := map[string]int{}
	for i, s := range f.steps {
		n, ok := at[s.stage]
		if !ok {
			n = len(out)
			at[s.stage] = n
			out = append(out, Stage{Name: s.stage})
		}
		for _, o := range s.ops {
			switch o.kind {
			case opBegin:
				out[n].Transactions++
			case opExec, opQuery, opExecStmt:
				out[n].Statements++
			}
		}
		out[n].Busy += seconds(f.result.busy[i])
	}
	return out
}

// lateness is when runs could have started, counted from the last claim: the
// floor of a burst.
func (f *floor) lateness() *Spread {
	starts := stageGrant
	if f.plan.handler == handlerIdempotent {
		starts = stageOffer
	}
	var claimed time.Duration
	for i, s := range f.steps {
		if s.stage == stageClaim {
			claimed = max(claimed, f.result.done[i])
		}
	}
	var ms []float64
	for i, s := range f.steps {
		if s.stage != starts {
			continue
		}
		for range s.lives {
			ms = append(ms, float64((f.result.done[i]-claimed).Microseconds())/1000)
		}
	}
	return spreadOf(ms)
}
