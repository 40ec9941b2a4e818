package api

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/carillon-sched/carillon/admin/internal/api/search"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Runner is what the engine does for a run that somebody asked for.
type Runner interface {
	// Submit begins the way of a run that was just created, so that it does
	// not wait for a sweep. It does not block.
	Submit(e domain.Execution)
	// SendCancel tells the run's instance to stop, if this node serves it.
	SendCancel(e domain.Execution)
	// WaitFinished returns the run once it is terminal; when ctx ends first,
	// the run as it is with domain.CodeWaitTimedOut.
	WaitFinished(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (domain.Execution, error)
}

// Store is what the API asks of the database: the nouns, and the transitions
// that people ask for.
type Store interface {
	store.Console
	store.MaintenanceView
	executionCreator
	executionCanceller
	store.Specs
	partitionReader
	rollbackReader
	search.Store
	Ping(ctx context.Context) error
}

// The API needs these parts of the engine's store.
type (
	executionCreator interface {
		CreateExecution(ctx context.Context, e domain.Execution) (run domain.Execution, created bool, err error)
	}
	executionCanceller interface {
		RequestCancel(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID, reason domain.Reason, message string) (domain.Execution, error)
	}
	partitionReader interface {
		ReadPartitions(ctx context.Context) (domain.PartitionTable, error)
	}
	rollbackReader interface {
		RolledBack() (r domain.Rollback, held bool)
	}
)

// Deps is what the API needs from other rooms. All functions are needed.
type Deps struct {
	Store   Store
	Auth    *auth.Service
	Secrets web.Sealer
	// SignScript signs revisions of scripts with the private half of ScriptKey.
	SignScript store.SignFunc
	ScriptKey  ed25519.PublicKey
	Runner     Runner
	// NewID makes ids for jobs, runs, users and so on.
	NewID func() int64
	// Now is the database's clock as this node knows it.
	Now func() time.Time
	// Plan gives fire times that were overdue at a change their rows.
	Plan store.PlanFunc
	// FollowCalendar plans the jobs of a calendar that has changed anew; what
	// it does not come to, a chore of any node does.
	FollowCalendar func(ctx context.Context, id domain.CalendarID)
	// JobsChanged tells the scheduler to look at the triggers now.
	JobsChanged func()
	// CallJob returns the job that the calls, or the timers, of a handler belong
	// to, and makes it where there is none.
	CallJob func(ctx context.Context, executor domain.Executor, handler domain.Handler, kind domain.JobKind) (store.JobView, error)
	// Held are the partitions that this node plans.
	Held func() []domain.PartitionTerm
	// TimersSet tells that timers were set or moved, the first of them for this
	// instant.
	TimersSet func(first time.Time)
	// Handlers are those of the tenants' built-in executors, beside the one that calls an
	// address.
	Handlers nodehandler.List
	// TryAddress makes one call as a run of the handler that calls an address would.
	TryAddress func(ctx context.Context, tenant domain.TenantID, input []byte) (nodehandler.Trial, error)
	// Attention adds to the overview.
	Attention []web.Attention
	// TenantMade gives a new tenant its default receiver.
	TenantMade func(ctx context.Context, t domain.Tenant)
	// Declaration returns what code declares of a job, CodeNotFound if that is not
	// known. GivenBack tells that a job has become so, or that refused declarations may be taken now.
	Declaration func(ctx context.Context, job store.JobView) (domain.DeclaredJob, error)
	GivenBack   func(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID)
	// BuiltInChanged lets this node hear, before it returns, of a tenant's changed
	// policy of callbacks, or first connection.
	BuiltInChanged func(ctx context.Context, tenant domain.TenantID)
	// Denied tells that there is a new denial, for the sessions that it names.
	Denied func()
	// DisabledChanged lets this node hear, before it returns, of an executor or a tenant
	// that was disabled or enabled.
	DisabledChanged func(ctx context.Context)
	// DrainsChanged lets this node hear, before it returns, of an instance that was
	// drained or undrained.
	DrainsChanged func(ctx context.Context)
	// BeforeDisable resumes what a former enabling has not come to yet.
	BeforeDisable func(ctx context.Context) error
	// Statistics is how long statistics are kept.
	Statistics store.StatisticsKept
	// Nodes returns the live nodes; Self is this one's boot id.
	Nodes func() []domain.Node
	Self  string
	// Weights reads from a build's catalogue how many slots a run of each of its
	// handlers takes, by name; those that are missing take 1.
	Weights func(catalogue []byte) (map[string]int, error)
	// ClockHeld says that this node does not believe the database's clock, what
	// it believed last and how far the clock leapt.
	ClockHeld func() (at time.Time, jump time.Duration, held bool)
	// Ready reports why this node cannot serve.
	Ready func(ctx context.Context) error
	// NoFire: this node starts nothing, as its operator wants.
	NoFire bool
	// Draining says that this node stops soon, Closing that it begins nothing
	// new: then only probes and metrics are answered.
	Draining, Closing func() bool
	// Path is the place of the node on its host, such as /carillon. Empty means the root.
	// Requests come without it (web.Below).
	Path string
	// UI serves everything outside /api, /healthz, /readyz and /metrics; nil: 404.
	UI http.Handler
	// AddOns adds the operations and doors of the add-ons.
	AddOns func(*web.Server, *Actions)
	// Metrics is where request metrics are registered, and what /metrics shows.
	Metrics *prometheus.Registry
	// MetricsElsewhere: another port shows them, and /metrics is not here.
	MetricsElsewhere bool
	Logger           *slog.Logger
	Version          string
	// RunRetention is how long ended runs are kept; 0: not known.
	RunRetention time.Duration
	// LogRetention is how long their logs are kept; 0: not known.
	LogRetention time.Duration
	// Waits bounds requests that wait or stream.
	Waits web.Waits
	// SecureCookies says when cookies are for TLS only.
	SecureCookies SecureCookies
	// TrustedProxies are the networks from which X-Forwarded-For, X-Real-IP and
	// X-Forwarded-Proto are believed; empty: none.
	TrustedProxies []netip.Prefix
}

// New builds the HTTP side of a node with all its operations. It starts nothing.
func New(deps Deps) *web.Server {
	log := deps.Logger.With("component", "api")
	server := web.New(web.Options{
		Document: description(deps.Path), Path: deps.Path,
		Authenticate: func(ctx context.Context, bearer, ip string) (auth.Identity, error) {
			return deps.Auth.Authenticate(ctx, bearer, ip)
		},
		CallsPerSecond: func(ctx context.Context, tenant domain.TenantID) (int64, error) {
			return deps.Store.MaxOf(ctx, tenant, domain.QuotaAPICalls)
		},
		InReach: func(ctx context.Context, p domain.ReachQuery) (bool, error) { return deps.Store.InReach(ctx, p) },
		Closing: deps.Closing, UI: deps.UI, Waits: deps.Waits, TrustedProxies: deps.TrustedProxies, Metrics: deps.Metrics, Logger: log,
	})
	registerPackages(server, &deps, log)
	actions := registerNouns(server, &deps, log)
	registerMetrics(server, &deps)
	deps.AddOns(server, actions)
	server.DescribeCurrent(reflect.TypeFor[Job](), "With revision_mismatch: the job as it is now")
	server.ServeDocument(deps.UI != nil)
	return server
}

func metricsHandler(r *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// MetricsOnly is the handler of a port that shows metrics and nothing else.
func MetricsOnly(r *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metricsHandler(r))
	return mux
}

func registerMetrics(server *web.Server, d *Deps) {
	if d.MetricsElsewhere {
		server.Plain(web.Public, http.MethodGet, "/metrics", func(c *gin.Context) {
			server.WriteProblem(c, web.NewProblem(c.Request.Context(), http.StatusNotFound, domain.CodeNotFound, "metrics are on another port of this node (--metrics-listen)"))
		})
		return
	}
	metrics := metricsHandler(d.Metrics)
	server.Plain(web.Public, http.MethodGet, "/metrics", func(c *gin.Context) {
		if !web.FromThisMachine(c.Request) {
			server.WriteProblem(c, web.NewProblem(c.Request.Context(), http.StatusForbidden, domain.CodeDenied, "metrics are for this machine alone on this port; for others the node serves them on an address of their own, for example --metrics-listen 10.0.0.5:9100"))
			return
		}
		metrics.ServeHTTP(c.Writer, c.Request)
	})
}

// APIVersion is the version of the document, apart from the server's.
const APIVersion = "1.0.0"

// description is the part of the document beside operations and schemas. path is the place
// of the node on its host.
func description(path string) *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Carillon", Version: APIVersion,
			Description: "Jobs, runs and executors. Errors are application/problem+json with a stable code; ids are strings; instants are RFC 3339 UTC with milliseconds; lists are paged by cursor.",
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		// Whoever reads it has it from the server that it speaks of.
		Servers: []*huma.Server{{URL: cmp.Or(path, "/"), Description: "The server that this document comes from"}},
		Components: &huma.Components{
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"bearer":        {Type: "http", Scheme: "bearer", Description: "An access token from POST /api/v1/auth/login, or an API key (ck_…)."},
				"refreshCookie": {Type: "apiKey", In: "cookie", Name: refreshCookiePrefix + "CLUSTER", Description: "Set by login, exchanged by refresh; scripts in pages cannot read it. Its name ends with one that each cluster has of its own: send back what login has set."},
			},
		},
		Tags: []*huma.Tag{
			{Name: "session", Description: "Log in, and who am I"}, {Name: "jobs", Description: "Definitions and schedules"},
			{Name: "runs", Description: "What ran, runs and will run"}, {Name: "executors", Description: "Applications and their processes"},
			{Name: "calls", Description: "Handlers, called by programs"}, {Name: "timers", Description: "Single runs at an instant, set by programs"}, {Name: "bulk", Description: "One action on many jobs or runs"}, {Name: "statistics", Description: "How runs have ended, by time"}, {Name: "maintenance", Description: "Times in which nothing starts: of the cluster, a tenant, an executor"}, {Name: "retention", Description: "How long ended runs are kept, and their deletion by hand"}, {Name: "documents", Description: "Plans and writes of documents of any kind"}, {Name: "search", Description: "Objects of any kind by name, id or label"}, {Name: "calendars", Description: "Days and windows without fires"}, {Name: "connections", Description: "Brokers that messages are published to"},
			{Name: "alerts", Description: "What is told, to whom, and what became of it"}, {Name: "alert-channels", Description: "Means by which a tenant gets alerts"}, {Name: "alert-rules", Description: "What a tenant is told of its events, and by which channels"},
			{Name: "scripts", Description: "What agents run"}, {Name: "access", Description: "Users, API keys, join tokens"}, {Name: "system", Description: "The tenant and the cluster at a glance"},
			{Name: "platform", Description: "All tenants"},
		},
	}
}
