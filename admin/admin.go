// Package admin wires the rooms below admin/internal into one node: it
// constructs them, owns the long-lived goroutines, and stops them in the order
// of a trigger's way (docs/dev/architecture.md).
//
// A node is a value: New opens the database, brings its schema up to date,
// enters the node into the cluster and opens the listeners (port 0 works);
// Run serves until its context ends. Tests and the demo start nodes just as
// the server command does.
package admin

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/api"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/calendar"
	"github.com/carillon-sched/carillon/admin/internal/callback"
	"github.com/carillon-sched/carillon/admin/internal/calljob"
	"github.com/carillon-sched/carillon/admin/internal/clockguard"
	"github.com/carillon-sched/carillon/admin/internal/completer"
	"github.com/carillon-sched/carillon/admin/internal/declare"
	"github.com/carillon-sched/carillon/admin/internal/disabled"
	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/front"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/hotset"
	"github.com/carillon-sched/carillon/admin/internal/httpconn"
	"github.com/carillon-sched/carillon/admin/internal/lease"
	"github.com/carillon-sched/carillon/admin/internal/membership"
	"github.com/carillon-sched/carillon/admin/internal/provision"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/sweeper"
	"github.com/carillon-sched/carillon/admin/internal/telemetry"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/admin/internal/tracing"
	"github.com/carillon-sched/carillon/admin/internal/watchdog"
	"github.com/carillon-sched/carillon/schedule"
)

// Admin is one node. New opens everything, Run serves, and Run's end closes
// everything.
type Admin struct {
	config Config
	log    *slog.Logger

	store      *gormstore.Store
	ids        *domain.IDSource
	clock      *scheduler.Clock
	guard      *clockguard.Guard
	runs       *runtable.Table
	timer      *scheduler.Timer
	schedules  *timing.Cache
	planner    *scheduler.Planner
	hot        *hotset.Set // nil: timers that are due are found in the database alone
	leases     *lease.Keeper
	dispatcher *dispatch.Dispatcher
	gateway    *gateway.Gateway
	callbacks  *callback.Service
	calls      calljob.Jobs
	completer  *completer.Completer
	sweeper    *sweeper.Sweeper
	calendars  *calendar.Follower
	declarer   *declare.Declarer
	auth       *auth.Service
	box        *secret.Box
	authority  *auth.Authority // nil: executors get no certificates
	denials    *auth.Denials
	disabled   *disabled.List
	follow     *disabled.Follower // of what is disabled
	self       *membership.Member
	metrics    *telemetry.Metrics
	gauges     *telemetry.Gauges
	steps      observed
	tracer     *tracing.Tracer // nil: no traces
	endings    *watchdog.Endings
	watchdog   *watchdog.Watchdog
	addOns     []addon.Parts
	server     *web.Server
	actions    *api.Actions // for add-ons, from buildFront on
	front      *front.Port  // serves from New on
	httpConns  *httpconn.Limiter
	scrapes    *front.Port // nil: /metrics is on the front

	httpListener, executorListener net.Listener
	metricsListener                net.Listener           // nil: none of its own
	provision                      *provision.Declaration // nil: there is none, or it was applied
	firstLogin                     *Login
	clusterID                      string

	draining atomic.Bool // Run's context has ended: the node is not ready
	closing  atomic.Bool // and begins nothing new
}

// observed is the store as the rooms on a run's way get it. The methods of Steps hide those
// of the store, which lie deeper.
type observed struct {
	*gormstore.Store
	*telemetry.Steps
}

// Login is a user name with a password that is shown once.
type Login struct{ Username, Password string }

// FirstLogin returns the administrator that this start made, or nil when there
// was one already or the operator had chosen the password.
func (a *Admin) FirstLogin() *Login { return a.firstLogin }

// URL returns the address of the UI and API on this node's port.
func (a *Admin) URL() string {
	scheme := "http"
	if a.config.TLSCertFile != "" {
		scheme = "https"
	}
	return scheme + "://" + a.httpListener.Addr().String() + a.config.path()
}

// ExecutorAddress returns what executors dial.
func (a *Admin) ExecutorAddress() string {
	if a.config.AdvertiseAddress != "" {
		return a.config.AdvertiseAddress
	}
	return a.executorListener.Addr().String()
}

// Handler serves what the node's own HTTP port serves, for an application that has the
// node in its process and mounts it on its own server. It takes requests with the path of
// Config.BaseURL, and without it. The limits and timeouts of connections are those of that
// server. It answers 503 until the node serves.
func (a *Admin) Handler() http.Handler { return web.Below(a.config.path(), a.front) }

// New opens the listeners, answers probes, waits for the database, migrates it
// and enters the node. Close it by running it, or with Close if Run is never called.
func New(ctx context.Context, config Config) (_ *Admin, err error) {
	config, err = config.withDefaults()
	if err == nil {
		err = config.makeDataDir()
	}
	if err != nil {
		return nil, err
	}
	a := &Admin{config: config, log: config.Logger}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if err := a.readProvision(ctx); err != nil {
		return nil, err
	}
	if err := a.listen(); err != nil {
		return nil, err
	}
	if tcp, ok := a.executorListener.(*net.TCPListener); ok {
		defer gateway.RefuseAll(tcp)()
	}
	if err := gormstore.Await(ctx, gormstore.Awaiting{
		Open: a.open, Limit: a.config.DatabaseWait, Log: a.log.With("component", "database"),
		Waits: func(reason string) { a.front.Starts("it waits for its database: " + reason) },
	}); err != nil {
		return nil, err
	}
	return a, nil
}

// open opens what needs the database. It is repeated after an outage.
func (a *Admin) open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, a.discard())
		}
	}()
	a.metrics = telemetry.New(a.config.Version)
	if err := a.openStore(ctx); err != nil {
		return err
	}
	if err := a.enterCluster(ctx); err != nil {
		return err
	}
	if a.tracer, err = tracing.New(ctx, tracing.Options{
		Node: a.self.Name, Version: a.config.Version, Logger: a.log, Getenv: os.Getenv,
	}); err != nil {
		return err
	}
	if err := a.buildEngine(ctx); err != nil {
		return err
	}
	return a.buildFront(ctx)
}

// discard closes what open has opened.
func (a *Admin) discard() error {
	var err error
	if a.store != nil {
		err = a.store.Close()
	}
	if a.hot != nil {
		err = errors.Join(err, a.hot.Close())
	}
	a.tracer.Stop()
	a.store, a.tracer, a.hot = nil, nil, nil
	return err
}

// listen opens the ports first: a port in use is the commonest mistake, and
// it should not cost a migration.
func (a *Admin) listen() error {
	var err error
	if a.httpListener, err = net.Listen("tcp", a.config.HTTPAddress); err != nil {
		return fmt.Errorf("open the port for UI and API: %w", err)
	}
	a.httpConns = httpconn.New(httpconn.Options{Max: a.config.HTTPLimits.Connections, PerAddress: a.config.HTTPLimits.PerAddress, Proxies: a.config.TrustedProxies})
	a.httpListener = a.httpConns.Listen(a.httpListener)
	if a.executorListener, err = net.Listen("tcp", a.config.ExecutorAddress); err != nil {
		return fmt.Errorf("open the port for executors: %w", err)
	}
	if a.config.MetricsAddress != "" {
		if a.metricsListener, err = net.Listen("tcp", a.config.MetricsAddress); err != nil {
			return fmt.Errorf("open the port for metrics: %w", err)
		}
	}
	secure, err := loadTLS(a.config.TLSCertFile, a.config.TLSKeyFile)
	if err != nil {
		return err
	}
	if secure != nil {
		a.httpListener = tls.NewListener(a.httpListener, secure)
	}
	if a.config.BaseURL == "" {
		a.config.BaseURL = a.URL()
	}
	a.front = front.Serve(front.Options{Listener: a.httpListener, Limiter: a.httpConns, What: "UI and API", Path: a.config.path()})
	if a.metricsListener != nil {
		scrapers := httpconn.New(httpconn.Options{Max: 256, PerAddress: 64})
		a.scrapes = front.Serve(front.Options{Listener: scrapers.Listen(a.metricsListener), Limiter: scrapers, What: "metrics"})
	}
	return nil
}

// enterCluster gives the node its number, from which all ids are made.
func (a *Admin) enterCluster(ctx context.Context) error {
	name := a.config.NodeName
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "admin"
		}
		_, port, _ := net.SplitHostPort(a.httpListener.Addr().String())
		name = host + ":" + port
	}
	numbers, err := domain.ParseNodeNumbers(a.config.NodeNumbers)
	if err != nil {
		return err
	}
	self, err := a.store.RegisterNode(ctx, domain.Node{
		BootID: hexID(16), Name: name, ExecutorAddress: a.ExecutorAddress(),
		Version: a.config.Version, StartedAt: time.Now().UTC(), Zones: domain.ZoneRules(schedule.CurrentZoneRules()), Numbers: numbers,
	}, membership.TTL)
	if err != nil {
		return fmt.Errorf("enter the cluster: %w", err)
	}
	a.ids = domain.NewIDSource(self.ID, time.Now)
	a.store.UseIDs(a.ids)
	a.self = membership.New(a.store, self, func(nodes []domain.Node) { a.gateway.SetNodes(nodes) }, a.log)
	if a.clusterID, err = a.store.ClusterValue(ctx, "cluster_id", hexID(8)); err != nil {
		return fmt.Errorf("read cluster id: %w", err)
	}
	a.guard, err = clockguard.Open(ctx, clockguard.Options{
		Store: a.store, Source: a.store, Node: self.Name, DataDir: a.config.DataDir, Cluster: a.clusterID, Logger: a.log,
		Held: func() []domain.PartitionTerm { return a.leases.Held() }, Table: func() domain.PartitionTable { return a.leases.Table() },
		RenewSessions: func() { a.gateway.RenewSessions() }, Told: a.nudge,
		Jumped: a.metrics.ClockJumped, RolledBack: a.metrics.RolledBack,
	})
	if err == nil {
		a.clock = a.guard.Clock()
	}
	return err
}

func hexID(bytes int) string {
	raw := make([]byte, bytes)
	_, _ = rand.Read(raw) // never fails (crypto/rand)
	return hex.EncodeToString(raw)
}

// Close releases what New opened. Run does it by itself.
func (a *Admin) Close() error {
	errs := []error{a.front.Stop(), a.scrapes.Stop()}
	for _, l := range []net.Listener{a.httpListener, a.executorListener, a.metricsListener} {
		if l != nil {
			if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(append(errs, a.discard())...)
}
