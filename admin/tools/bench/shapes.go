package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// waitShape is a form of waiting work. It is played on real processes, and then the rows, the
// witnesses and the metrics are judged by one rule for all shapes (shapesjudge.go).
type waitShape struct {
	name, says string
	fleetPlan
	flows []flow
	// lasts is for how long fire times are due; 0 = all are due on one second.
	lasts time.Duration
	// meanwhile disturbs the fleet from the first fire time on; nil = nothing does.
	meanwhile func(context.Context, *play) error
	// ownServer: the database server is of this shape alone, because it is broken or slowed.
	ownServer bool
	// serverOnly: the shape needs a database server or a second node.
	serverOnly bool
	// tooMuch: more is due than can be done soon. Runs may wait for longer than settleLimit
	// then, but not without progress.
	tooMuch bool
	// maxRunning limits the runs of the first executor; 0 = no limit.
	maxRunning int64
}

// flow is jobs of one kind.
type flow struct {
	n     int // jobs, or timers
	quick int // jobs in a quick run; 0 = n
	// every is the interval of the jobs; 0 = each fires once.
	every time.Duration
	// past fire times, a second apart, lie before the first one and are all made up.
	past   int
	place  place
	timers bool
	// few: these runs must not wait for the runs of other flows.
	few    bool
	change func(*domain.JobSpec)
}

// place says which executor has the jobs of a flow.
type place int

const (
	onFirst     place = iota // the fleet's executor
	onSecond                 // another executor of the same tenant
	otherTenant              // an executor of another tenant
)

// count is the number of jobs, or of fire times of a flow with past ones.
func (fl flow) count(quick bool, size float64) int {
	n := fl.n
	if quick {
		n = cmp.Or(fl.quick, fl.n)
	}
	return max(1, int(float64(n)*size))
}

// shapes is the table.
func shapeTable() []waitShape {
	second := time.Second
	everySecond := func(n int) []flow { return []flow{{n: n, every: second, change: cron}} }
	steady := func(n int) []flow { return []flow{{n: n, every: second}} }
	one, few := fleetPlan{executors: 1}, fleetPlan{executors: 1, slots: fewSlots}
	three := fleetPlan{executors: 3}
	return []waitShape{
		{name: "timers-burst", says: "timers due on one second", flows: []flow{{n: 100_000, quick: 20_000, timers: true}}},
		{name: "fires-burst", says: "fires of jobs on one second", flows: []flow{{n: 100_000, quick: 20_000}}},
		{name: "cron-1000", says: "1,000 cron jobs each second", flows: everySecond(1000), lasts: 20 * second},
		{name: "cron-3000", says: "3,000 cron jobs each second", flows: everySecond(3000), lasts: 20 * second, tooMuch: true},
		{name: "cron-5000", says: "5,000 cron jobs each second", flows: everySecond(5000), lasts: 20 * second, tooMuch: true},
		{name: "cron-10000", says: "10,000 cron jobs each second", flows: everySecond(10_000), lasts: 20 * second, tooMuch: true},
		{name: "cron-20000", says: "20,000 cron jobs each second", flows: everySecond(20_000), lasts: 20 * second, tooMuch: true},
		{name: "few-slots", says: "3,000/s on 8 slots, handlers return at once", fleetPlan: few, flows: steady(3000), lasts: 20 * second, tooMuch: true},
		{name: "busy-slots", says: "100/s on 8 slots, handlers take 200 ms", fleetPlan: few, flows: []flow{{n: 100, every: second, change: works}}, lasts: 20 * second, tooMuch: true},
		{name: "serial-queue", says: "10,000 waiting runs of one serial job beside 50 jobs each second", flows: []flow{
			{n: 1, past: 10_000, change: serial}, {n: 50, every: second, few: true},
		}, lasts: 20 * second, tooMuch: true},
		{name: "limit-queue", says: "10,000 waiting runs of an executor with a limit beside another executor", fleetPlan: one, maxRunning: 4, flows: []flow{
			{n: 1, past: 10_000}, {n: 50, every: second, place: onSecond, few: true},
		}, lasts: 20 * second, tooMuch: true},
		{name: "tenants", says: "a tenant with 20,000 waiting runs on 8 slots beside a tenant with ten jobs each second", fleetPlan: few, flows: []flow{
			{n: 20_000}, {n: 10, every: second, place: otherTenant, few: true},
		}, lasts: 20 * second, tooMuch: true},
		{name: "executor-away", says: "500/s, the executor away and back", flows: steady(500), lasts: 80 * second, meanwhile: executorAway(60 * second)},
		{name: "executor-away-long", says: "500/s, the executor away for 10 minutes", flows: steady(500), lasts: 11 * time.Minute, meanwhile: executorAway(10 * time.Minute)},
		{name: "maintenance", says: "500/s, maintenance of the executor on and off", flows: steady(500), lasts: 45 * second, meanwhile: maintenanceOnOff},
		{name: "node-joins", says: "500/s, a node joins and leaves", flows: steady(500), lasts: 45 * second, meanwhile: nodeJoins, serverOnly: true},
		{name: "database-killed", says: "500/s, the database killed every 25 s", flows: steady(500), lasts: 60 * second, meanwhile: databaseKilled, ownServer: true},
		{name: "database-frozen", says: "500/s, the database frozen for 6 s every 25 s", flows: steady(500), lasts: 60 * second, meanwhile: databaseFrozen, ownServer: true},
		{name: "database-slow", says: "500/s, statements take 50 ms more for a while", flows: steady(500), lasts: 45 * second, meanwhile: databaseSlow, ownServer: true},
		{name: "misfires", says: "misfire policies over a stop of all nodes", flows: []flow{
			{n: 50, every: second, change: misfire(domain.MisfireSkip)}, {n: 50, every: second, change: misfire(domain.MisfireOnceNow)}, {n: 50, every: second, change: misfire(domain.MisfireAll)},
		}, lasts: 45 * second, meanwhile: nodesStopped},
		{name: "broadcast", says: "300 broadcast jobs each second on three executors", fleetPlan: three, flows: []flow{{n: 300, every: second, change: broadcast}}, lasts: 20 * second, tooMuch: true},
	}
}

// cron has a job fire each second by an expression, with the misfire policy of jobs that name
// none.
func cron(s *domain.JobSpec) {
	s.Schedule = domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: "* * * * * *", Dialect: "seconds", Zone: "UTC", EndAt: s.Schedule.EndAt}
	s.Misfire = domain.Misfire{Policy: domain.MisfireSkip}
}

func works(s *domain.JobSpec) { s.Handler = handlerWorks }

func serial(s *domain.JobSpec) {
	s.Blocking, s.MaxWaiting = domain.BlockSerial, 2*domain.MaxMisfireRuns
}

func broadcast(s *domain.JobSpec) {
	s.Sharding = domain.Sharding{Mode: domain.ShardBroadcast, OnGone: domain.GoneMiss}
}

func misfire(policy domain.MisfirePolicy) func(*domain.JobSpec) {
	return func(s *domain.JobSpec) { s.Misfire = domain.Misfire{Policy: policy} }
}

// chosenShapes are those that were named, or all that a run of this kind has.
func (o *Options) chosenShapes() (chosen []waitShape, err error) {
	all := shapeTable()
	if len(o.Shapes) == 0 {
		return slices.DeleteFunc(all, func(s waitShape) bool { return o.Quick && s.lasts > 2*time.Minute }), nil
	}
	var names []string
	for _, s := range all {
		names = append(names, s.name)
	}
	for _, name := range o.Shapes {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("unknown shape %q: use %s", name, strings.Join(names, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// nodesOf are the numbers of nodes with which a shape is played on a database.
func (o *Options) nodesOf(kind string) []int {
	switch {
	case kind == SQLite:
		return []int{1}
	case len(o.Admins) > 0:
		return o.Admins
	case o.Quick:
		return []int{2}
	}
	return []int{1, 2}
}

// shapes has a part for each shape, database and number of nodes.
func (b *bench) shapes() (parts []part) {
	chosen, err := b.o.chosenShapes()
	if err != nil {
		return []part{{result: Result{Scenario: "shapes", Variant: "the choice of shapes"}, run: func(context.Context, *Result) error { return err }}}
	}
	for _, kind := range b.o.databases(b.o.Quick) {
		for _, nodes := range b.o.nodesOf(kind) {
			for _, s := range chosen {
				if kind == SQLite && (s.ownServer || s.serverOnly) {
					continue
				}
				s.kind, s.admins = kind, nodes
				parts = append(parts, part{
					result: Result{Scenario: "shapes", Variant: s.name + ": " + s.says, Database: kind, Admins: nodes},
					usual:  s.usual(),
					run:    func(ctx context.Context, r *Result) error { return b.playShape(ctx, &s, r) },
				})
			}
		}
	}
	return parts
}

func (s *waitShape) usual() time.Duration {
	usual := s.lasts + 40*time.Second
	if s.tooMuch {
		usual += 2 * time.Minute
	}
	return usual
}

// playShape starts what the shape needs, plays it, and ends all of it again.
func (b *bench) playShape(ctx context.Context, s *waitShape, r *Result) (err error) {
	p := &play{shape: s}
	if s.ownServer {
		if p.server, err = testenv.NewServer(testenv.Options{Dir: b.o.Dir, Args: []string{"--innodb-buffer-pool-size=512M", "--innodb-log-file-size=256M"}}); err != nil {
			return err
		}
		defer func() { err = joinClose(err, p.server.Close) }()
		if p.path, err = proxy.New(p.server.Addr(), proxy.Options{}); err != nil {
			return err
		}
		defer func() { err = joinClose(err, p.path.Close) }()
		own := *b
		own.o.MySQL = p.server.DSN()
		s.nodesFind = func(string) (string, error) { return p.path.Addr(), nil }
		b = &own
	}
	return b.withFleetOf(ctx, s.fleetPlan, func(f *fleet) error {
		p.fleet = f
		if err := p.play(ctx, r); err != nil {
			return err
		}
		if err := errors.Join(r.Shape.broken(), r.Fires.unsound()); err != nil {
			r.Failed, f.keep = err.Error(), true
		}
		return nil
	})
}
