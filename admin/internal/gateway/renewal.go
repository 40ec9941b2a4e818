package gateway

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// renewEvery is how often heard heartbeats are written down together. The
// acknowledgement of a heartbeat waits for it: an executor may count on its
// lease from the moment it sent a heartbeat that was acknowledged as renewed.
const renewEvery = 500 * time.Millisecond

// renewPatience is how long a heartbeat is tried to be written before its
// instance hears that it was not: a node that says so loses the results of its
// attempts to other nodes, which a database that restarts is not worth.
const renewPatience = 1200 * time.Millisecond

// renewals collects heartbeats until the next write.
type renewals struct {
	mu      sync.Mutex
	pending map[domain.InstanceID]heard // guarded by mu: the newest heartbeat each
}

type heard struct {
	session *Session
	beat    *proto.Heartbeat
	at      time.Time
	// interval is what it is answered with; 0 = the ordinary one.
	interval time.Duration
}

func newRenewals() renewals { return renewals{pending: map[domain.InstanceID]heard{}} }

func (r *renewals) add(s *Session, b *proto.Heartbeat) {
	r.mu.Lock()
	r.pending[s.Instance] = heard{session: s, beat: b, at: time.Now()}
	r.mu.Unlock()
}

// again keeps what was not written for the next time, but for heartbeats that
// were tried for long enough, or that newer ones have overtaken: it returns those.
func (r *renewals) again(batch map[domain.InstanceID]heard, now time.Time) map[domain.InstanceID]heard {
	r.mu.Lock()
	defer r.mu.Unlock()
	over := map[domain.InstanceID]heard{}
	for id, h := range batch {
		if _, newer := r.pending[id]; newer || now.Sub(h.at) > renewPatience {
			over[id] = h
		} else {
			r.pending[id] = h
		}
	}
	return over
}

func (r *renewals) take() map[domain.InstanceID]heard {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == 0 {
		return nil
	}
	out := r.pending
	r.pending = map[domain.InstanceID]heard{}
	return out
}

// renewer writes down heartbeats together, and answers them. Only its run calls the
// methods behind it.
type renewer struct {
	// fixed after construction
	fleet     store.Instances
	sink      Sink
	registry  *registry
	waker     *waker
	tasks     *tasks
	idleBeats float64   // see Options
	began     time.Time // the slots of heartbeats count from it
	log       *slog.Logger

	renewals renewals
}

func (rn *renewer) run(ctx context.Context) {
	rn.tasks.every(ctx, renewEvery, nil, "renew instance leases", func() error { return rn.renew(ctx, rn.renewals.take()) })
}

func (rn *renewer) renew(ctx context.Context, batch map[domain.InstanceID]heard) error {
	if len(batch) == 0 {
		return nil
	}
	var parked []domain.InstanceID
	sessions := rn.registry.count()
	items := make([]store.InstanceRenewal, 0, len(batch))
	for id, h := range batch {
		h.interval = rn.idleFor(h, sessions)
		batch[id] = h
		items = append(items, store.InstanceRenewal{
			ID: id, Running: int(h.beat.Running), Slots: int(h.beat.Slots), Draining: h.beat.Draining || h.session.drainingFor() > 0, Parked: h.beat.Parked, Refusing: h.beat.Refusing,
			DrainingFor: h.session.drainingFor(), Quiet: leaseExtra(h.interval),
		})
		if h.beat.Parked {
			parked = append(parked, id)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	now, renewed, err := rn.fleet.RenewInstances(ctx, items, proto.LeaseTTL)
	if err != nil {
		batch = rn.renewals.again(batch, time.Now())
	}
	ok := make(map[domain.InstanceID]bool, len(renewed))
	for _, id := range renewed {
		ok[id] = true
	}
	for id, h := range batch {
		ack := &proto.HeartbeatAck{Seq: h.beat.Seq, NowMs: now.UnixMilli(), LeaseRenewed: ok[id]}
		if !ok[id] {
			h.interval = 0
		} else {
			h.session.Slots.renewedBy(h.beat.Seq, h.at)
		}
		if h.session.setInterval(h.interval); h.interval > 0 {
			ack.LeaseExtraMs = leaseExtra(h.interval).Milliseconds()
			ack.NextMs = nextHeartbeat(id, h.interval, time.Since(rn.began)).Milliseconds()
		}
		h.session.sendControl(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_HeartbeatAck{HeartbeatAck: ack}})
		if err == nil && !ok[id] {
			// The instance was declared gone while it was silent: it has to
			// register anew, as whatever it ran has been given up.
			h.session.close(errInstanceGone)
		}
	}
	for _, h := range batch {
		if err == nil {
			err = rn.review(ctx, h.session, h.session.Slots.doubtful(time.Now()))
		}
	}
	if err == nil && len(parked) > 0 {
		err = rn.waker.wakeParked(ctx, parked)
	}
	return err
}
