package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// Authenticator checks join tokens, of many executors at once: it answers in the
// order of the claims. An error is everybody's.
type Authenticator interface {
	VerifyJoinTokens(ctx context.Context, claims []domain.JoinClaim) ([]domain.JoinVerdict, error)
}

// Sink takes what executors say about attempts. Its methods return quickly;
// they are called by a session's reader.
type Sink interface {
	Answered(s *Session, answers []*proto.Answer)
	Started(s *Session, started []*proto.Started)
	Finished(s *Session, results []*proto.Result)
	// Progress and Steps are what handlers tell and ask while they run.
	Progress(s *Session, list []*proto.Progress)
	Steps(s *Session, list []*proto.Step)
	// Joined and Left tell that a session can take offers, or no longer can.
	Joined(s *Session)
	Left(s *Session)
	// Draining tells that an instance takes no more offers for good.
	Draining(s *Session)
	// Freed tells that a session may have n more slots free.
	Freed(s *Session, n int)
	// Doubted tells that an instance does not answer: it gets no offers until
	// Freed tells that it does.
	Doubted(s *Session)
	// Unheard tells of one-step offers to an instance that does not answer, or whose
	// session has ended: nobody has heard that they arrived, and what has not
	// started does not start there any more. It has their fences by execution id.
	Unheard(s *Session, offered map[int64]int64)
}

// Declarer takes what builds declare, once an instance is registered, and
// returns a notice for each declaration that it did not take.
type Declarer interface {
	Declare(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, build string) []*proto.Notice
}

// LogSink stores log chunks. It returns when they are stored.
type LogSink interface {
	AppendLogs(ctx context.Context, list []store.LogAppend) (dropped int, err error)
}

// Options configures a Gateway.
type Options struct {
	NodeID    string
	ClusterID string
	TLS       *tls.Config // nil: plain TCP
	Auth      Authenticator
	Fleet     store.Instances
	Sink      Sink
	Declarer  Declarer
	Inventory Settler // nil: no verdicts
	Logs      LogSink
	NewID     func() int64
	Logger    *slog.Logger
	// Flapping is told of an instance name whose processes come and go; nil:
	// nobody is. It is called by the session's goroutine, at most once per name
	// and flapSilence.
	Flapping func(domain.Flapping)
	// Certificates is nil when only join tokens count; it needs TLS.
	Certificates Certificates
	Denials      Denials     // nil: nobody is denied
	Refusals     RefusalBook // nil: nobody wants to know who was turned away
	Limits       Limits
	// RecycleAfter is the most that a session lasts; 0 = DefaultRecycleAfter.
	RecycleAfter time.Duration
	// IdleBeats is how many heartbeats in a second are wanted of instances that
	// run nothing; 0 = DefaultIdleBeats. With more instances each beats less
	// often, with few as often as others.
	IdleBeats float64
}

// Gateway accepts executors. Create it with New, run it with Serve.
type Gateway struct {
	// fixed after construction
	opt Options
	log *slog.Logger

	admission  *admission
	registry   registry
	locals     chan *localConn // taken while Serve runs; nobody closes it
	settleWake chan struct{}   // capacity 1: no session may have work under way now; nobody closes it

	// The parts. Executors that come and go ask the database together (batches.go), but
	// for a few that ask for themselves alone.
	tasks       tasks
	verifier    verifier
	registers   *batch.Calls[store.RegisterInstanceParams, store.Registration]
	succeeds    *batch.Calls[store.SupersedeBootsParams, store.SupersededBoots]
	inventories inventories
	intake      intake
	watcher     watcher
	renewer     renewer
	waker       waker
	logs        logReceiver
	refuser     refuser

	epoch atomic.Int64 // how often the sessions were renewed
	tally tally

	mu       sync.Mutex
	nodes    *proto.NodeList // guarded by mu
	draining bool            // guarded by mu

	drains  sync.Mutex
	drained bool // guarded by drains: there were drained instances at the last look
}

// New returns a Gateway; it starts nothing.
func New(opt Options) *Gateway {
	if opt.IdleBeats <= 0 {
		opt.IdleBeats = DefaultIdleBeats
	}
	if opt.RecycleAfter <= 0 {
		opt.RecycleAfter = DefaultRecycleAfter
	}
	log, lookups := opt.Logger.With("component", "gateway"), semaphore.NewWeighted(maxLookups)
	g := &Gateway{
		opt: opt, log: log, registry: newRegistry(), admission: newAdmission(opt.Limits, opt.NodeID),
		settleWake: make(chan struct{}, 1), locals: make(chan *localConn), nodes: &proto.NodeList{},
		tasks: tasks{log: log}, watcher: watcher{sink: opt.Sink, log: log},
	}
	g.verifier = verifier{auth: opt.Auth, certificates: opt.Certificates, denials: opt.Denials, admission: g.admission, lookups: lookups}
	g.inventories = inventories{settler: opt.Inventory, tasks: &g.tasks, log: log, lookups: lookups, orphanLookups: semaphore.NewWeighted(maxOrphanLookups)}
	g.waker = waker{fleet: opt.Fleet, registry: &g.registry, nodes: g.nodeList, tasks: &g.tasks, requests: newWakeRequests()}
	g.renewer = renewer{
		fleet: opt.Fleet, sink: opt.Sink, registry: &g.registry, waker: &g.waker, tasks: &g.tasks, idleBeats: opt.IdleBeats, began: time.Now(), log: log, renewals: newRenewals(),
	}
	g.intake = intake{sink: opt.Sink, inventories: &g.inventories, renewer: &g.renewer, tasks: &g.tasks, wakeSettle: g.wakeSettle, log: log}
	g.logs = logReceiver{sink: opt.Logs, registry: &g.registry, tasks: &g.tasks, log: log, frames: make(chan struct{}, logFrames)}
	g.refuser = refuser{book: opt.Refusals, admission: g.admission, tasks: &g.tasks, log: log}
	g.openBatches()
	return g
}

// Serve accepts executors on l until ctx ends; then it closes l and all
// connections, waits for their goroutines and returns nil.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var chores sync.WaitGroup
	renewCtx, stopRenewals := context.WithCancel(context.WithoutCancel(ctx))
	chores.Go(func() { g.renewer.run(renewCtx) })
	chores.Go(func() { g.runDrains(renewCtx) })
	chores.Go(func() { g.waker.run(renewCtx) })
	chores.Go(func() { g.refuser.run(renewCtx) })

	var locals sync.WaitGroup
	localCtx, stopLocals := context.WithCancel(ctx)
	locals.Go(func() { g.acceptLocal(localCtx) })
	err := g.acceptLoop(ctx, l)
	stopLocals()
	locals.Wait()
	g.registry.closeAll(errGatewayStopped)
	g.tasks.running.Wait()
	stopRenewals()
	chores.Wait()
	return err
}

// tasks run what a Gateway begins, and tell of its panics.
type tasks struct {
	log     *slog.Logger // fixed
	running sync.WaitGroup
}

// every calls f again and again until ctx ends, and at once when now asks for it.
// A panic is a failure.
// That it fails, and that it works again, is told once each.
func (ts *tasks) every(ctx context.Context, d time.Duration, now <-chan struct{}, task string, f func() error) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-now:
		}
		err := panics.Catch(f)
		ts.tellFault(err)
		switch was := failing; {
		case err != nil && !was:
			ts.log.Warn("a recurring task fails", "task", task, "err", err)
		case err == nil && was:
			ts.log.Info("a recurring task works again", "task", task)
		}
		failing = err != nil
	}
}

var errGatewayStopped = errors.New("this admin node stops")

func (g *Gateway) acceptLoop(ctx context.Context, l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			// Out of file descriptors or the like: others may end soon.
			g.log.Warn("accept failed", "err", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(50 * time.Millisecond):
				continue
			}
		}
		from := addressOf(conn.RemoteAddr())
		who := g.admission.connect(from, conn)
		if who == nil {
			_ = conn.Close() // they may try again
			continue
		}
		g.tasks.spawn(func() error { return g.serveConn(ctx, conn, who) })
	}
}

// spawn runs f until Serve returns at the latest; a panic costs f alone.
func (ts *tasks) spawn(f func() error) {
	ts.running.Go(func() { ts.tellFault(panics.Catch(f)) })
}

// tellFault tells of a panic.
func (ts *tasks) tellFault(err error) {
	if stack := panics.Stack(err); stack != "" {
		ts.log.Error("a fault of this node has ended a connection, or what it asked for", "err", err, "stack", stack)
	}
}

// SetNodes tells all executors, now and later ones, which nodes there are.
func (g *Gateway) SetNodes(nodes []domain.Node) {
	list := &proto.NodeList{}
	for _, n := range nodes {
		list.Nodes = append(list.Nodes, &proto.Node{Id: n.Name, Address: n.ExecutorAddress})
	}
	g.mu.Lock()
	g.nodes = list
	g.mu.Unlock()
	for _, s := range g.registry.all() {
		if !s.local {
			s.sendControl(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Nodes{Nodes: list}})
		}
	}
}

func (g *Gateway) nodeList() *proto.NodeList {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.nodes
}

// Drain tells the executors that this node will stop: they keep their
// sessions for results and expect no more offers from it.
func (g *Gateway) Drain(grace time.Duration) {
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	for _, s := range g.registry.all() {
		s.sendControl(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Drain{
			Drain: &proto.Drain{Reason: "admin node stops", GraceMs: grace.Milliseconds()},
		}})
	}
}

// Settle waits until no offer waits for its answer, no acceptance for its grant
// and no result for its acknowledgement, or until ctx ends: what is handed over before a node stops
// need not be said again to another one.
func (g *Gateway) Settle(ctx context.Context) {
	for !g.quiescent() {
		select {
		case <-ctx.Done():
			return
		case <-g.settleWake:
		}
	}
}

func (g *Gateway) quiescent() bool {
	for _, s := range g.registry.all() {
		if !s.quiescent() {
			return false
		}
	}
	return true
}

// wakeSettle tells Settle to look again.
func (g *Gateway) wakeSettle() {
	select {
	case g.settleWake <- struct{}{}:
	default:
	}
}

func (g *Gateway) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// RenewSessions ends all sessions, also those that are about to stand: the
// executors come back by themselves and say anew what they have.
func (g *Gateway) RenewSessions() {
	g.epoch.Add(1)
	g.registry.closeAll(errRenewed)
}

var errRenewed = errors.New("an operator has accepted the database as it is: executors register anew")

// Sessions returns the sessions of an executor that may take offers for the
// handler, in the order in which their instances registered.
func (g *Gateway) Sessions(tenant domain.TenantID, executor domain.ExecutorID, handler string) []*Session {
	return g.registry.serving(tenant, executor, handler)
}

// Room returns how many slots the instances of an executor have that are connected here,
// and how many of these are free; 0 slots: no instance is connected.
func (g *Gateway) Room(tenant domain.TenantID, executor domain.ExecutorID) (free, slots int) {
	return g.registry.room(tenant, executor)
}

// SessionOf returns the session of an instance, or nil when it has none here.
func (g *Gateway) SessionOf(instance domain.InstanceID) *Session {
	return g.registry.byInstance(instance)
}

// Count returns the number of sessions.
func (g *Gateway) Count() int { return g.registry.count() }

// TurnedAway returns how many connections were closed before their hello because
// there were too many, in all or from their address.
func (g *Gateway) TurnedAway() int64 {
	g.admission.mu.Lock()
	defer g.admission.mu.Unlock()
	return g.admission.unheard
}

// Reached returns the number of sessions over the network whose instances answer.
func (g *Gateway) Reached() int {
	n := 0
	for _, s := range g.registry.all() {
		if !s.local && !s.doubt.Load() {
			n++
		}
	}
	return n
}
