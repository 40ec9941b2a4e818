package api

import (
	"context"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// OverdueList is fire times that have passed without anything having started.
type OverdueList struct {
	Items []OverdueJob `json:"items" doc:"Those that are not even planned first, each from the oldest"`
	More  bool         `json:"more" doc:"There are others beyond limit"`
}

// OverdueJob is a fire time that has passed, and nothing has started.
type OverdueJob struct {
	JobID     string  `json:"jobId" doc:"Id of the job"`
	JobName   string  `json:"jobName" doc:"Name of the job"`
	Executor  web.Ref `json:"executor" doc:"Who was to run it"`
	FireAt    string  `json:"fireAt" format:"date-time" doc:"When it was to start"`
	OverdueMS int64   `json:"overdueMs" doc:"How long ago that was"`
	RunID     *string `json:"runId" doc:"The run that waits; null: none was planned"`
	Reason    string  `json:"reason" doc:"Code of why the run waits; empty: it is not known, or there is no run"`
}

type overdueInput struct {
	By    string `query:"by" default:"1m" doc:"Overdue by longer than that, 1s to 24h"`
	Limit int    `query:"limit" default:"100" minimum:"1" maximum:"200" doc:"How many at most"`
}

func (js *jobs) registerOverdue(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/overdue", ID: "list-overdue", Tag: "jobs", Summary: "Jobs whose fire time has passed and that have not started",
		Description: "Runs that were asked for count, too; timers do not. What waits as its job says, for a slot or behind a limit, is overdue as well: reason says so.",
	}, js.listOverdue)
}

func (js *jobs) listOverdue(ctx context.Context, id auth.Identity, in *overdueInput) (*struct{ Body OverdueList }, error) {
	by, err := time.ParseDuration(in.By)
	if err != nil || by < time.Second || by > 24*time.Hour {
		return nil, domain.Invalid("query.by", "%q is no duration from 1s to 24h, such as 90s or 5m", in.By)
	}
	list, more, err := js.store.ListOverdue(ctx, store.ListOverdueParams{Tenant: id.Tenant, Within: id.Reach, By: by, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := OverdueList{Items: []OverdueJob{}, More: more}
	for i := range list {
		o := &list[i]
		out.Items = append(out.Items, OverdueJob{
			JobID: o.Job.String(), JobName: o.JobName, Executor: web.Ref{ID: o.Executor.String(), Name: o.ExecutorName}, FireAt: web.Instant(o.FireAt),
			OverdueMS: o.By.Milliseconds(), RunID: web.IDOrNull(o.Run), Reason: string(o.Reason),
		})
	}
	return &struct{ Body OverdueList }{out}, nil
}
