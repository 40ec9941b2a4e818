package route

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Incident is what alerts tell as one thing.
type Incident struct {
	ID             string        `json:"id" doc:"Id of the incident, a decimal string"`
	Kind           string        `json:"kind" doc:"What has happened: run_failed, run_timed_out, run_lost, run_missed, no_executor, run_late, run_long, job_absent, runs_pile_up, run_succeeded, scheduler_behind, executor_flapping, instance_gone"`
	State          string        `json:"state" enum:"open,acknowledged,resolved" doc:"open; acknowledged: somebody is at it, and nothing is told until it is over; resolved: it is over"`
	Severity       string        `json:"severity" enum:"info,warning,critical" doc:"How urgent it is, as the rule says that opened it"`
	ExecutorID     *string       `json:"executorId" doc:"The executor that it is about"`
	JobID          *string       `json:"jobId" doc:"The job that it is about; null: several"`
	PartOf         *string       `json:"partOf" doc:"The incident of the executor that it became a part of; null: none"`
	OpenedAt       string        `json:"openedAt" format:"date-time" doc:"When its first event happened"`
	LastAt         string        `json:"lastAt" format:"date-time" doc:"When its newest event happened"`
	ResolvedAt     *string       `json:"resolvedAt" format:"date-time" doc:"When it was over; null: it is not"`
	ResolvedBy     string        `json:"resolvedBy" doc:"Who said that it is over; empty: it recovered, or it is not over"`
	AcknowledgedAt *string       `json:"acknowledgedAt" format:"date-time" doc:"When somebody took it on; null: nobody has"`
	AcknowledgedBy string        `json:"acknowledgedBy" doc:"Who took it on; empty: nobody"`
	Events         int64         `json:"events" doc:"How many events there were"`
	Reopened       int64         `json:"reopened" doc:"How often it came back soon after it was over"`
	JobCount       int           `json:"jobCount" doc:"How many jobs it is about; 1000: that many or more"`
	Jobs           []IncidentJob `json:"jobs" doc:"The first 20 of them"`
	Detail         string        `json:"detail" doc:"What the newest event says beside its kind"`
	Messages       int64         `json:"messages" doc:"How many messages there were, each to all receivers"`
	Undelivered    int64         `json:"undelivered" doc:"How many messages to single receivers did not arrive and are not tried again"`
	ToldAt         *string       `json:"toldAt" format:"date-time" doc:"When the last one was; null: there was none"`
}

// IncidentJob is a job that an incident is about.
type IncidentJob struct {
	ID     string `json:"id" doc:"Id of the job, a decimal string"`
	Name   string `json:"name" doc:"Its name then"`
	Events int64  `json:"events" doc:"How many events there were of it"`
}

// IncidentEvent is one event of an incident.
type IncidentEvent struct {
	ID        string  `json:"id" doc:"Id of the event, a decimal string"`
	Kind      string  `json:"kind" doc:"What has happened"`
	JobID     *string `json:"jobId" doc:"The job; null: none"`
	RunID     *string `json:"runId" doc:"The run; null: none"`
	Reason    string  `json:"reason" doc:"Reason of the run's end; empty: it is about none"`
	Missed    int     `json:"missed" doc:"How many runs never started, of which runId is the last; 0 for all other kinds"`
	Detail    string  `json:"detail" doc:"What it says beside its kind"`
	CreatedAt string  `json:"createdAt" format:"date-time" doc:"When it happened"`
}

type listIncidentsInput struct {
	web.PageParams
	State      string `query:"state" enum:"open,acknowledged,resolved" doc:"Only incidents in this state"`
	ExecutorID string `query:"executorId" doc:"Only incidents of this executor"`
}

func incidentOf(i *noun.Incident) Incident {
	out := Incident{
		ID: i.ID.String(), Kind: string(i.Kind), State: i.State.String(), Severity: string(cmp.Or(i.Severity, noun.SeverityWarning)), ExecutorID: web.IDOrNull(i.Executor), JobID: web.IDOrNull(i.Job),
		PartOf: web.IDOrNull(i.Parent), OpenedAt: web.Instant(i.OpenedAt), LastAt: web.Instant(i.LastAt), ResolvedAt: web.InstantOrNull(i.ResolvedAt),
		ResolvedBy: i.ResolvedBy, AcknowledgedAt: web.InstantOrNull(i.AcknowledgedAt), AcknowledgedBy: i.AcknowledgedBy, Events: i.Events, Reopened: i.Reopened,
		JobCount: len(i.Jobs), Jobs: []IncidentJob{}, Detail: i.Detail, Messages: i.Told, Undelivered: i.Undelivered, ToldAt: web.InstantOrNull(i.ToldAt),
	}
	for _, j := range i.Jobs[:min(len(i.Jobs), noun.MaxIncidentNames)] {
		out.Jobs = append(out.Jobs, IncidentJob{ID: j.ID.String(), Name: j.Name, Events: j.Events})
	}
	return out
}

func (a *api) registerIncidents() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/alert-incidents", ID: "list-alert-incidents", Large: true, Tag: "alerts", Summary: "Incidents, newest first",
		Description: "What alerts tell as one thing: one kind of trouble of a job, or of an executor when many of its jobs are in it.",
	}, a.listIncidents)
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/alert-incidents/{id}", ID: "get-alert-incident", Tag: "alerts", Summary: "One incident",
		Description: "list-deliveries with incidentId says who was told of it.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body Incident }, error) {
		i, err := web.ByID(ctx, id.Tenant, in.ID, a.deps.Store.FindIncident)
		return web.AnswerOf(i, err, incidentOf)
	})
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/alert-incidents/{id}/events", ID: "list-alert-incident-events", Tag: "alerts", Summary: "The events of an incident, newest first",
		Description: "Of a flood the first 1,000, the newest, and those that were told; events of the incident counts them all.",
	}, a.listIncidentEvents)
	for _, change := range []struct {
		name, summary, description string
		change                     func(*noun.Incident, time.Time, string) error
	}{
		{"acknowledge", "Take an incident on", "Nothing is told of it from then on until it is over, and nobody else is asked. Taking it on again changes nothing.", (*noun.Incident).Acknowledge},
		{"resolve", "Say that an incident is over", "Whoever was told of it is told so. It goes on with its next event, if that comes soon; resolving it again changes nothing.", (*noun.Incident).ResolveBy},
	} {
		web.Register(a.Server, web.May(domain.PermOperate), web.Operation{
			Method: http.MethodPost, Path: web.Base + "/alert-incidents/{id}/" + change.name, ID: change.name + "-alert-incident", Tag: "alerts",
			Summary: change.summary, Description: change.description, Errors: []int{http.StatusConflict},
		}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body Incident }, error) {
			incident, err := domain.ParseID[domain.IncidentID](in.ID)
			if err != nil {
				return nil, err
			}
			i, err := a.deps.Store.ChangeIncident(ctx, id.Tenant, incident, func(i *noun.Incident, now time.Time) error { return change.change(i, now, id.Actor()) })
			if err != nil {
				return nil, err
			}
			a.deps.Log.Info("incident changed", "tenant_id", id.Tenant, "incident_id", i.ID, "change", change.name, "by", id.Actor())
			return &struct{ Body Incident }{incidentOf(&i)}, nil
		})
	}
}

func (a *api) listIncidents(ctx context.Context, id auth.Identity, in *listIncidentsInput) (*web.PageOutput[Incident], error) {
	at, err := web.DecodeCursor(in.Cursor, "alert-incidents")
	if err != nil {
		return nil, err
	}
	var r web.Reader
	p := notify.ListIncidentsParams{
		Tenant: id.Tenant, Executor: web.OptionalID[domain.ExecutorID](&r, "query.executorId", in.ExecutorID), Before: domain.IncidentID(at.ID), Limit: in.Limit,
	}
	for _, state := range noun.IncidentStates {
		if state.String() == in.State {
			p.State = state
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	page, err := a.deps.Store.ListIncidents(ctx, p)
	return web.StoredPage(page.Items, page.More, err, incidentOf, func(last *noun.Incident) web.Cursor {
		return web.Cursor{List: "alert-incidents", ID: int64(last.ID)}
	})
}

func (a *api) listIncidentEvents(ctx context.Context, id auth.Identity, in *struct {
	web.PageParams
	ID string `path:"id" doc:"Id of what the address names, a decimal string"`
}) (*web.PageOutput[IncidentEvent], error) {
	at, err := web.DecodeCursor(in.Cursor, "alert-incident-events")
	if err != nil {
		return nil, err
	}
	incident, err := domain.ParseID[domain.IncidentID](in.ID)
	if err != nil {
		return nil, err
	}
	if _, err := a.deps.Store.FindIncident(ctx, id.Tenant, incident); err != nil {
		return nil, err
	}
	rows, err := a.deps.Store.ListIncidentEvents(ctx, notify.ListIncidentEventsParams{Tenant: id.Tenant, Incident: incident, Before: at.ID, Limit: in.Limit + 1})
	if err != nil {
		return nil, err
	}
	return web.RowsPage(rows, err, in.Limit, func(e *domain.AlertEvent) IncidentEvent {
		return IncidentEvent{
			ID: strconv.FormatInt(e.ID, 10), Kind: string(e.Kind), JobID: web.IDOrNull(e.JobID), RunID: web.IDOrNull(e.ExecutionID),
			Reason: string(e.Reason), Missed: e.Missed, Detail: e.Detail, CreatedAt: web.Instant(e.CreatedAt),
		}
	}, func(last *domain.AlertEvent) web.Cursor {
		return web.Cursor{List: "alert-incident-events", ID: last.ID}
	})
}
