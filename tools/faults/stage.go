package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// stage is where one row plays: its fleet, its history and its result.
type stage struct {
	set    *settings
	row    row
	dir    string
	result result

	history *verify.Writer
	server  *testenv.Server
	cluster *cluster
	db      *lab.Database
	fleet   *lab.Fleet
	tenant  *tenant
	plan    fleetPlan
	canary  string // job that is run by hand
	atRest  []map[string]float64
	from    time.Time // fire times from here on are judged
	cleanup []func() error
	firing  sync.Map // job id → *tenant: what the load consists of
	// unjudged are jobs of which nobody expects anything.
	unjudged map[string]bool

	mu        sync.Mutex
	executors []*witnessProcess // guarded by mu; of the first tenant
	others    []*witnessProcess // of further tenants
	recorded  int               // guarded by mu; faults in the history
	judged    verify.Plan       // what the row adds to the plan
}

// fleetPlan says what a row needs.
type fleetPlan struct {
	admins, executors int
	// serverArgs are added to the database server's command line.
	serverArgs []string
	// server is used instead of a new one, and cluster instead of any.
	server  *testenv.Server
	cluster *cluster
	// binary of admin nodes; empty = the ordinary one.
	binary string
	// database returns where admin i finds the database, given where it is;
	// nil = there.
	database func(i int, addr string) (string, error)
	// host, advertise, env: see lab.Options.
	host      func(i int) string
	advertise func(i int, listens string) (string, error)
	env       func(i int) []string
	// space is the network namespace of executor k; nil = ours.
	space func(k int) string
	// prepare changes how executor k is started; may be nil.
	prepare func(k int, c *lab.Command)
	// slots of an executor; 0 = 500.
	slots int
}

// witnessProcess is one executor: settings that outlive its process.
type witnessProcess struct {
	*lab.Process
	name    string
	command lab.Command
}

// open starts database, admin nodes and executors, and a job to try them by.
func (s *stage) open(ctx context.Context, p fleetPlan) error {
	s.plan = p
	var err error
	if s.history, err = verify.CreateFile(s.historyDir(), "director"); err != nil {
		return err
	}
	if s.server, s.cluster = p.server, p.cluster; s.server == nil && s.cluster == nil {
		if s.server, err = s.set.newServer(p.serverArgs...); err != nil {
			return err
		}
	}
	version, err := s.place().Version()
	if err != nil {
		return err
	}
	s.result.Database = fmt.Sprintf("%s %s", s.set.product, version)
	if s.db, err = lab.CreateDatabase(ctx, s.place(), "carillon"); err != nil {
		return err
	}
	dsns := make([]string, p.admins)
	for i := range dsns {
		if dsns[i], err = s.dsn(ctx, i); err != nil {
			return err
		}
	}
	binary := p.binary
	if binary == "" {
		binary = s.set.binary
	}
	s.fleet, err = lab.NewFleet(lab.Options{
		Dir: s.dir, Binary: binary, DSN: func(i int) string { return "mysql:" + dsns[i] },
		Host: p.host, Advertise: p.advertise, Env: p.env,
	})
	if err != nil {
		return err
	}
	for range p.admins {
		if _, err := s.fleet.AddAdmin(ctx); err != nil {
			return err
		}
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	for range p.executors {
		if _, err := s.addExecutor(); err != nil {
			return err
		}
	}
	return s.settle(ctx)
}

// place is the server, or the endpoint of the cluster.
func (s *stage) place() interface {
	DSN() string
	Addr() string
	Version() (string, error)
	Close() error
} {
	if s.cluster != nil {
		return s.cluster
	}
	return s.server
}

// dsn makes the database user of admin i.
func (s *stage) dsn(ctx context.Context, i int) (string, error) {
	addr := ""
	if s.plan.database != nil {
		var err error
		if addr, err = s.plan.database(i, s.place().Addr()); err != nil {
			return "", err
		}
	}
	return s.db.User(ctx, fmt.Sprintf("admin_%d", i+1), addr)
}

// enter makes the tenant's executor and the canary.
func (s *stage) enter(ctx context.Context) error {
	first := s.fleet.Admins[0].API
	me, err := first.Me(ctx)
	if err != nil {
		return err
	}
	s.tenant = &tenant{id: me.Value.Tenant.ID, api: func(i int) *lab.API { return s.fleet.Admins[i%len(s.fleet.Admins)].API }}
	if s.tenant.executorID, s.tenant.token, err = first.MakeExecutor(ctx, "witness"); err != nil {
		return err
	}
	ids, err := s.create(ctx, s.tenant, []job{{name: "canary", handler: handlerTickIdem, onLost: "retry", maxAttempts: 3}})
	if err == nil {
		s.canary = ids[0]
	}
	return err
}

func (s *stage) historyDir() string { return filepath.Join(s.dir, "history") }

// addExecutor starts one more executor process.
func (s *stage) addExecutor() (*witnessProcess, error) {
	s.mu.Lock()
	k := len(s.executors)
	s.mu.Unlock()
	w, err := s.startWitness(fmt.Sprintf("executor-%d", k+1), s.tenant, func(c *lab.Command) {
		if s.plan.space != nil {
			c.Namespace = s.plan.space(k)
		}
		if s.plan.prepare != nil {
			s.plan.prepare(k, c)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.executors = append(s.executors, w)
	return w, err
}

// startWitness starts an executor process of a tenant; change may be nil.
func (s *stage) startWitness(name string, t *tenant, change func(*lab.Command)) (*witnessProcess, error) {
	slots := s.plan.slots
	if slots == 0 {
		slots = 500
	}
	w := &witnessProcess{name: name, command: lab.Command{
		Name: name, Dir: s.dir, Env: []string{"CARILLON_EXECUTOR_TOKEN=" + t.token}, Program: s.set.self,
		Args: []string{"executor", "-addr", s.fleet.Admins[0].Wire, "-journal", filepath.Join(s.dir, name),
			"-history", s.historyDir(), "-instance", name, "-slots", fmt.Sprint(slots)},
	}}
	if change != nil {
		change(&w.command)
	}
	return w, s.startExecutor(w)
}

// startExecutor starts it (again).
func (s *stage) startExecutor(w *witnessProcess) (err error) {
	w.Process, err = s.fleet.StartExecutor(w.command)
	return err
}

// settle waits until everything is up.
func (s *stage) settle(ctx context.Context) error {
	for _, a := range s.fleet.Admins {
		if err := a.API.Ready(ctx); err != nil {
			return err
		}
		if err := s.history.Append(&verify.Node{Node: a.Name, Role: "admin", At: verify.At(time.Now())}); err != nil {
			return err
		}
		if err := a.API.Online(ctx, s.tenant.executorID, len(s.executors), time.Minute); err != nil {
			return err
		}
	}
	return nil
}

// fault records one injection: from before begin until after it returned.
func (s *stage) fault(kind, target string, inject func() error) error {
	f := &verify.Fault{ID: s.row.id, Kind: kind, Target: target, Start: verify.At(time.Now())}
	err := inject()
	f.End = verify.At(time.Now())
	s.mu.Lock()
	s.result.Injected++
	s.recorded++
	s.mu.Unlock()
	return errors.Join(err, s.history.Append(f))
}

// faults records many injections of one kind at once.
func (s *stage) faults(kind, target string, from, to time.Time, n int) error {
	s.mu.Lock()
	s.result.Injected += n
	s.recorded++
	s.mu.Unlock()
	return s.history.Append(&verify.Fault{
		ID: s.row.id, Kind: kind, Target: target, Start: verify.At(from), End: verify.At(to), Note: fmt.Sprintf("%d times", n),
	})
}

// figure sets the row's own figure.
func (s *stage) figure(format string, args ...any) { s.result.Figure = fmt.Sprintf(format, args...) }

// goal notes a figure that is over its goal.
func (s *stage) goal(what string, got, goal float64, unit string) {
	if got > goal {
		s.result.Over = append(s.result.Over, fmt.Sprintf("%s %.4g %s, goal %.4g", what, got, unit, goal))
	}
}

// defers runs do when the row ends, last first, after the fleet has stopped.
func (s *stage) defers(do func() error) { s.cleanup = append(s.cleanup, do) }

// rate of the steady load, in fires per second.
func (s *stage) rate() int {
	if s.set.rate > 0 {
		return s.set.rate
	}
	return pick(s.set, 200, 100)
}

// rounds is how often to inject.
func (s *stage) rounds(long, short int) int {
	if s.set.rounds > 0 {
		return s.set.rounds
	}
	if s.set.onMySQL() {
		short = max(2, short/3)
	}
	return pick(s.set, long, short)
}

// lasts is how long a row that lasts goes on with what it does.
func (s *stage) lasts(long, short time.Duration) time.Duration {
	if s.set.lasts > 0 {
		return s.set.lasts
	}
	return pick(s.set, long, short)
}

// close stops everything; a second call does nothing.
func (s *stage) close() error {
	if s.fleet != nil {
		s.fleet.Close()
		s.fleet = nil
	}
	var errs []error
	if s.server != nil || s.cluster != nil {
		errs = append(errs, s.place().Close())
		s.server, s.cluster = nil, nil
	}
	for i := len(s.cleanup) - 1; i >= 0; i-- {
		errs = append(errs, s.cleanup[i]())
	}
	s.cleanup = nil
	if s.history != nil {
		errs = append(errs, s.history.Close())
		s.history = nil
	}
	return errors.Join(errs...)
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return errors.New("interrupted")
	case <-time.After(d):
		return nil
	}
}

func waitUntil(ctx context.Context, t time.Time) error { return wait(ctx, time.Until(t)) }
