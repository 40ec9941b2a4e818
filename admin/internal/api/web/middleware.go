package web

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Request is what the middlewares know of a request. It is owned by the
// goroutine that serves it.
type Request struct {
	ID string
	// IP is the client's, and secure says whether it came over TLS; of a trusted
	// proxy, as the proxy says.
	IP     string
	Secure bool
	actor  auth.Identity
	bearer bool                     // a credential came with it
	params gin.Params               // of the path
	Trace  domain.Trace             // of the caller
	http   *http.Request            // as it came; nil outside of the server
	conn   *http.ResponseController // nil outside of the server
	// release gives back the body's share of the budget before the request is over; may be nil.
	release func()
	// computed gives back the share of computations. It is nil if the request has none.
	computed func()
	// reached gives back the share of requests to other hosts. It is nil if the request has none.
	reached func()
	// answered gives back the share of HoldAnswer. It is nil if the request has none.
	answered func()
	// allowed looks again who asks, and whether they may; nil outside of operations.
	allowed func() error
}

// StillAllowed reports why whoever has waited in a request of ctx may not see what has
// come since: locked, removed or revoked meanwhile. A session's token that has merely
// expired served the request when it began, and serves it to the end.
func StillAllowed(ctx context.Context) error {
	r := RequestOf(ctx)
	if r.allowed == nil {
		return nil
	}
	if err := r.allowed(); !domain.Is(err, domain.CodeTokenExpired) {
		return err
	}
	return nil
}

// bodyIsRead takes back the deadline that huma has set for the reading of the
// body, 5 s. The server goes on reading, to see when the client leaves: where
// there is no body, it would take the deadline for that, and end the request's
// context.
func (r *Request) bodyIsRead() {
	r.stopComputing()
	if r.release != nil {
		r.release()
	}
	r.readWithin(0)
}

// readWithin bounds the time in which the body arrives. 0 means no bound.
func (r *Request) readWithin(patience time.Duration) {
	var until time.Time
	if patience > 0 {
		until = time.Now().Add(patience)
	}
	if r.conn != nil {
		_ = r.conn.SetReadDeadline(until) // refused by connections that have none
	}
}

// compute waits until the request may compute. The second call of a request has no effect.
func (s *Server) compute(ctx context.Context) (err error) {
	r := RequestOf(ctx)
	if r.computed == nil {
		r.computed, err = s.budgets.computing.take(ctx, ownerOf(r.actor, r.IP), 1)
	}
	return err
}

// Compute runs a part of an operation that computes for some milliseconds, with a share of the
// computations. Parts of several requests take turns.
func (s *Server) Compute(ctx context.Context, part func()) error {
	r := RequestOf(ctx)
	if r.computed == nil { // otherwise the whole operation computes
		done, err := s.budgets.computing.take(ctx, ownerOf(r.actor, r.IP), 1)
		if err != nil {
			return err
		}
		defer done()
	}
	part()
	return nil
}

// HoldAnswer takes a share of the unread answers for an answer that may be large. It is for
// operations that send most answers at once. The request holds the share until its end.
func (s *Server) HoldAnswer(ctx context.Context) (err error) {
	r := RequestOf(ctx)
	if r.answered == nil {
		r.answered, err = s.budgets.sending.take(ctx, ownerOf(r.actor, r.IP), largeAnswer)
	}
	return err
}

func (r *Request) answerIsRead() {
	if r.answered != nil {
		r.answered()
		r.answered = nil
	}
}

// reach waits until the request may wait for another host.
func (s *Server) reach(ctx context.Context) (err error) {
	r := RequestOf(ctx)
	r.reached, err = s.budgets.reaching.take(ctx, ownerOf(r.actor, r.IP), 1)
	return err
}

func (r *Request) stopReaching() {
	if r.reached != nil {
		r.reached()
		r.reached = nil
	}
}

func (r *Request) stopComputing() {
	if r.computed != nil {
		r.computed()
		r.computed = nil
	}
}

// maxCookie is how long a cookie may be that is looked at, in bytes.
const maxCookie = 128

// Cookie returns what the request says in a cookie; empty: nothing, or more than any
// cookie of ours.
func (r *Request) Cookie(name string) string {
	if r.http == nil {
		return ""
	}
	c, err := r.http.Cookie(name)
	if err != nil || len(c.Value) > maxCookie {
		return ""
	}
	return c.Value
}

type requestCtxKey struct{}

// RequestOf never returns nil.
func RequestOf(ctx context.Context) *Request {
	if r, ok := ctx.Value(requestCtxKey{}).(*Request); ok {
		return r
	}
	return &Request{}
}

// unescapeParams reads what the path's parameters say. gin would take a plus sign
// for a space, as in queries.
func unescapeParams(c *gin.Context) {
	for i, p := range c.Params {
		if text, err := url.PathUnescape(p.Value); err == nil {
			c.Params[i].Value = text
		}
	}
	c.Next()
}

// identifyRequest gives the request its id, and logs and counts it when it is
// over.
func (s *Server) identifyRequest(c *gin.Context) {
	r := &Request{ID: requestID(c.GetHeader("X-Request-Id")), Trace: domain.ParseTrace(c.GetHeader("Traceparent"))}
	r.IP, r.Secure = s.client(c.Request)
	r.http, r.conn = c.Request, http.NewResponseController(c.Writer)
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), requestCtxKey{}, r))
	c.Header("X-Request-Id", r.ID)
	start := time.Now()
	c.Next()
	if c.Request.ContentLength != 0 { // net/http reads what is left of a body, and would wait for it
		r.readWithin(bodyPatience)
	}
	took := time.Since(start)
	route := c.FullPath()
	if route == "" {
		route = "other" // pages, and what does not exist: one series for all
	}
	status := c.Writer.Status()
	s.requests.observe(c.Request.Method, route, status, took)
	if isAPI(c.Request.URL.Path) {
		s.logRequest(c, r, status, took)
	}
}

// logRequest writes the access log: reads at debug, changes at info, our own
// faults at warn. Queries are left out.
func (s *Server) logRequest(c *gin.Context, r *Request, status int, took time.Duration) {
	level := slog.LevelInfo
	switch {
	case status >= 500:
		level = slog.LevelWarn
	case c.Request.Method == http.MethodGet:
		level = slog.LevelDebug
	}
	if !s.log.Enabled(c.Request.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", c.Request.Method), slog.String("path", c.Request.URL.Path), slog.Int("status", status),
		slog.Duration("duration", took), slog.Int("bytes", max(c.Writer.Size(), 0)),
		slog.String("request_id", r.ID), slog.String("remote_ip", r.IP),
	}
	if r.actor.Known() {
		attrs = append(attrs, slog.String("actor", r.actor.Actor()), slog.Int64("tenant_id", int64(r.actor.Tenant)))
	}
	s.log.LogAttrs(c.Request.Context(), level, "request", attrs...)
}

// requestID takes over a client's id when it is harmless, else makes one.
func requestID(given string) string {
	if len(given) >= 8 && len(given) <= 64 && !strings.ContainsFunc(given, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	}) {
		return given
	}
	raw := make([]byte, 8)
	_, _ = rand.Read(raw) // never fails (crypto/rand)
	return hex.EncodeToString(raw)
}

// recoverPanic turns a panic into an internal error; the server goes on.
func (s *Server) recoverPanic(c *gin.Context) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(v) // the signal to cut the connection, not a fault
		}
		s.log.Error("request panicked", "request_id", RequestOf(c.Request.Context()).ID,
			"path", c.FullPath(), "err", fmt.Sprint(v), "stack", string(debug.Stack()))
		if c.Writer.Written() {
			panic(http.ErrAbortHandler) // half an answer is out: cut the connection
		}
		p := NewProblem(c.Request.Context(), http.StatusInternalServerError, domain.CodeInternal,
			"something went wrong; the server's log has the details under this request id")
		s.WriteProblem(c, p)
	}()
	c.Next()
}

// guardAPI sets the headers of everything that is not a page: answers are
// data, which no browser should render, frame, guess at or keep.
func (s *Server) guardAPI(c *gin.Context) {
	h := c.Writer.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if isAPI(c.Request.URL.Path) || c.FullPath() != "" {
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Cache-Control", "no-store")
	}
	if RequestOf(c.Request.Context()).Secure {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	if s.options.Closing() && !probes[c.FullPath()] {
		h.Set("Retry-After", "1")
		h.Set("Connection", "close")
		s.WriteProblem(c, NewProblem(c.Request.Context(), http.StatusServiceUnavailable, domain.CodeUnavailable, Stopping))
		c.Abort()
		return
	}
	c.Next()
}

// probes are answered as long as the process answers at all.
var probes = map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true}

const Stopping = "this node stops: it finishes what is under way and begins nothing new"

func isAPI(path string) bool { return path == "/api" || strings.HasPrefix(path, "/api/") }

// noRoute hands pages to the UI; what looks like API stays problem+json.
func (s *Server) noRoute(c *gin.Context) {
	if isAPI(c.Request.URL.Path) || s.options.UI == nil {
		s.WriteProblem(c, NewProblem(c.Request.Context(), http.StatusNotFound, domain.CodeNotFound,
			"there is nothing at this address; see /api/openapi.json"))
		return
	}
	// gin has prepared a 404, which only counts until the first write.
	c.Status(http.StatusOK)
	s.plainAsProblem(c, func(w http.ResponseWriter) { s.options.UI.ServeHTTP(w, c.Request) })
	c.Writer.WriteHeaderNow()
}

func (s *Server) noMethod(c *gin.Context) {
	s.WriteProblem(c, NewProblem(c.Request.Context(), http.StatusMethodNotAllowed, domain.CodeNotFound,
		fmt.Sprintf("this address does not know the method %.20q", c.Request.Method)))
}

// requestMetrics counts and times requests by route template.
type requestMetrics struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newRequestMetrics(r prometheus.Registerer) *requestMetrics {
	m := &requestMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "carillon_http_requests_total", Help: "HTTP requests by route and status.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "carillon_http_request_seconds", Help: "Duration of HTTP requests by route; waits included.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 30},
		}, []string{"method", "route"}),
	}
	r.MustRegister(m.total, m.seconds)
	return m
}

func (m *requestMetrics) observe(method, route string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other" // anybody can invent methods; each would be a series
	}
	m.total.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(method, route).Observe(took.Seconds())
}
