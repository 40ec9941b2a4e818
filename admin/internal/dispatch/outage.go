package dispatch

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// lookForInstances looks whether other nodes have instances of an executor that
// has none here: then they may take what waits for it. If nobody has, the owners
// of the jobs are told once.
func (lo *lookout) lookForInstances(ctx context.Context, x waitingFor, now time.Time) error {
	if len(x.runs) == 0 {
		return nil
	}
	online, err := lo.store.CountOnline(ctx, x.tenant, x.executor)
	if err != nil {
		return err
	}
	if online == 0 {
		return lo.tellOutage(ctx, x, now)
	}
	lo.outages.over(x.executor)
	return lo.waits.record(ctx, lo.waits.queues.leaveToOthers(x.runs))
}

// noExecutorAfter is how long a due execution waits before its owner is told
// that no instance is online: a restarting application is no news.
const noExecutorAfter = 10 * time.Second

// outageRepeat is how often the owners of jobs are told at most, while an outage
// lasts, and when one follows another.
const outageRepeat = time.Hour

// outages are the executors whose outage was told by this node, with the window
// of time that it was told in, of those that somebody waits for.
type outages map[domain.ExecutorID]int64

func (o outages) over(x domain.ExecutorID) { delete(o, x) }

func (o outages) keep(waitedFor []waitingFor) {
	here := make(map[domain.ExecutorID]bool, len(waitedFor))
	for _, w := range waitedFor {
		here[w.executor] = true
	}
	maps.DeleteFunc(o, func(x domain.ExecutorID, _ int64) bool { return !here[x] })
}

// outageJobs bounds how many jobs an alert names.
const outageJobs = 20

// tellOutage writes one alert for each owner of jobs that are due while no
// instance of their executor is online on any node.
func (lo *lookout) tellOutage(ctx context.Context, x waitingFor, now time.Time) error {
	window := now.Truncate(outageRepeat).Unix()
	if lo.underMaintenance(x.tenant, x.executor, now) {
		return nil // they may be down for it
	}
	if now.Sub(x.since) < noExecutorAfter || lo.outages[x.executor] == window {
		return nil
	}
	jobs, err := lo.store.ListWaitingJobs(ctx, x.tenant, x.executor)
	if err != nil {
		return err
	}
	byOwner := map[string]int{}
	var events []domain.AlertEvent
	var names [][]string
	for _, j := range jobs {
		spec, err := lo.store.JobSpec(ctx, x.tenant, j.Job, j.Revision)
		if domain.Is(err, domain.CodeNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		owner := fmt.Sprint(spec.Owner, spec.Alert.IncludeNoExecutor, spec.Alert.Emails, spec.Alert.WebhookURL)
		at, known := byOwner[owner]
		if !known {
			at = len(events)
			byOwner[owner] = at
			events = append(events, domain.AlertEvent{
				ID: lo.newID(), TenantID: x.tenant, Kind: domain.AlertNoExecutor, JobID: j.Job, Revision: j.Revision, CreatedAt: now,
				DedupeKey: fmt.Sprintf("no_executor/%s/%s/%d", x.executor, j.Job, window),
			})
			names = append(names, nil)
		}
		names[at] = append(names[at], spec.Name)
	}
	for i := range events {
		list := names[i][:min(len(names[i]), outageJobs)]
		events[i].Detail = strings.Join(list, ", ")
		if more := len(names[i]) - len(list); more > 0 {
			events[i].Detail += fmt.Sprintf(" (+%d)", more)
		}
	}
	if len(events) > 0 {
		if err := lo.store.RecordAlerts(ctx, events); err != nil {
			return err
		}
		lo.log.Warn("no instance of an executor is online", "tenant_id", x.tenant, "executor_id", x.executor, "jobs", len(jobs), "count", len(x.runs))
	}
	lo.outages[x.executor] = window
	return nil
}
