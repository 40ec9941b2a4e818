package scheduler

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// Fire times that waited for the end of maintenance have not passed unnoticed: where
// the misfire policy skips what is late, the last one of them runs, and stands for the
// others; a policy that makes all up counts their age without the maintenance. What
// does not run is excluded, and nobody is told (docs/adr/0077).

// underMaintenance returns what is not to be planned now.
func (p *Planner) underMaintenance(ctx context.Context) (domain.HeldScopes, error) {
	if p.maintenance == nil {
		return domain.HeldScopes{}, nil
	}
	all, err := p.maintenance.Maintenances(ctx)
	if err != nil || len(all) == 0 {
		return domain.HeldScopes{}, err
	}
	return all.Held(p.now()), nil
}

// pausedTrigger is a trigger some of whose fire times may have fallen into
// maintenance.
type pausedTrigger struct {
	all    domain.Maintenances
	of     domain.Trigger
	waited time.Duration // of the time since its next fire time
}

func (p *Planner) pausedOf(t domain.Trigger, now time.Time) pausedTrigger {
	if p.maintenance == nil {
		return pausedTrigger{}
	}
	all := p.maintenance.KnownMaintenances()
	return pausedTrigger{all, t, all.Waited(t.TenantID, t.Executor, t.NextFireAt, now)}
}

// spec is the job's, with the misfire policy for what has waited.
func (t *pausedTrigger) spec(spec *domain.JobSpec) *domain.JobSpec {
	if t.waited <= 0 {
		return spec
	}
	kind := *spec
	if kind.Misfire.Policy != domain.MisfireAll {
		kind.Misfire.Policy = domain.MisfireOnceNow
		return &kind
	}
	if kind.Misfire.Window == 0 {
		kind.Misfire.Window = domain.DefaultMisfireWindow
	}
	if kind.Misfire.Window > 0 {
		kind.Misfire.Window += t.waited
	}
	return &kind
}

// note says of a fire time that fell into maintenance what came of it.
func (t *pausedTrigger) note(now time.Time, f timing.Fire, e domain.Execution) domain.Execution {
	if f.Missed == "" && !f.Misfire || f.Missed == domain.ReasonCalendar || len(t.all) == 0 {
		return e
	}
	x := t.all.Covers(domain.MaintenanceWait, t.of.TenantID, t.of.Executor, f.At)
	if f.Missed == "" {
		if x != nil {
			e.Delays = []domain.Delay{{At: f.At, LastAt: now, Count: 1, Reason: domain.ReasonMaintenance, Message: x.Message()}}
		}
		return e
	}
	if x == nil {
		x = t.all.Covers(domain.MaintenanceSkip, t.of.TenantID, t.of.Executor, f.At)
	}
	if x != nil {
		e.State, e.Reason = domain.Excluded, domain.ReasonMaintenance
		e.Message = x.Message()
		if f.Missed == domain.ReasonCoalesced {
			e.Message += "; the run of " + f.Into.UTC().Format("2006-01-02T15:04:05.000Z07:00") + " stands for it"
		}
	}
	return e
}
