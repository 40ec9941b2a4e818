package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// What people do meanwhile, through the API of a node: it asks the database
// and acknowledges.

func (w *world) operate(n *node, kind string, long time.Duration, what int) {
	j := w.db.jobs[w.db.jobOrder[what%len(w.db.jobOrder)]]
	if !n.up {
		return
	}
	switch kind {
	case faultPause:
		n.setState(j, domain.JobPaused)
		w.after(&n.actor, long, func() { n.setState(j, domain.JobEnabled) })
	case faultDelete:
		n.setState(j, domain.JobDeleted)
	case faultEdit:
		n.edit(j)
	case faultLimit:
		w.setLimit(n, what)
	case faultMaintain:
		w.maintain(n, long, what)
	case faultCancel:
		n.cancel(what)
	}
}

func (n *node) setState(j *jobRow, state domain.JobState) {
	n.flow(func() {
		_, err := ask(n, "set job state", anyCall, func(d *database) (bool, error) {
			err := d.setState(store.SetJobStateParams{
				Tenant: tenant, ID: j.id, State: state, Next: timing.Next, Plan: n.planner.PlanTrigger,
			})
			if err == nil && state == domain.JobEnabled {
				j.stopped = 0
			}
			return true, err
		})
		if err == nil && j.state == state && state != domain.JobEnabled {
			j.stopped = n.w.now // acknowledged
		}
		n.w.trace(n.name, "job state", int64(j.id), int64(state))
		_ = n.planner.Claim(context.Background())
	})
}

func (n *node) edit(j *jobRow) {
	r := n.w.faults.chance("edit")
	spec := *j.spec()
	spec.Schedule.Every = time.Duration(oneOf(r, 1, 2, 3, 5, 10)) * time.Second
	spec.Retry.MaxAttempts = 1 + r.IntN(3)
	spec.Timeout = oneOf(r, 0, 0, 5*time.Second)
	spec.Parallelism = r.IntN(3)
	if r.IntN(4) == 0 {
		spec.Schedule.Kind = oneOf(r, domain.ScheduleFixedRate, domain.ScheduleFixedDelay)
	}
	n.flow(func() {
		_ = n.call("edit job", anyCall, func() {
			_ = n.w.db.update(store.UpdateJobParams{Tenant: tenant, ID: j.id, Spec: spec, Next: timing.Next, Plan: n.planner.PlanTrigger})
		})
		n.w.trace(n.name, "job edited", int64(j.id), int64(spec.Schedule.Every))
		_ = n.planner.Claim(context.Background())
	})
}

func (n *node) cancel(what int) {
	alive := n.w.db.living()
	if len(alive) == 0 {
		return
	}
	id := alive[what%len(alive)]
	n.flow(func() {
		run, err := ask(n, "cancel", anyCall, func(d *database) (domain.Execution, error) { return d.cancel(tenant, id) })
		if err != nil {
			return
		}
		if run.State.Terminal() {
			n.completer.Ended([]domain.Execution{run})
			return
		}
		n.dispatch.SendCancel(run)
	})
}

// limitOf returns a limit for the executor or the tenant, and how many may run.
func limitOf(r *rand.Rand, what int) (domain.LimitKey, int) {
	key := domain.LimitKey{Tenant: tenant}
	if what%2 == 0 {
		key.Executor = executorID
	}
	return key, r.IntN(6)
}

func (w *world) setLimit(n *node, what int) {
	key, maximum := limitOf(w.faults.chance("limit"), what)
	n.flow(func() {
		_ = n.call("set limit", anyCall, func() {
			w.db.setLimit(key, maximum)
			if l := w.db.limit(key); l != nil {
				l.strictFrom = w.now + run.LimitSettles
			}
		})
		n.store.known.until = 0
	})
}
