package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/executor-sdk/simulate"
)

const (
	tenant     = domain.TenantID(1)
	executorID = domain.ExecutorID(2)
)

// Phases of a run. Faults begin at faultsFrom and end at healAt, when the jobs
// fire for the last time too; healBound after that nothing may be left to do.
const (
	faultsFrom = 3 * time.Second
	healAt     = 60 * time.Second
	healBound  = 10 * time.Minute
)

// world is everything.
type world struct {
	loop
	faults *faults
	epoch  time.Time
	db     *database
	plans  *timing.Cache
	nodes  []*node
	execs  []*executor

	dbOffset time.Duration                // of the database's clock
	dbLowest time.Duration                // how far it was set back in all
	stepped  bool                         // it was set at all
	believed time.Duration                // how far ahead of the truth it may be, and be believed
	failures []string                     // keys of the alerts that there have to be
	sentLate map[attemptKey]time.Duration // how long after their job was stopped attempts were sent
	down     time.Duration                // the database is away until then
	slowed   time.Duration                // how much longer each way to and from the database takes
	work     time.Duration                // how long every handler takes; 0: by chance
	cuts     map[string]time.Duration
	lastID   int64
	timed    bool // there are timers

	instanceOrder []domain.InstanceID
	claimer       *node
	witness       *witness
	broken        []string // what was found
}

func newWorld(c Case, broken rules) (*world, error) {
	w, err := emptyWorld(c, broken)
	if err != nil {
		return nil, err
	}
	r := w.faults.chance("world")
	w.makeJobs(r, c.Shards)
	if c.Timers {
		w.makeTimers(w.faults.chance("timers"))
	}
	for what := range r.IntN(3) {
		key, maximum := limitOf(r, what)
		w.db.setLimit(key, maximum)
	}
	for range 1 + r.IntN(3) {
		w.addNode(between(r, -maxSkew, maxSkew))
	}
	for range 1 + r.IntN(3) {
		w.addExecutor(1+r.IntN(6), between(r, -30*time.Second, 30*time.Second))
	}
	w.begin()
	w.planFaults()
	return w, nil
}

// emptyWorld has a database without jobs, and no process.
func emptyWorld(c Case, broken rules) (*world, error) {
	plans, err := timing.NewCache(64)
	if err != nil {
		return nil, err
	}
	w := &world{
		loop: loop{rng: rand.New(rand.NewPCG(c.Seed, streamSeed("ties"))), hash: fnvOffset}, faults: newFaults(c), plans: plans,
		epoch: time.UnixMilli(1_800_000_000_000).UTC(), cuts: map[string]time.Duration{}, sentLate: map[attemptKey]time.Duration{},
	}
	w.witness = &witness{w: w, starts: map[attemptKey]*started{}, byRun: map[domain.ExecutionID][]*started{}, byJob: map[domain.JobID][]*started{}, turns: map[domain.ExecutionID]int{}, holding: map[domain.ExecutionID]bool{}}
	w.db = newDatabase(w.dbNow)
	w.db.newID = w.newID
	w.db.rules = broken
	w.db.misfire = scheduler.Misfire(plans.Plan)
	w.db.changed, w.db.claimed = w.checkMove, w.checkClaim
	return w, nil
}

func (w *world) addNode(skew time.Duration) {
	i := len(w.nodes)
	w.nodes = append(w.nodes, &node{actor: actor{name: fmt.Sprintf("n%d", i)}, w: w, index: i, skew: skew})
}

func (w *world) addExecutor(slots int, skew time.Duration) {
	i := len(w.execs)
	w.execs = append(w.execs, &executor{actor: actor{name: fmt.Sprintf("e%d", i)}, w: w, index: i, slots: slots, skew: skew})
}

// begin starts all processes.
func (w *world) begin() {
	for _, n := range w.nodes {
		n.starts()
	}
	for _, e := range w.execs {
		if w.faults.chance("host "+e.name).IntN(3) > 0 {
			e.host = simulate.OnMachine{15: 1}
		}
		e.boots()
	}
}

func (w *world) dbNow() time.Time { return w.epoch.Add(w.now + w.dbOffset).Truncate(time.Millisecond) }

func (w *world) newID() int64 { w.lastID++; return 1000 + w.lastID }

// makeJobs makes jobs of all sorts. They fire on a grid that starts at the
// epoch, so that what has to come of them is known without a schedule.
func (w *world) makeJobs(r *rand.Rand, shards bool) {
	routes := w.faults.chance("routing")
	for i := range 2 + r.IntN(5) {
		every := oneOf(r, 1, 2, 3, 5, 10) * int(time.Second)
		spec := domain.JobSpec{
			Name: fmt.Sprintf("job %d", i), Handler: oneOf(r, handlerOnce, handlerSafe),
			Schedule:    domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: time.Duration(every), Anchor: w.epoch, EndAt: w.epoch.Add(healAt)},
			Misfire:     domain.Misfire{Policy: oneOf(r, domain.MisfireSkip, domain.MisfireOnceNow, domain.MisfireAll), Window: time.Minute, MaxRuns: 5},
			Routing:     oneOf(routes, domain.Routings...),
			Blocking:    oneOf(r, domain.BlockSerial, domain.BlockDiscard, domain.BlockCover, domain.BlockParallel),
			Parallelism: r.IntN(3), OnLost: oneOf(r, domain.OnLostAuto, domain.OnLostFail, domain.OnLostRetry),
			Retry:   domain.Retry{MaxAttempts: 1 + r.IntN(3), Delay: between(r, 100*time.Millisecond, 4*time.Second)},
			Timeout: oneOf(r, 0, 0, 5*time.Second), DispatchTimeout: oneOf(r, 20*time.Second, time.Minute, 0),
			Priority: r.IntN(5),
		}
		if queue := w.faults.chance("queue"); queue.IntN(2) == 0 {
			spec.MaxWaiting = 1 + queue.IntN(4)
		}
		if routes.IntN(4) == 0 {
			spec.SendRetry = domain.SendRetry{MaxSends: 1 + routes.IntN(4), Delay: between(routes, 0, 2*time.Second), Backoff: 2}
		}
		switch r.IntN(4) {
		case 0:
			spec.Schedule.JitterMax = time.Second
		case 1:
			spec.Schedule.Kind = domain.ScheduleFixedDelay
		}
		if cut := w.faults.chance("shards"); shards && cut.IntN(2) == 0 {
			spec.Sharding = shardsOf(cut)
		}
		w.db.createJob(domain.Job{
			ID: domain.JobID(w.newID()), TenantID: tenant, Executor: executorID, Partition: r.IntN(domain.Partitions), Revision: 1, Spec: spec,
		}, timing.Next(w.epoch, &spec))
	}
}

// planFaults spreads those that are no matter of a message or a statement.
func (w *world) planFaults() {
	for _, kind := range []string{faultCut, faultDown, faultClock, faultNode, faultFreeze, faultExecutor, faultCancel, faultPause, faultEdit, faultDelete, faultLimit, faultStop, faultMaintain} {
		if (kind == faultStop || kind == faultMaintain) && !w.faults.mayPlan(kind) {
			continue // cases that are older than it stay as they are, event by event
		}
		r := w.faults.chance("plan " + kind)
		count := 1 + r.IntN(6)
		if kind == faultDelete {
			count = 1
		}
		for n := range count {
			at := faultsFrom + time.Duration(r.Float64()*float64(healAt-faultsFrom))
			long := between(r, 200*time.Millisecond, 25*time.Second)
			who, what, size := r.IntN(1<<16), r.IntN(1<<16), between(r, 500*time.Millisecond, 5*time.Minute)
			if at+long > healAt {
				long = healAt - at
			}
			w.after(nil, at, func() {
				if w.faults.allow(kind, "planned", n) {
					w.trace("fault", kind, int64(who), int64(what))
					w.inject(kind, long, who, what, size)
				}
			})
		}
	}
	w.after(nil, healAt, w.heal)
}

func (w *world) inject(kind string, long time.Duration, who, what int, size time.Duration) {
	n, e := w.nodes[who%len(w.nodes)], w.execs[what%len(w.execs)]
	switch kind {
	case faultCut:
		directions := [][]string{{n.name + ">" + e.name, e.name + ">" + n.name}, {n.name + ">" + e.name}, {e.name + ">" + n.name}}[(who+what)%3]
		for _, d := range directions {
			w.cuts[d] = max(w.cuts[d], w.now+long)
		}
	case faultDown:
		w.down = max(w.down, w.now+long)
	case faultClock:
		if what%2 == 0 {
			size = -size
			w.dbLowest += size
		}
		w.setClock(size)
	case faultNode:
		n.crash()
		w.after(nil, long, func() { w.restartNode(n) })
	case faultFreeze:
		if what%2 == 0 {
			n.paused = max(n.paused, w.now+long)
			n.thawed = n.paused
		} else {
			e.paused = max(e.paused, w.now+long)
		}
	case faultExecutor:
		if size.Milliseconds()%2 == 0 {
			e.fails()
		} else {
			e.crash()
		}
		w.after(nil, long, func() { w.restartExecutor(e) })
	case faultStop:
		e.stops(time.Duration(size.Milliseconds()%4000)*time.Millisecond, func() {
			w.after(nil, long, func() { w.restartExecutor(e) })
		})
	default:
		w.operate(n, kind, long, what)
	}
}

// setClock moves the database's clock. A leap is doubted when it exceeds
// MaxJump and what the way of the samples leaves open, unless the nodes' own
// clocks, which are a little off, agree with it.
func (w *world) setClock(by time.Duration) {
	trusted := w.dbOffset <= w.believed
	w.dbOffset += by
	w.stepped = true
	open := scheduler.MaxJump
	for _, n := range w.nodes {
		if n.up {
			open = max(open, n.clock.Latest().Sub(n.clock.Now()))
		}
	}
	if trusted && by <= open || w.dbOffset <= scheduler.MaxJump+2*maxSkew {
		w.believed = max(w.believed, w.dbOffset)
	}
}

// maxSkew is how far the nodes' own clocks are off.
const maxSkew = 2 * time.Second

func (w *world) restartNode(n *node) {
	if !n.alive {
		n.starts()
	}
}

func (w *world) restartExecutor(e *executor) {
	if !e.alive {
		e.boots()
	}
}

// heal ends all faults.
func (w *world) heal() {
	w.trace("world", "heal", 0, 0)
	w.faults.over = true
	w.down = 0
	for _, n := range w.nodes {
		n.paused, n.thawed = min(n.paused, w.now), min(n.thawed, w.now)
		w.restartNode(n)
	}
	for _, e := range w.execs {
		e.paused = min(e.paused, w.now)
		w.restartExecutor(e)
	}
	w.confirmClock()
}

// confirmClock is an operator who looks after held clocks from time to time.
func (w *world) confirmClock() {
	w.after(nil, 5*time.Second, func() {
		w.db.confirmed = w.dbNow()
		w.confirmClock()
	})
}

// run lets everything happen. Faults that are found end it.
func (w *world) run() {
	end := healAt + healBound - w.dbLowest
	settled := time.Duration(0)
	for len(w.broken) == 0 {
		if !w.step(end) {
			break
		}
		if w.now > healAt+5*time.Second && w.now > settled {
			settled = w.now + time.Second
			end = healAt + healBound - w.dbLowest
			if w.idle() {
				break
			}
		}
	}
	if len(w.broken) == 0 {
		w.checkEnd()
	}
	for _, n := range w.nodes {
		n.die()
	}
}

// idle says whether nothing is left to do: all fire times have passed and are
// planned, all runs have ended, and nobody owes anybody a result.
func (w *world) idle() bool {
	for _, id := range w.db.jobOrder {
		if !w.db.jobs[id].trigger.NextFireAt.Equal(domain.Never) {
			return false
		}
	}
	if len(w.db.living()) > 0 || len(w.db.timers) > 0 {
		return false
	}
	for _, e := range w.execs {
		if !e.alive || e.machine.Owed() > 0 || len(e.handlers) > 0 {
			return false
		}
	}
	return true
}

// fail enters something that must not be.
func (w *world) fail(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf("%s: ", w.now)+fmt.Sprintf(format, args...))
}

// Outcome is what came of a case.
type Outcome struct {
	Broken   []string // what must not be; empty: nothing
	Injected []string // the faults, in order
	Kinds    []string
	Hash     uint64
	Steps    int
	Runs     int
	Starts   int
	Last     []string // what happened last
	Took     time.Duration
}

// Run lets a case happen.
func Run(c Case) (Outcome, error) { return runWith(c, rules{}) }

func runWith(c Case, broken rules) (Outcome, error) {
	w, err := newWorld(c, broken)
	if err != nil {
		return Outcome{}, err
	}
	w.run()
	o := Outcome{
		Broken: w.broken, Injected: w.faults.injected, Kinds: w.faults.kinds(), Hash: w.hash, Steps: w.steps,
		Runs: len(w.db.order), Starts: len(w.witness.starts), Took: w.now,
	}
	if len(w.broken) > 0 {
		for i := range w.tail {
			if t := w.tail[(w.told+i)%len(w.tail)]; t.who != "" {
				o.Last = append(o.Last, fmt.Sprintf("%s %s %s %d %d", t.at, t.who, t.what, t.a, t.b))
			}
		}
	}
	return o, nil
}
