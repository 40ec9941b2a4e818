package notify

import (
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// sampleKinds are the alerts that templates are tried with.
var sampleKinds = []domain.AlertKind{
	domain.AlertRunFailed, domain.AlertRunTimedOut, domain.AlertRunLost, domain.AlertRunMissed, domain.AlertNoExecutor, domain.AlertRunSucceeded, domain.AlertTest,
	domain.AlertFlapping, domain.AlertInstanceGone,
}

// Sample is a notice of a kind as it could be, for previews. Its texts have signs
// in them that formats give a meaning.
func Sample(kind domain.AlertKind) *Notice {
	at := time.Date(2026, 1, 15, 2, 0, 0, 0, time.UTC)
	n := &Notice{
		DedupeKey: strings.Repeat("0", 32), Try: 1, Group: "carillon-" + strings.Repeat("0", 32), Phase: PhaseTrigger,
		Event:    domain.AlertEvent{ID: 1, TenantID: 1, Kind: kind, CreatedAt: at.Add(time.Minute)},
		Tenant:   domain.Tenant{ID: 1, Name: "shop"},
		Executor: domain.Executor{ID: 2, Name: "billing"},
	}
	switch kind {
	case domain.AlertTest:
		return n
	case domain.AlertFlapping, domain.AlertInstanceGone, domain.AlertSetAside, domain.AlertClockJump, domain.AlertRollback, domain.AlertOverload, domain.AlertStalled:
		n.Event.Detail = "An example of a detail."
		return n
	}
	n.Event.JobID, n.Event.Revision = 3, 1
	n.Job = domain.Job{ID: 3, TenantID: 1, Revision: 1, Executor: 2, Spec: domain.JobSpec{
		Name: "close-day", Handler: "billing.CloseDay", Labels: map[string]string{"team": "finance"}, Owner: domain.Owner{Name: "Ann", Email: "ann@example.com"},
		Schedule: domain.ScheduleSpec{Zone: "Asia/Shanghai"},
	}}
	n.JobURL = "https://carillon.example.com/jobs/3"
	if kind == domain.AlertNoExecutor {
		return n
	}
	n.Event.ExecutionID, n.RunURL = 4, "https://carillon.example.com/runs/4"
	e := &domain.Execution{
		ID: 4, TenantID: 1, JobID: 3, Cause: domain.CauseSchedule, FireAt: at, StartedAt: at.Add(7 * time.Millisecond), FinishedAt: at.Add(time.Minute),
		Attempt: 3, MaxAttempts: 3, Instance: 5, ErrorKind: "error", Error: "no route to \"db\" <10.0.0.7> *now*\nsecond line \\ with 100 %",
	}
	n.Execution, n.Instance = e, "web-1"
	switch kind {
	case domain.AlertRunTimedOut:
		e.State, e.Reason = domain.TimedOut, domain.ReasonTimeout
	case domain.AlertRunSucceeded:
		e.State, e.Error, e.ErrorKind, e.Message = domain.Succeeded, "", "", ""
	case domain.AlertRunLost:
		e.State, e.Error, e.ErrorKind = domain.Lost, "", ""
	case domain.AlertRunMissed:
		e.State, e.StartedAt, e.Instance, e.Error, e.ErrorKind, e.Attempt = domain.Missed, time.Time{}, 0, "", "", 0
		n.Event.Missed, n.Instance = 12, ""
	default:
		e.State, e.Reason = domain.Failed, domain.ReasonHandlerFailed
	}
	return n
}
