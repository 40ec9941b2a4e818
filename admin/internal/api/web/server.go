package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Base is the prefix of all versioned operations.
const Base = "/api/v1"

// Options is what a Server needs of those who use it. All of it is needed, but
// for Path, UI, Waits and TrustedProxies.
type Options struct {
	// Document is what the OpenAPI document says beside operations and schemas;
	// its registry of schemas gets those.
	Document *huma.OpenAPI
	// Authenticate says who a bearer token belongs to; ip is the client's.
	Authenticate func(ctx context.Context, bearer, ip string) (auth.Identity, error)
	// CallsPerSecond is how many calls of a tenant a node answers; 0: no limit.
	CallsPerSecond func(ctx context.Context, tenant domain.TenantID) (int64, error)
	// InReach reports whether an object exists whose executor is one of a bounded reach.
	InReach func(ctx context.Context, p domain.ReachQuery) (bool, error)
	// Closing says that the node begins nothing new: then only probes are answered.
	Closing func() bool
	// Path is the place of the node on its host, such as /carillon. Empty means the root.
	// Requests come without it (Below). Redirects are with it.
	Path string
	// UI serves what is neither a route nor below /api; nil: 404.
	UI http.Handler
	// Waits bounds requests that wait or stream.
	Waits Waits
	// TrustedProxies are the networks from which X-Forwarded-For, X-Real-IP and
	// X-Forwarded-Proto are believed; empty: none.
	TrustedProxies []netip.Prefix
	Metrics        prometheus.Registerer
	Logger         *slog.Logger
}

// Server answers requests by the operations that are registered with it. It is
// an http.Handler and starts nothing. Whoever uses it does not get at its router:
// Register and Plain are the only ways to add a route.
type Server struct {
	// fixed after construction
	options  Options
	log      *slog.Logger
	engine   *gin.Engine
	huma     huma.API
	policies map[string]Policy // by "METHOD /path"
	bounds   map[string]string // by operation; see Bounds
	audit    audit
	via      map[string]string // ways of requests, by the beginning of their User-Agent; see Via
	requests *requestMetrics
	waits    *waits
	rates    *rates
	budgets  budgets
	bodies   map[string]*huma.Schema // of operations, by id
	kinds    Kinds
	origins  *http.CrossOriginProtection

	specOnce   sync.Once
	spec       []byte // guarded by specOnce
	packedSpec []byte // guarded by specOnce; spec, compressed
}

// ServerTimeouts sets the limits that the API relies on.
func ServerTimeouts(s *http.Server) {
	s.ReadHeaderTimeout = 5 * time.Second // slow headers hold a connection for no longer
	s.IdleTimeout = 2 * time.Minute
	s.WriteTimeout = 0          // waiting for runs and logs is bounded per request
	s.MaxHeaderBytes = 12 << 10 // net/http adds 4 KiB
}

// New makes one without any route.
func New(options Options) *Server {
	s := &Server{
		options: options, log: options.Logger, policies: map[string]Policy{}, bounds: map[string]string{}, via: map[string]string{}, audit: audit{unaudited: map[string]string{}, kinds: map[string]string{}, log: options.Logger},
		requests: newRequestMetrics(options.Metrics), waits: newWaits(options.Waits), rates: newRates(options.CallsPerSecond),
		budgets: newBudgets(), bodies: map[string]*huma.Schema{},
		origins: http.NewCrossOriginProtection(),
	}
	s.kinds.server = s
	gin.SetMode(gin.ReleaseMode)
	s.engine = gin.New()
	s.engine.RedirectTrailingSlash = false
	s.engine.HandleMethodNotAllowed = true
	// A slash inside a name is sent as %2F, and is no slash of the path.
	s.engine.UseEscapedPath, s.engine.UnescapePathValues = true, false
	s.engine.Use(unescapeParams, s.identifyRequest, s.recoverPanic, s.guardAPI)
	s.engine.NoRoute(s.noRoute)
	s.engine.NoMethod(s.noMethod)
	s.huma = humagin.New(s.engine, humaConfig(options.Document))
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.engine.ServeHTTP(w, r) }
