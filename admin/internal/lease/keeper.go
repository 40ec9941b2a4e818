package lease

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

const (
	// callTimeout bounds one statement. Renewals that take longer than this
	// are worth less than a new try.
	callTimeout = time.Second
	// handOver bounds the release when the node stops; after that the leases
	// run out by themselves.
	handOver = 2 * time.Second
	// adoptTimeout bounds the reading of what a dead node had planned.
	adoptTimeout = 5 * time.Second
	// adoptLimit bounds what is read of one partition; the rest is swept.
	adoptLimit = 2000
)

// Options configures a Keeper.
type Options struct {
	Store  store.Partitions
	Node   domain.NodeID
	BootID string
	// Horizon is how far ahead of their time executions are planned.
	Horizon time.Duration
	// Adopt takes executions that a dead node had planned, Resend one-step
	// offers of its that nobody has reported to have started.
	Adopt  func(...domain.Execution)
	Resend func(ctx context.Context, offered []domain.Execution)
	// GiveBack returns offers (store.Executions.GiveBackOffers).
	GiveBack func(ctx context.Context, items []store.GiveBack) ([]store.OfferResult, error)
	// Gained is called when partitions were taken: there is something to plan.
	Gained func()
	// ClockHeld says that this node does not believe the database's clock; nil: never.
	ClockHeld func() bool
	Logger    *slog.Logger
	// Elapsed is the time that has passed on this node since any fixed
	// instant, monotonic; nil: since the construction. Beside runs f beside
	// the caller; nil: in a goroutine, for which Run waits.
	Elapsed func() time.Duration
	Beside  func(f func())
}

// Keeper keeps a node's leases. Its methods are safe for concurrent use.
type Keeper struct {
	// fixed after construction
	opt     Options
	log     *slog.Logger
	refused chan struct{}

	mu      sync.Mutex
	machine *Machine              // guarded by mu
	table   domain.PartitionTable // guarded by mu
	adopts  sync.WaitGroup
	renewed atomic.Int64 // when the node has last renewed, by now
}

// NewKeeper returns a Keeper; it starts nothing.
func NewKeeper(opt Options) *Keeper {
	if opt.ClockHeld == nil {
		opt.ClockHeld = func() bool { return false }
	}
	if opt.Elapsed == nil {
		base := time.Now() // with monotonic reading
		opt.Elapsed = func() time.Duration { return time.Since(base) }
	}
	k := &Keeper{
		opt: opt, log: opt.Logger.With("component", "lease"), refused: make(chan struct{}, 1),
		machine: New(Config{Node: opt.Node, BootID: opt.BootID}),
	}
	if opt.Beside == nil {
		k.opt.Beside = k.adopts.Go
	}
	return k
}

// Held returns the partitions that this node may plan now, with their terms.
func (k *Keeper) Held() []domain.PartitionTerm {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.machine.Held(k.now())
}

// Table returns what the database said last.
func (k *Keeper) Table() domain.PartitionTable {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.table
}

// Ownerless returns the partitions that no node held when this one looked last.
func (k *Keeper) Ownerless() (out []int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.table.Leases {
		if l.BootID == "" || !l.Until.After(k.table.Now) {
			out = append(out, l.Partition)
		}
	}
	return out
}

// Living returns the boots of the nodes that are not dead for certain; empty
// when this node cannot tell.
func (k *Keeper) Living() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.machine.Living(k.now())
}

// Shown returns since when nobody can have taken this node for dead; ok is
// false while somebody may.
func (k *Keeper) Shown() (since time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	d, ok := k.machine.Shown(now)
	return time.Now().Add(d - now), ok
}

// Silent returns how long this node has not been able to say that it lives.
func (k *Keeper) Silent() time.Duration { return k.now() - time.Duration(k.renewed.Load()) }

// Refused makes the keeper look at once, because a claim was refused.
func (k *Keeper) Refused() {
	select {
	case k.refused <- struct{}{}:
	default:
	}
}

// Run keeps leases until ctx ends, and then hands them over. The claims of
// this node have to end with ctx too; one that is under way then either
// commits before the release or is refused.
func (k *Keeper) Run(ctx context.Context) error {
	defer k.adopts.Wait()
	tick := time.NewTicker(LookEvery)
	defer tick.Stop()
	var broken bool
	for event := Event(Tick{}); ; {
		err := k.Handle(ctx, event)
		if ctx.Err() != nil {
			return k.stop(context.WithoutCancel(ctx))
		}
		if (err != nil) != broken { // told when it changes
			broken = err != nil
			if broken {
				k.log.Warn("leases cannot be renewed", "err", err)
			} else {
				k.log.Info("leases are renewed again")
			}
		}
		select {
		case <-ctx.Done():
			return k.stop(context.WithoutCancel(ctx))
		case <-tick.C:
			event = Tick{}
		case <-k.refused:
			event = Refused{}
		}
	}
}

// stop releases until nothing is held any more.
func (k *Keeper) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, handOver)
	defer cancel()
	tick := time.NewTicker(LookEvery / 5)
	defer tick.Stop()
	for event := Event(Stop{}); ; event = (Tick{}) {
		err := k.Handle(ctx, event)
		k.mu.Lock()
		done := k.machine.Stopped()
		k.mu.Unlock()
		if done && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			k.log.Warn("partitions could not be handed over, their leases will run out", "err", err)
			return nil
		case <-tick.C:
		}
	}
}

func (k *Keeper) now() time.Duration { return k.opt.Elapsed() }

func (k *Keeper) step(event Event) []Effect {
	k.mu.Lock()
	defer k.mu.Unlock()
	if seen, ok := event.(Seen); ok {
		k.table = seen.Table
	}
	return k.machine.Step(k.now(), event)
}

// Handle is one round of Run: it steps through an event and all that follows from it. It ends at the
// first error: the next tick begins with a fresh look.
func (k *Keeper) Handle(ctx context.Context, event Event) error {
	for queue := k.step(event); len(queue) > 0; queue = queue[1:] {
		answer, err := k.do(ctx, queue[0])
		if err != nil {
			return err
		}
		if answer != nil {
			queue = append(queue, k.step(answer)...)
		}
	}
	return nil
}

// do carries out one effect and returns the event that answers it, if any.
func (k *Keeper) do(ctx context.Context, effect Effect) (Event, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	sent := k.now()
	switch effect := effect.(type) {
	case Renew:
		table, err := k.opt.Store.RenewPartitions(ctx, store.RenewPartitionsParams{
			Node: k.opt.Node, BootID: k.opt.BootID, Held: effect.Held, TTL: TTL,
			Wall: time.Now(), ClockHeld: k.opt.ClockHeld(),
		})
		if err == nil {
			k.renewed.Store(int64(k.now()))
		}
		return Seen{SentAt: sent, Renewed: effect.Held, Table: table}, err
	case Look:
		table, err := k.opt.Store.ReadPartitions(ctx)
		return Seen{SentAt: sent, Table: table}, err
	case Acquire:
		leases, err := k.opt.Store.AcquirePartitions(ctx, store.AcquirePartitionsParams{
			Node: k.opt.Node, BootID: k.opt.BootID, Want: effect.Want, TTL: TTL,
		})
		return Acquired{SentAt: sent, Leases: leases}, err
	case Release:
		ended, err := k.opt.Store.ReleasePartitions(ctx, store.ReleasePartitionsParams{
			BootID: k.opt.BootID, Held: effect.Held, Leaving: effect.Leaving,
		})
		return Released{ended}, err
	case Adopt:
		k.adopt(ctx, effect)
	case Changed:
		k.tell(effect)
	}
	return nil, nil
}

// adopt reads beside the loop: renewals do not wait for it.
func (k *Keeper) adopt(ctx context.Context, a Adopt) {
	ctx = context.WithoutCancel(ctx)
	k.opt.Beside(func() {
		ctx, cancel := context.WithTimeout(ctx, adoptTimeout)
		defer cancel()
		found, err := k.opt.Store.ListPlanned(ctx, store.ListPlannedParams{
			Partitions: a.Partitions, OffersOnly: a.Offers, Horizon: k.opt.Horizon, Limit: adoptLimit, OfferedBy: a.Dead,
		})
		if err == nil {
			err = k.takeOn(ctx, found)
		}
		if err != nil {
			k.log.Warn("runs that were planned before cannot be taken over and will be swept", "err", err)
			return
		}
		if len(found) == 0 { // at a first start there was none
			return
		}
		k.log.Info("runs that were planned before are fired from here",
			"partitions", len(a.Partitions), "offers_in", len(a.Offers), "executions", len(found))
	})
}

// takeOn fires what is due, at once; then it sends those that were offered in
// one step again, gives the other offers back and fires them, too.
func (k *Keeper) takeOn(ctx context.Context, found []domain.Execution) error {
	var offers []store.GiveBack
	var due, oneStep []domain.Execution
	for _, e := range found {
		switch e.State {
		case domain.Due, domain.RetryWait:
			due = append(due, e)
			continue
		case domain.Running:
			oneStep = append(oneStep, e)
			continue
		}
		offers = append(offers, store.GiveBack{
			Tenant: e.TenantID, ID: e.ID, Fence: e.Fence, Instance: e.Instance,
			Reason: domain.ReasonOfferExpired, Message: "the node that offered it is gone",
		})
	}
	k.opt.Adopt(due...)
	if len(oneStep) > 0 {
		k.opt.Resend(ctx, oneStep)
	}
	if len(offers) == 0 {
		return nil
	}
	results, err := k.opt.GiveBack(ctx, offers)
	for _, r := range results {
		if r.Execution.State == domain.Due {
			k.opt.Adopt(r.Execution)
		}
	}
	return err
}

func (k *Keeper) tell(c Changed) {
	held := len(k.Held())
	if len(c.Lost) > 0 {
		k.log.Info("partitions given up", "count", len(c.Lost), "held", held)
	}
	if len(c.Gained) > 0 {
		k.log.Info("partitions taken", "count", len(c.Gained), "held", held)
		k.opt.Gained()
	}
}
