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
	renewals   renewals
	wakes      wakeRequests
	conns      sync.WaitGroup
	locals     chan *localConn // taken while Serve runs; nobody closes it
	settleWake chan struct{}   // capacity 1: no session may have work under way now; nobody closes it

	// Executors that come and go ask the database together (batches.go), but for a
	// few that ask for themselves alone.
	authentications *batch.Calls[credential, authenticated]
	registers       *batch.Calls[store.RegisterInstanceParams, store.Registration]
	settles         *batch.Calls[store.SettleInventoryParams, domain.SettledInventory]
	succeeds        *batch.Calls[store.SupersedeBootsParams, store.SupersededBoots]
	leaves          *batch.Calls[store.InstanceLeave, error]
	lookups         *semaphore.Weighted // one per executor
	orphanLookups   *semaphore.Weighted // one per look for what an instance does not have

	logFrames chan struct{} // one token per log batch in memory
	logWrites *batch.Calls[store.LogAppend, struct{}]

	began time.Time    // fixed after construction
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
	g := &Gateway{
		opt: opt, log: opt.Logger.With("component", "gateway"), began: time.Now(),
		registry: newRegistry(), renewals: newRenewals(), wakes: newWakeRequests(),
		admission: newAdmission(opt.Limits, opt.NodeID), settleWake: make(chan struct{}, 1), locals: make(chan *localConn), nodes: &proto.NodeList{},
		logFrames: make(chan struct{}, logFrames),
	}
	g.openBatches()
	return g
}

// Serve accepts executors on l until ctx ends; then it closes l and all
// connections, waits for their goroutines and returns nil.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var renewer sync.WaitGroup
	renewCtx, stopRenewals := context.WithCancel(context.WithoutCancel(ctx))
	renewer.Go(func() { g.runRenewals(renewCtx) })
	renewer.Go(func() { g.runDrains(renewCtx) })
	renewer.Go(func() { g.runWakes(renewCtx) })
	renewer.Go(func() { g.runRefusals(renewCtx) })

	var locals sync.WaitGroup
	localCtx, stopLocals := context.WithCancel(ctx)
	locals.Go(func() { g.acceptLocal(localCtx) })
	err := g.acceptLoop(ctx, l)
	stopLocals()
	locals.Wait()
	g.registry.closeAll(errGatewayStopped)
	g.conns.Wait()
	stopRenewals()
	renewer.Wait()
	return err
}

// every calls f again and again until ctx ends, and at once when now asks for it.
// A panic is a failure.
// That it fails, and that it works again, is told once each.
func (g *Gateway) every(ctx context.Context, d time.Duration, now <-chan struct{}, task string, f func() error) {
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
		g.tellFault(err)
		switch was := failing; {
		case err != nil && !was:
			g.log.Warn("a recurring task fails", "task", task, "err", err)
		case err == nil && was:
			g.log.Info("a recurring task works again", "task", task)
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
		g.spawn(func() error { return g.serveConn(ctx, conn, who) })
	}
}

// spawn runs f until Serve returns at the latest; a panic costs f alone.
func (g *Gateway) spawn(f func() error) {
	g.conns.Go(func() { g.tellFault(panics.Catch(f)) })
}

// tellFault tells of a panic.
func (g *Gateway) tellFault(err error) {
	if stack := panics.Stack(err); stack != "" {
		g.log.Error("a fault of this node has ended a connection, or what it asked for", "err", err, "stack", stack)
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
