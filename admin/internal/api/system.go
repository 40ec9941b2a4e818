package api

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
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

// system shows this node and the cluster, and takes decisions about the database that
// only a person can take.
type system struct {
	// fixed after construction
	server *web.Server
	store  interface {
		store.Cluster
		store.Refusals
		partitionReader
		rollbackReader
	}
	nodes     func() []domain.Node
	self      string
	version   string
	noFire    bool
	clockHeld func() (at time.Time, jump time.Duration, held bool)
	draining  func() bool
	ready     func(ctx context.Context) error
	log       *slog.Logger
}

func (sys *system) register(server *web.Server) {
	sys.registerCluster(server)
	server.Plain(web.Public, http.MethodGet, "/healthz", healthz)
	server.Plain(web.Public, http.MethodGet, "/readyz", sys.readyz)
	web.Register(server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/nodes", ID: "list-nodes", Tag: "system", Summary: "The live admin nodes",
		Description: "Those that have been heard of lately; get-cluster says more.",
	}, func(_ context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[Node], error) {
		items := []Node{}
		for _, n := range sys.nodes() {
			one := Node{
				ID: n.ID.String(), Name: n.Name, BootID: n.BootID, Version: n.Version, StartedAt: web.Instant(n.StartedAt),
				LastHeartbeatAt: web.Instant(n.HeartbeatAt), Current: n.BootID == sys.self,
			}
			if id.May(domain.PermAdmin) {
				one.Sessions = &n.Sessions
			}
			items = append(items, one)
		}
		return web.SlicePage(items, in.ShortPage, "nodes")
	})
	version := Version{Version: sys.version, Commit: commit()}
	web.Register(server, web.SignedIn, web.Operation{
		Method: http.MethodGet, Path: web.Base + "/version", ID: "version", Tag: "system", Summary: "The server's version",
		Description: "Of the node that answers.",
	}, func(_ context.Context, id auth.Identity, _ *struct{}) (*struct{ Body Version }, error) {
		answer := version
		answer.ExecutorAddresses = []string{}
		if id.May(domain.PermAdmin) {
			answer.ExecutorAddresses = sys.executorAddresses()
		}
		return &struct{ Body Version }{answer}, nil
	})
}

func (sys *system) executorAddresses() []string {
	out := []string{}
	for _, n := range sys.nodes() {
		if n.BootID == sys.self {
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
func healthz(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) }

// held is why firing is held on this node; empty: it is not.
func (sys *system) held() string {
	if sys.noFire {
		return "no_fire"
	}
	if _, held := sys.store.RolledBack(); held {
		return string(domain.CodeRolledBack)
	}
	if _, _, held := sys.clockHeld(); held {
		return string(domain.CodeClockJump)
	}
	return ""
}

// readyTimeout bounds a readiness check.
const readyTimeout = 2 * time.Second

// readyz says whether requests should be sent here.
func (sys *system) readyz(c *gin.Context) {
	if sys.draining() {
		sys.server.WriteProblem(c, web.NewProblem(c.Request.Context(), http.StatusServiceUnavailable, domain.CodeUnavailable, web.Stopping))
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	if err := sys.ready(ctx); err != nil {
		sys.log.Debug("not ready", "err", err)
		sys.server.WriteProblem(c, web.NewProblem(c.Request.Context(), http.StatusServiceUnavailable, domain.CodeUnavailable,
			"this node cannot serve now; its log has the reason"))
		return
	}
	answer := gin.H{"status": "ready"}
	if held := sys.held(); held != "" {
		answer["held"] = held // it serves, and an operator needs it for that
	}
	c.JSON(http.StatusOK, answer)
}
