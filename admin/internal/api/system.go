package api

import (
	"context"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Node is one admin process.
type Node struct {
	ID              string `json:"id" doc:"Id of the node in this cluster"`
	Name            string `json:"name" doc:"Name of the node, as its settings say"`
	BootID          string `json:"bootId" doc:"Id of the process: another one after each start"`
	Version         string `json:"version" doc:"Version of the server"`
	StartedAt       string `json:"startedAt" format:"date-time" doc:"When the process started"`
	LastHeartbeatAt string `json:"lastHeartbeatAt" format:"date-time" doc:"Its last sign of life"`
	Sessions        *int   `json:"sessions" doc:"Executor sessions of all tenants; for administrators, others get null"`
	Current         bool   `json:"current" doc:"The node that answers"`
}

// Version is what runs here.
type Version struct {
	Version string `json:"version" doc:"Version of the server, as its build says; empty: not known"`
	Commit  string `json:"commit,omitempty" doc:"Commit that it was built from; absent: not known"`
	// ExecutorAddresses are those of the live nodes.
	ExecutorAddresses []string `json:"executorAddresses" doc:"Where executors connect, host:port, this node's first; for administrators, others get none"`
}

func (a *API) registerSystem() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/nodes", ID: "list-nodes", Tag: "system", Summary: "The live admin nodes",
		Description: "Those that have been heard of lately; get-cluster says more.",
	}, func(_ context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[Node], error) {
		items := []Node{}
		for _, n := range a.deps.Nodes() {
			one := Node{
				ID: n.ID.String(), Name: n.Name, BootID: n.BootID, Version: n.Version, StartedAt: web.Instant(n.StartedAt),
				LastHeartbeatAt: web.Instant(n.HeartbeatAt), Current: n.BootID == a.deps.Self,
			}
			if id.May(domain.PermAdmin) {
				one.Sessions = &n.Sessions
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

// healthz says that the process answers, whatever the database does.
func (a *API) healthz(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) }

// held is why firing is held on this node; empty: it is not.
func (a *API) held() string {
	if a.deps.NoFire {
		return "no_fire"
	}
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
