package route

import (
	"cmp"
	"context"
	"net/http"
	"strconv"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Delivery is one telling of an alert to one target.
type Delivery struct {
	ID          string  `json:"id" doc:"Id of the delivery, a decimal string"`
	Kind        string  `json:"kind" enum:"run_failed,run_timed_out,run_lost,run_missed,no_executor,run_late,run_long,job_absent,runs_pile_up,run_succeeded,test,executor_flapping,instance_gone" doc:"What it tells"`
	IncidentID  *string `json:"incidentId" doc:"The incident that it tells of; null: none, as of a test"`
	JobID       *string `json:"jobId" doc:"The job that it is about, or whose settings name the target; null: none"`
	RunID       *string `json:"runId" doc:"The newest run that it is about; null: none"`
	Channel     string  `json:"channel" enum:"email,webhook,dingtalk,feishu,wecom,slack,teams,telegram,pagerduty,opsgenie" doc:"By which means"`
	ChannelID   *string `json:"channelId" doc:"The alert channel that it goes through; null: to an address of the job"`
	Target      string  `json:"target" doc:"Address that it goes to, or name of the alert channel; … for readers who may not edit, if it is a webhook's address"`
	State       string  `json:"state" enum:"pending,delivered,failed" doc:"State of the delivery"`
	Attempts    int     `json:"attempts" doc:"How often it was tried"`
	LastError   string  `json:"lastError" doc:"Why the last try failed; empty: it did not; … for readers who may not edit"`
	CreatedAt   string  `json:"createdAt" format:"date-time" doc:"When the event happened"`
	DeliveredAt *string `json:"deliveredAt" format:"date-time" doc:"When it was delivered; null: not yet"`
}

// hide leaves out what is for those who may edit: addresses of webhooks, and what
// errors say of servers inside.
func (d *Delivery) hide() {
	if d.Channel == "webhook" && d.ChannelID == nil {
		d.Target = web.Hidden
	}
	if d.LastError != "" {
		d.LastError = web.Hidden
	}
}

type listDeliveriesInput struct {
	web.PageParams
	JobID      string `query:"jobId" doc:"Only deliveries about this job"`
	IncidentID string `query:"incidentId" doc:"Only deliveries of this incident"`
	State      string `query:"state" enum:"pending,delivered,failed" doc:"Only deliveries in this state"`
}

func (a *api) registerDeliveries() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/deliveries", ID: "list-deliveries", Tag: "system", Summary: "The log of alert deliveries, newest first",
		Description: "One for each alert and address. Mail and webhooks are tried again until they are delivered or given up.",
	}, a.listDeliveries)
}

var deliveryStates = map[string]noun.DeliveryState{
	"pending": noun.DeliveryPending, "delivered": noun.DeliveryDelivered, "failed": noun.DeliveryFailed,
}

func (a *api) listDeliveries(ctx context.Context, id auth.Identity, in *listDeliveriesInput) (*web.PageOutput[Delivery], error) {
	at, err := web.DecodeCursor(in.Cursor, "deliveries")
	if err != nil {
		return nil, err
	}
	var r web.Reader
	p := notify.ListDeliveriesParams{
		Tenant: id.Tenant, Job: web.OptionalID[domain.JobID](&r, "query.jobId", in.JobID),
		Incident: web.OptionalID[domain.IncidentID](&r, "query.incidentId", in.IncidentID),
		State:    deliveryStates[in.State], Before: at.ID, Limit: in.Limit + 1,
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	rows, err := a.deps.Store.ListDeliveries(ctx, p)
	return web.RowsPage(rows, err, in.Limit, func(d *noun.Delivery) Delivery {
		one := Delivery{
			ID: strconv.FormatInt(d.ID, 10), Kind: string(d.Event.Kind), IncidentID: web.IDOrNull(d.Incident), JobID: web.IDOrNull(cmp.Or(d.Job, d.Event.JobID)), RunID: web.IDOrNull(d.Event.ExecutionID),
			Channel: d.Channel, ChannelID: web.IDOrNull(d.ChannelID), Target: d.Target, State: d.State.String(), Attempts: d.Attempts, LastError: d.LastError,
			CreatedAt: web.Instant(d.CreatedAt), DeliveredAt: web.InstantOrNull(d.DeliveredAt),
		}
		if !id.May(domain.PermEdit) {
			one.hide()
		}
		return one
	}, func(last *noun.Delivery) web.Cursor {
		return web.Cursor{List: "deliveries", ID: last.ID}
	})
}
