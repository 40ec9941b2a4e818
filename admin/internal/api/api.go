package api

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
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

// Sealer seals secrets before they are stored.
type Sealer interface {
	Seal(tenant domain.TenantID, purpose string, id int64, plain []byte) ([]byte, error)
}

// Store is what the API asks of the database: the nouns, and the transitions
// that people ask for.
type Store interface {
	store.Console
	CreateExecution(ctx context.Context, e domain.Execution) (run domain.Execution, created bool, err error)
	RequestCancel(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID, reason domain.Reason, message string) (domain.Execution, error)
	JobSpec(ctx context.Context, tenant domain.TenantID, id domain.JobID, revision int64) (*domain.JobSpec, error)
	ReadPartitions(ctx context.Context) (domain.PartitionTable, error)
	RolledBack() (r domain.Rollback, held bool)
	Ping(ctx context.Context) error
}

// Deps is what the API needs from other rooms.
type Deps struct {
	Store   Store
	Auth    *auth.Service
	Secrets Sealer
	// SignScript signs revisions of scripts with the private half of ScriptKey.
	SignScript store.SignFunc
	ScriptKey  ed25519.PublicKey
	Runner     Runner
	// NewID makes ids for jobs, runs, users and so on.
	NewID func() int64
	// Now is the database's clock as this node knows it.
	Now func() time.Time
	// NextFire computes the first fire of a job's schedule, as the engine will.
	NextFire func(id domain.JobID) store.NextFireFunc
	// Plan gives fire times that were overdue at a change their rows.
	Plan store.PlanFunc
	// FollowCalendar plans the jobs of a calendar that has changed anew; what
	// it does not come to, a chore of any node does. It may be nil.
	FollowCalendar func(ctx context.Context, id domain.CalendarID)
	// JobsChanged tells the scheduler to look at the triggers now; may be nil.
	JobsChanged func()
	// CallJob returns the job that calls of a handler belong to.
	CallJob func(ctx context.Context, executor domain.Executor, handler domain.Handler) (store.JobView, error)
	// Declaration returns what code declares of a job, CodeNotFound if that is not
	// known. GivenBack tells that a job has become so; both may be nil.
	Declaration func(ctx context.Context, job store.JobView) (domain.DeclaredJob, error)
	GivenBack   func(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID)
	// Denied tells that there is a new denial, for the sessions that it names;
	// may be nil.
	Denied func()
	// Nodes returns the live nodes; Self is this one's boot id.
	Nodes func() []domain.Node
	Self  string
	// Weights reads from a build's catalogue how many slots a run of each of its
	// handlers takes, by name; those that are missing take 1. nil: all do.
	Weights func(catalogue []byte) (map[string]int, error)
	// ClockHeld says that this node does not believe the database's clock, what
	// it believed last and how far the clock leapt; nil: it believes it.
	ClockHeld func() (at time.Time, jump time.Duration, held bool)
	// Ready reports why this node cannot serve; nil: the store's Ping decides.
	Ready func(ctx context.Context) error
	// Draining says that this node stops soon, Closing that it begins nothing
	// new: then only probes and metrics are answered. nil: never.
	Draining, Closing func() bool
	// UI serves everything outside /api, /healthz, /readyz and /metrics; nil: 404.
	UI http.Handler
	// Metrics is where request metrics are registered, and what /metrics shows.
	Metrics *prometheus.Registry
	// MetricsElsewhere: another port shows them, and /metrics is not here.
	MetricsElsewhere bool
	Logger           *slog.Logger
	Version          string
	// RunRetention is how long ended runs are kept; 0: not known.
	RunRetention time.Duration
	// Waits bounds requests that wait or stream.
	Waits web.Waits
	// SecureCookies says when cookies are for TLS only.
	SecureCookies SecureCookies
	// TrustedProxies are the networks from which X-Forwarded-For, X-Real-IP and
	// X-Forwarded-Proto are believed; empty: none.
	TrustedProxies []netip.Prefix
}

// API is the HTTP side of a node. It is an http.Handler and starts nothing.
type API struct {
	*web.Server // fixed after construction
	deps        Deps
	log         *slog.Logger
}

// New builds the handler.
func New(deps Deps) (*API, error) {
	if deps.Denied == nil {
		deps.Denied = func() {}
	}
	if deps.JobsChanged == nil {
		deps.JobsChanged = func() {}
	}
	if deps.Ready == nil && deps.Store != nil {
		deps.Ready = deps.Store.Ping
	}
	if deps.ClockHeld == nil {
		deps.ClockHeld = func() (at time.Time, jump time.Duration, held bool) { return at, 0, false }
	}
	if deps.Weights == nil {
		deps.Weights = func([]byte) (map[string]int, error) { return nil, nil }
	}
	never := func() bool { return false }
	if deps.Draining == nil {
		deps.Draining = never
	}
	if deps.Closing == nil {
		deps.Closing = never
	}
	if deps.Nodes == nil {
		deps.Nodes = func() []domain.Node { return nil }
	}
	if deps.Metrics == nil {
		deps.Metrics = prometheus.NewRegistry()
	}
	a := &API{deps: deps, log: deps.Logger.With("component", "api")}
	a.Server = web.New(web.Options{
		Document: description(),
		Authenticate: func(ctx context.Context, bearer, ip string) (auth.Identity, error) {
			return deps.Auth.Authenticate(ctx, bearer, ip)
		},
		CallsPerSecond: func(ctx context.Context, tenant domain.TenantID) (int64, error) {
			return deps.Store.MaxOf(ctx, tenant, domain.QuotaAPICalls)
		},
		Closing: deps.Closing, UI: deps.UI, Waits: deps.Waits, TrustedProxies: deps.TrustedProxies, Metrics: deps.Metrics, Logger: a.log,
	})
	a.routes()
	return a, nil
}

func metricsHandler(r *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

// MetricsAlone is the handler of a port that shows metrics and nothing else.
func MetricsAlone(r *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metricsHandler(r))
	return mux
}

func (a *API) routes() {
	a.registerSession()
	a.registerAPIKeys()
	a.registerUsers()
	a.registerInvitations()
	a.registerTenants()
	a.registerExecutors()
	a.registerHandlers()
	a.registerJoinTokens()
	a.registerDenials()
	a.registerRefusals()
	a.registerLimits()
	a.registerQuotas()
	a.registerJobs()
	a.registerJobActions()
	a.registerProposals()
	a.registerGiveBack()
	a.registerSchedules()
	a.registerCalendars()
	a.registerScripts()
	a.registerBackfills()
	a.registerRuns()
	a.registerCalls()
	a.registerExplain()
	a.registerLogs()
	a.registerOverview()
	a.registerSystem()
	a.registerCluster()
	a.Plain(web.Public, http.MethodGet, "/healthz", a.healthz)
	a.Plain(web.Public, http.MethodGet, "/readyz", a.readyz)
	if a.deps.MetricsElsewhere {
		a.Plain(web.Public, http.MethodGet, "/metrics", func(c *gin.Context) {
			a.WriteProblem(c, web.NewProblem(c.Request.Context(), http.StatusNotFound, domain.CodeNotFound, "metrics are on another port of this node (--metrics-listen)"))
		})
	} else {
		a.Plain(web.Public, http.MethodGet, "/metrics", gin.WrapH(metricsHandler(a.deps.Metrics)))
	}
	a.DescribeCurrent(reflect.TypeFor[Job](), "With revision_mismatch: the job as it is now")
	a.ServeDocument(a.deps.UI != nil)
}
