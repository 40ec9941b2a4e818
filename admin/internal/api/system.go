package api

import (
	"context"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Delivery is one telling of an alert to one target.
type Delivery struct {
	ID          string  `json:"id" doc:"Id of the delivery, a decimal string"`
	Kind        string  `json:"kind" enum:"run_failed,run_timed_out,run_lost,run_missed,no_executor,test,executor_flapping" doc:"What it tells"`
	JobID       *string `json:"jobId" doc:"The job that it is about; null: none"`
	RunID       *string `json:"runId" doc:"The run that it is about; null: none"`
	Channel     string  `json:"channel" enum:"email,webhook" doc:"By which means"`
	Target      string  `json:"target" doc:"Address that it goes to; … for readers who may not edit, if it is a webhook's"`
	State       string  `json:"state" enum:"pending,delivered,failed" doc:"State of the delivery"`
	Attempts    int     `json:"attempts" doc:"How often it was tried"`
	LastError   string  `json:"lastError" doc:"Why the last try failed; empty: it did not; … for readers who may not edit"`
	CreatedAt   string  `json:"createdAt" format:"date-time" doc:"When the event happened"`
	DeliveredAt *string `json:"deliveredAt" format:"date-time" doc:"When it was delivered; null: not yet"`
}

// hide leaves out what is for those who may edit: addresses of webhooks, and what
// errors say of servers inside.
func (d *Delivery) hide() {
	if d.Channel == "webhook" {
		d.Target = hidden
	}
	if d.LastError != "" {
		d.LastError = hidden
	}
}

// Node is one admin process.
type Node struct {
	ID              string `json:"id" doc:"Id of the node in this cluster"`
	Name            string `json:"name" doc:"Name of the node, as its settings say"`
	BootID          string `json:"bootId" doc:"Id of the process: another one after each start"`
	Version         string `json:"version" doc:"Version of the server"`
	StartedAt       string `json:"startedAt" format:"date-time" doc:"When the process started"`
	LastHeartbeatAt string `json:"lastHeartbeatAt" format:"date-time" doc:"Its last sign of life"`
	Sessions        int    `json:"sessions" doc:"Executor sessions of all tenants; for administrators, others get 0"`
	Current         bool   `json:"current" doc:"The node that answers"`
}

// Version is what runs here.
type Version struct {
	Version string `json:"version" doc:"Version of the server, as its build says; empty: not known"`
	Commit  string `json:"commit,omitempty" doc:"Commit that it was built from; absent: not known"`
	// ExecutorAddresses are those of the live nodes.
	ExecutorAddresses []string `json:"executorAddresses" doc:"Where executors connect, host:port, this node's first; for administrators, others get none"`
}

type listDeliveriesInput struct {
	web.PageParams
	JobID string `query:"jobId" doc:"Only deliveries about this job"`
	State string `query:"state" enum:"pending,delivered,failed" doc:"Only deliveries in this state"`
}

func (a *API) registerSystem() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/deliveries", ID: "list-deliveries", Tag: "system", Summary: "The log of alert deliveries, newest first",
		Description: "One for each alert and address. Mail and webhooks are tried again until they are delivered or given up.",
	}, a.listDeliveries)
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/nodes", ID: "list-nodes", Tag: "system", Summary: "The live admin nodes",
		Description: "Those that have been heard of lately; get-cluster says more.",
	}, func(_ context.Context, id auth.Identity, in *PageQuery) (*web.PageOutput[Node], error) {
		items := []Node{}
		for _, n := range a.deps.Nodes() {
			one := Node{
				ID: n.ID.String(), Name: n.Name, BootID: n.BootID, Version: n.Version, StartedAt: web.Instant(n.StartedAt),
				LastHeartbeatAt: web.Instant(n.HeartbeatAt), Current: n.BootID == a.deps.Self,
			}
			if id.May(domain.PermAdmin) {
				one.Sessions = n.Sessions
			}
			items = append(items, one)
		}
		return web.SlicePage(items, in.ShortPage, "nodes")
	})
	version := Version{Version: a.deps.Version, Commit: commit()}
	web.Register(a.Server, web.SignedIn, web.Operation{
		Method: http.MethodGet, Path: web.Base + "/version", ID: "version", Tag: "system", Summary: "The server's version",
		Description: "Of the node that answers.",
	}, func(_ context.Context, id auth.Identity, _ *struct{}) (*struct{ Body Version }, error) {
		answer := version
		answer.ExecutorAddresses = []string{}
		if id.May(domain.PermAdmin) {
			answer.ExecutorAddresses = a.executorAddresses()
		}
		return &struct{ Body Version }{answer}, nil
	})
}

func (a *API) executorAddresses() []string {
	out := []string{}
	for _, n := range a.deps.Nodes() {
		if n.BootID == a.deps.Self {
			out = slices.Insert(out, 0, n.ExecutorAddress)
		} else {
			out = append(out, n.ExecutorAddress)
		}
	}
	return out
}

// commit is what the Go tool stamped into the binary.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return ""
}

var deliveryStates = map[string]domain.DeliveryState{
	"pending": domain.DeliveryPending, "delivered": domain.DeliveryDelivered, "failed": domain.DeliveryFailed,
}

func (a *API) listDeliveries(ctx context.Context, id auth.Identity, in *listDeliveriesInput) (*web.PageOutput[Delivery], error) {
	at, err := web.DecodeCursor(in.Cursor, "deliveries")
	if err != nil {
		return nil, err
	}
	var r reader
	p := store.ListDeliveriesParams{
		Tenant: id.Tenant, Job: web.OptionalID[domain.JobID](&r.Reader, "query.jobId", in.JobID),
		State: deliveryStates[in.State], Before: at.ID, Limit: in.Limit + 1,
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	rows, err := a.deps.Store.ListDeliveries(ctx, p)
	if err != nil {
		return nil, err
	}
	rows, more := web.Cut(rows, in.Limit)
	out := web.OnePage(make([]Delivery, 0, len(rows)))
	for _, d := range rows {
		one := Delivery{
			ID: strconv.FormatInt(d.ID, 10), Kind: string(d.Event.Kind), JobID: web.IDOrNull(d.Event.JobID), RunID: web.IDOrNull(d.Event.ExecutionID),
			Channel: d.Channel, Target: d.Target, State: d.State.String(), Attempts: d.Attempts, LastError: d.LastError,
			CreatedAt: web.Instant(d.CreatedAt), DeliveredAt: web.InstantOrNull(d.DeliveredAt),
		}
		if !id.May(domain.PermEdit) {
			one.hide()
		}
		out.Body.Items = append(out.Body.Items, one)
	}
	if more {
		out.Body.NextCursor = web.Cursor{List: "deliveries", ID: rows[len(rows)-1].ID}.Encode()
	}
	return out, nil
}

// healthz says that the process answers, whatever the database does.
func (a *API) healthz(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) }

// held is why firing is held on this node; empty: it is not.
func (a *API) held() string {
	if a.deps.Store != nil {
		if _, held := a.deps.Store.RolledBack(); held {
			return string(domain.CodeRolledBack)
		}
	}
	if _, _, held := a.deps.ClockHeld(); held {
		return string(domain.CodeClockJump)
	}
	return ""
}

// readyTimeout bounds a readiness check.
const readyTimeout = 2 * time.Second

// readyz says whether requests should be sent here.
func (a *API) readyz(c *gin.Context) {
	if a.deps.Draining() {
		a.WriteProblem(c, web.NewProblem(c.Request.Context(), http.StatusServiceUnavailable, domain.CodeUnavailable, web.Stopping))
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	if err := a.deps.Ready(ctx); err != nil {
		a.log.Debug("not ready", "err", err)
		a.WriteProblem(c, web.NewProblem(c.Request.Context(), http.StatusServiceUnavailable, domain.CodeUnavailable,
			"this node cannot serve now; its log has the reason"))
		return
	}
	answer := gin.H{"status": "ready"}
	if held := a.held(); held != "" {
		answer["held"] = held // it serves, and an operator needs it for that
	}
	c.JSON(http.StatusOK, answer)
}
