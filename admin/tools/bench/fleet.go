package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// executorsPerFleet is two: one would not show what distribution costs.
const executorsPerFleet = 2

// fleet is what one scenario runs on: a database, admin nodes, executors.
type fleet struct {
	b        *bench
	dir      string
	history  string
	db       *database
	lab      *lab.Fleet
	store    *gormstore.Store // a connection of our own, for loading and counting
	ids      *domain.IDSource
	tenant   domain.TenantID
	executor domain.ExecutorID
	// joinToken is what the executors join with
	joinToken string
	// processes in the order of the path; the database last, if it can be seen
	processes []watched
	profiles  []profiled
	keep      bool // data and logs, because something went wrong
	setters   int64
	executors []*executorProcess // of the first executor
}

// executorProcess is one process of an executor. It can be started again.
type executorProcess struct {
	command lab.Command
	*lab.Process
}

// seat is an executor and its tenant.
type seat struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
}

type watched struct {
	name string
	pid  int
}

// fleetPlan says what a scenario runs on.
type fleetPlan struct {
	kind   string // of database
	admins int
	slots  int // of each executor; 0 = what the SDK does by default
	// executors is how many processes there are; 0 = executorsPerFleet.
	executors int
	// nodesFind returns the address at which nodes find the database server, given its own;
	// nil = its own.
	nodesFind func(addr string) (string, error)
}

func (p fleetPlan) processes() int { return cmp.Or(p.executors, executorsPerFleet) }

// startFleet starts everything on an empty database of a kind. Whoever gets a
// fleet closes it.
func (b *bench) startFleet(ctx context.Context, p fleetPlan) (_ *fleet, err error) {
	f := &fleet{b: b, ids: domain.NewIDSource(loaderNode, time.Now)}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if f.dir, err = os.MkdirTemp(b.o.Dir, "fleet-"); err != nil {
		return f, err
	}
	f.history = filepath.Join(f.dir, "history")
	if err := os.Mkdir(f.history, 0o700); err != nil {
		return f, err
	}
	if f.db, err = b.newDatabase(ctx, p.kind, f.dir); err != nil {
		return f, err
	}
	if f.store, err = f.db.open(ctx, f.ids); err != nil {
		return f, err
	}
	if p.nodesFind != nil {
		if err := f.db.moveFlag(p.nodesFind); err != nil {
			return f, err
		}
	}
	if err := f.startAdmins(ctx, p.admins); err != nil {
		return f, err
	}
	return f, f.startExecutors(ctx, p)
}

// withFleet lends a fleet with more slots than are needed to do, and keeps its
// data when something went wrong.
func (b *bench) withFleet(ctx context.Context, kind string, admins int, do func(*fleet) error) error {
	return b.withFleetOf(ctx, fleetPlan{kind: kind, admins: admins, slots: loadSlots}, do)
}

// withFleetOf is withFleet with a plan.
func (b *bench) withFleetOf(ctx context.Context, p fleetPlan, do func(*fleet) error) (err error) {
	f, err := b.startFleet(ctx, p)
	if err != nil {
		return err
	}
	defer func() {
		f.keep = f.keep || err != nil && (ctx.Err() == nil || errors.Is(context.Cause(ctx), ErrBudget))
		err = joinClose(err, f.close)
	}()
	return do(f)
}

func (f *fleet) startAdmins(ctx context.Context, n int) (err error) {
	f.lab, err = lab.NewFleet(lab.Options{
		Dir: f.dir, Binary: f.b.o.Binary, DSN: func(int) string { return f.db.flag },
		Flags: func(i int) []string {
			return append(f.profileFlags(fmt.Sprintf("admin-%d", i+1), "--profiles"), "--webhook-allow", sinkNetwork)
		},
	})
	if err != nil {
		return err
	}
	for range n {
		a, err := f.lab.AddAdmin(ctx)
		if err != nil {
			return err
		}
		f.processes = append(f.processes, watched{a.Name, a.Process().PID()})
	}
	return nil
}

func (f *fleet) startExecutors(ctx context.Context, plan fleetPlan) error {
	api := f.lab.Admins[0].API
	id, token, err := api.MakeExecutor(ctx, "bench")
	if err != nil {
		return err
	}
	if f.executor, err = domain.ParseID[domain.ExecutorID](id); err != nil {
		return err
	}
	tenant, err := f.store.FindTenantByName(ctx, auth.FirstTenant)
	if err != nil {
		return err
	}
	f.tenant, f.joinToken = tenant.ID, token
	for i := range plan.processes() {
		name := fmt.Sprintf("executor-%d", i+1)
		p := &executorProcess{command: f.executorCommand(name, "bench", token, plan.slots)}
		if p.Process, err = f.lab.StartExecutor(p.command); err != nil {
			return err
		}
		f.executors = append(f.executors, p)
		f.processes = append(f.processes, watched{name, p.PID()})
	}
	if f.db.pid != 0 {
		f.processes = append(f.processes, watched{"database", f.db.pid})
	}
	return f.connected(ctx, plan.processes())
}

// executorCommand starts a process of the executor with a name.
func (f *fleet) executorCommand(process, executor, token string, slots int) lab.Command {
	return lab.Command{
		Name: process, Program: f.b.o.Executor, Env: []string{"CARILLON_EXECUTOR_TOKEN=" + token},
		Args: append([]string{
			"executor", "--name", executor, "--addresses", f.lab.Admins[0].Wire,
			"--journal", filepath.Join(f.dir, process), "--history", f.history, "--slots", strconv.Itoa(slots),
		}, f.profileFlags(process, "--profiles")...),
	}
}

// connected waits until every executor has a session on every node.
func (f *fleet) connected(ctx context.Context, executors int) error {
	for _, a := range f.lab.Admins {
		err := lab.Until(ctx, time.Minute, "executors connected to "+a.Name, func(ctx context.Context) error {
			m, err := a.API.Metrics(ctx)
			if err == nil && m["carillon_sessions"] < float64(executors) {
				err = fmt.Errorf("%g sessions", m["carillon_sessions"])
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// profileFlags makes a process serve profiles, when they were asked for.
func (f *fleet) profileFlags(name, flag string) []string {
	if f.b.o.Profiles == "" {
		return nil
	}
	address, err := lab.FreePort("127.0.0.1")
	if err != nil {
		return nil // it then has no profile, and the fetch says so
	}
	f.profiles = append(f.profiles, profiled{name, address})
	return []string{flag, address}
}

// load writes n enabled jobs of an executor that fire first at next.
func (f *fleet) load(ctx context.Context, executor domain.ExecutorID, n int, spec func(i int) domain.JobSpec, next func(i int) time.Time) ([]domain.JobID, error) {
	return f.loadAt(ctx, seat{f.tenant, executor}, n, spec, next)
}

// loadAt is load for an executor of any tenant.
func (f *fleet) loadAt(ctx context.Context, at seat, n int, spec func(i int) domain.JobSpec, next func(i int) time.Time) ([]domain.JobID, error) {
	const chunk = 10_000
	all := make([]domain.JobID, 0, n)
	for len(all) < n {
		base := len(all)
		jobs := make([]domain.Job, min(chunk, n-base))
		for i := range jobs {
			jobs[i] = domain.Job{
				ID: domain.JobID(f.ids.Next()), TenantID: at.tenant, Executor: at.executor, State: domain.JobEnabled,
				Source: domain.SourceConsole, Spec: spec(len(all)), CreatedBy: "bench",
			}
			all = append(all, jobs[i].ID)
		}
		if err := benchdata.LoadJobs(ctx, f.store.DB, jobs, func(i int) time.Time { return next(base + i) }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// notYet is the first fire of jobs that are started later.
func notYet(int) time.Time { return domain.Never }

// ticking is the spec of a job that fires every so often, counted from anchor.
func ticking(name, handler string, every time.Duration, anchor time.Time) domain.JobSpec {
	return domain.JobSpec{
		Name: name, Handler: handler, Routing: domain.RouteRoundRobin, Blocking: domain.BlockParallel, OnLost: domain.OnLostFail,
		Schedule: domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: every, Anchor: anchor, Zone: "UTC"},
		// Under more load than can be carried fires come late, and are counted;
		// the default would drop them after 5 s.
		Misfire: domain.Misfire{Policy: domain.MisfireOnceNow, Threshold: 10 * time.Minute},
		Retry:   domain.Retry{MaxAttempts: 1},
	}
}

// start makes jobs fire from an instant on, each at its own offset from it.
func (f *fleet) start(ctx context.Context, jobs []domain.JobID, at func(i int) time.Time) error {
	// Claims of an overloaded fleet lock the same rows; it may take a while.
	const limit = time.Minute
	return lab.Until(ctx, limit, "first fires set", func(ctx context.Context) error {
		return benchdata.SetNextFires(ctx, f.store.DB, f.tenant, jobs, at)
	})
}

// stop makes jobs fire no more; what they had planned ahead still runs.
func (f *fleet) stop(ctx context.Context, jobs []domain.JobID) error {
	return f.start(ctx, jobs, func(int) time.Time { return domain.Never })
}

// drain waits until nothing waits or runs any more.
func (f *fleet) drain(ctx context.Context, limit time.Duration) error {
	return lab.Until(ctx, limit, "nothing left to run", func(ctx context.Context) error {
		n, err := benchdata.CountLiving(ctx, f.store.DB)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d runs are left", n)
		}
		if err != nil {
			_ = pause(ctx, 250*time.Millisecond) // counting costs the database
		}
		return err
	})
}

// succeeded is how many runs the nodes have stored as succeeded since they began.
func (f *fleet) succeeded(ctx context.Context) (float64, error) {
	total := 0.0
	for _, a := range f.lab.Admins {
		m, err := a.API.Metrics(ctx)
		if err != nil {
			return 0, err
		}
		total += m["carillon_attempts_ended_total"]
	}
	return total, nil
}

// alive is an error when a process ended by itself.
func (f *fleet) alive() error {
	var bad []error
	for _, p := range f.processes {
		if lab.UsageOf(p.pid).RSS == 0 {
			bad = append(bad, fmt.Errorf("%s ended by itself (logs in %s)", p.name, f.dir))
		}
	}
	return errors.Join(bad...)
}

// close stops everything, and removes the data unless something went wrong.
func (f *fleet) close() error {
	var errs []error
	if f.lab != nil {
		f.lab.Close()
	}
	if f.store != nil {
		errs = append(errs, f.store.Close())
	}
	if f.db != nil {
		errs = append(errs, f.db.drop())
	}
	if f.dir != "" && !f.keep {
		errs = append(errs, os.RemoveAll(f.dir))
	}
	return errors.Join(errs...)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func pauseUntil(ctx context.Context, t time.Time) error { return pause(ctx, time.Until(t)) }

// number names the i-th job of a kind.
func number(kind string, i int) string {
	digits := strconv.Itoa(i)
	return kind + "-" + strings.Repeat("0", max(0, 7-len(digits))) + digits
}
