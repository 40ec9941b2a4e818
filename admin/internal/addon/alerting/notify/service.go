package notify

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

const (
	// expandBatch is how many events are counted in one transaction, tellBatch how
	// many incidents are looked at.
	expandBatch = 500
	tellBatch   = 100
	// maxHeld is how many claimed deliveries this node keeps in memory,
	// waiting or under way; maxSends of them are under way.
	maxHeld  = 512
	maxSends = 128
	// claimHold hides a claimed delivery from other nodes while this one lives.
	// It exceeds the longest wait in a lane and the longest send together.
	claimHold = 3 * time.Minute
	// stopGrace is how long tellings under way may go on when the node stops.
	stopGrace = 5 * time.Second
	// forgetLane is how long a lane that closed is remembered.
	forgetLane = 10 * time.Minute
	// instanceLookup bounds the search for the instance's name.
	instanceLookup = 2 * time.Second
)

// Store is what alerting asks of the database.
type Store interface {
	Alerts
	FindInstance(ctx context.Context, tenant domain.TenantID, id domain.InstanceID) (domain.Instance, error)
	// LogEnd and ReadLog are those of store.Logs.
	LogEnd(ctx context.Context, tenant domain.TenantID, execution domain.ExecutionID) (attempt int, line int64, err error)
	ReadLog(ctx context.Context, p store.ReadLogParams) (store.LogPage, error)
}

// Options of a Service.
type Options struct {
	Store Store
	// Senders are the channels that are configured. A delivery for any other
	// channel fails with that reason.
	Senders []Sender
	// Opener opens the secrets of alert channels.
	Opener Opener
	// Operators are told of what concerns the platform; none: it is logged only.
	Operators Operators
	// Policy says how often incidents are told; zero = noun.DefaultTellPolicy.
	Policy noun.TellPolicy
	// BaseURL begins the links, such as https://carillon.example.com.
	BaseURL string
	// RunbookURL is the page with what to do about each kind of incident; empty: none.
	// The kind is its anchor.
	RunbookURL string
	// Boot is the node's boot id, which claims are made under.
	Boot string
	// Living returns the boots of all nodes that are not dead for certain,
	// empty = unknown; nil: it never is known, and claims run out by time alone.
	Living func() []string
	// Shown returns since when no other node can have freed the claims of this
	// one; false: one may. nil: nobody does.
	Shown func() (since time.Time, ok bool)
	// Addresses judges addresses of mail; nil: there is no mail server.
	Addresses AddressCheck
	// MailsPerHour bounds the mails of each tenant; 0 = DefaultMailsPerHour.
	MailsPerHour int
	// PollInterval is how often the outbox is looked at without a nudge; 0 = 2 s.
	PollInterval time.Duration
	Logger       *slog.Logger // nil = slog.Default
	// Metrics takes the counters; nil = none.
	Metrics prometheus.Registerer
}

// AddressCheck judges whether the mail server may send to an address.
type AddressCheck interface{ Check(address string) error }

// Service delivers what the outbox holds. All nodes of a cluster run one.
type Service struct {
	// Fixed after construction.
	opt     Options
	log     *slog.Logger
	senders map[string]Sender
	metrics *metrics
	nudge   chan struct{} // holds one; never closed
	ended   chan ending   // as many places as sends, so that no send waits for Run
	paces   *paces        // of the alert channels
	mails   *paces        // of the tenants

	// Owned by Run's goroutine.
	lanes   map[string]*lane
	waiting int  // in the lanes' queues
	sending int  // under way
	starved bool // the last claim was full: there may be more
	failing bool // the database did not answer last time
	timer   *time.Timer
}

// ending tells Run that a telling is over.
type ending struct {
	job  job
	took time.Duration
	err  error
}

// New returns a service. It starts nothing.
func New(opt Options) *Service {
	if opt.PollInterval <= 0 {
		opt.PollInterval = 2 * time.Second
	}
	if opt.MailsPerHour <= 0 {
		opt.MailsPerHour = DefaultMailsPerHour
	}
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	if opt.Living == nil {
		opt.Living = func() []string { return nil }
	}
	if opt.Shown == nil {
		opt.Shown = func() (time.Time, bool) { return time.Time{}, true }
	}
	if opt.Policy == (noun.TellPolicy{}) {
		opt.Policy = noun.DefaultTellPolicy
	}
	opt.BaseURL = strings.TrimRight(opt.BaseURL, "/")
	s := &Service{
		opt: opt, log: opt.Logger.With("component", "alerting"),
		senders: map[string]Sender{}, lanes: map[string]*lane{},
		nudge: make(chan struct{}, 1), ended: make(chan ending, maxSends), paces: newPaces(), mails: newPaces(),
	}
	for _, sender := range opt.Senders {
		s.senders[sender.Channel()] = sender
	}
	s.metrics = newMetrics(opt.Metrics, slices.Sorted(maps.Keys(s.senders)))
	return s
}

// Nudge tells that the outbox may hold something new. It never blocks; any
// goroutine may call it.
func (s *Service) Nudge() {
	select {
	case s.nudge <- struct{}{}:
	default: // one is on its way already
	}
}

// Run delivers until ctx ends. Tellings under way then get stopGrace to end;
// what was not told is left to the other nodes, or to the next start. Run
// returns nil after all its goroutines ended. It must be called once.
func (s *Service) Run(ctx context.Context) error {
	// Sends outlive ctx by the grace, so that what was told gets recorded.
	sendCtx, cancelSends := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelSends()
	s.timer = time.NewTimer(0)
	defer s.timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.stop(sendCtx, cancelSends)
			return nil
		case <-s.nudge:
			s.pump(ctx)
		case <-s.timer.C:
			s.pump(ctx)
		case e := <-s.ended:
			s.settle(ctx, e)
			if s.starved && s.held() <= maxHeld/2 {
				s.pump(ctx)
			}
		}
		s.startSends(sendCtx)
	}
}

func (s *Service) held() int { return s.waiting + s.sending }

// pump counts events in incidents, makes deliveries of incidents, and moves those
// into the lanes. It sets the timer to when it is to be called again.
func (s *Service) pump(ctx context.Context) {
	again := s.opt.PollInterval
	defer func() { s.timer.Reset(again) }()
	// Rules that are looked for write events, which are counted next.
	if found, err := s.opt.Store.EvaluateAlertRules(ctx); err != nil {
		s.storeFailed(ctx, "evaluate alert rules", err)
		return
	} else if found {
		defer s.Nudge() // others may be due as well
	}
	n, err := s.opt.Store.ExpandAlertEvents(ctx, expandBatch, s.group)
	if err != nil {
		s.storeFailed(ctx, "expand alert events", err)
		return
	}
	told, wait, err := s.opt.Store.TellIncidents(ctx, tellBatch, s.tell)
	if err != nil {
		s.storeFailed(ctx, "tell incidents", err)
		return
	}
	room := maxHeld - s.held()
	now := time.Now() // before the claim: it cannot be younger
	var due []DueDelivery
	if room > 0 {
		p := ClaimDeliveriesParams{Limit: room, Hold: claimHold, Boot: s.opt.Boot, Living: s.opt.Living()}
		if due, err = s.opt.Store.ClaimDueDeliveries(ctx, p); err != nil {
			s.storeFailed(ctx, "claim due deliveries", err)
			return
		}
	}
	if s.failing {
		s.failing = false
		s.log.Info("the outbox can be read again")
	}
	s.metrics.expanded.Add(float64(n))
	s.starved = len(due) == room
	for _, d := range due {
		if s.admit(ctx, d, now) != nil {
			break // the database is slow or gone: the other claims run out by themselves
		}
	}
	if wait > 0 {
		again = min(again, wait)
	}
	if n == expandBatch || told == tellBatch || s.starved && s.held() <= maxHeld/2 {
		s.Nudge() // there is more, and room for it
	}
	s.forgetLanes(now)
}

func (s *Service) storeFailed(ctx context.Context, step string, err error) {
	if ctx.Err() == nil && !s.failing {
		s.failing = true
		s.log.Warn("the outbox cannot be read; alerts wait", "step", step, "err", err)
	}
}

// admit puts a claimed delivery into its lane, or puts it off. Its error is
// the database's.
func (s *Service) admit(ctx context.Context, due DueDelivery, now time.Time) error {
	j := job{due: due, notice: newNotice(due, &s.opt), claimedAt: now}
	var known bool
	if j.sender, known = s.senders[due.Delivery.Channel]; !known {
		return s.record(ctx, j, Permanent(errNotConfigured(due.Delivery.Channel)))
	}
	if due.Delivery.ChannelID != 0 {
		c, err := s.open(due.Channel)
		if err != nil {
			return s.record(ctx, j, err)
		}
		j.notice.Channel = c
		if wait := s.paces.take(int64(c.ID), limits[c.Kind], len(s.opt.Living()), now); wait > 0 {
			return s.putOff(ctx, j, wait, "not tried yet: the channel takes no more messages now")
		}
	}
	if due.Delivery.Channel == ChannelEmail && !j.notice.Event.Kind.Platform() {
		nodes := len(s.opt.Living())
		if wait := s.mails.take(int64(due.Delivery.TenantID), mailLimit(s.opt.MailsPerHour, nodes), nodes, now); wait > 0 {
			return s.putOff(ctx, j, wait, "not tried yet: the tenant's mails of this hour are used up (--mail-per-hour)")
		}
	}
	name := due.Delivery.Channel + " " + j.sender.Lane(j.notice)
	l := s.lanes[name]
	if l == nil {
		l = &lane{name: name}
		s.lanes[name] = l
	}
	j.lane = l
	switch {
	case l.closed(now):
		return s.record(ctx, j, errClosed(l))
	case l.full():
		l.deferred++
		return s.putOff(ctx, j, fullLaneWait(l.drain()), "not tried yet: many deliveries wait for the same receiver")
	default:
		l.add(j)
		s.waiting++
		return nil
	}
}

// settle notes the end of a telling and empties a lane that closed with it.
func (s *Service) settle(ctx context.Context, e ending) {
	s.sending--
	now := time.Now()
	l := e.job.lane
	if c := e.job.notice.Channel; c != nil && e.err != nil {
		s.paces.pause(int64(c.ID), now, min(sendErrorOf(e.err).RetryAfter, maxRetryAfter))
	}
	before := l.misses
	l.ended(e.err, e.took, now)
	if l.misses < closeAfter && before >= closeAfter {
		s.log.Info("receiver of alerts answers again", "lane", l.name)
	}
	if !l.closed(now) {
		return
	}
	if before < closeAfter {
		s.log.Warn("receiver of alerts does not answer; its deliveries are put off", "lane", l.name, "err", e.err)
	}
	s.waiting -= len(l.queue)
	for _, j := range l.queue {
		if s.record(ctx, j, errClosed(l)) != nil {
			break // see pump
		}
	}
	l.queue = nil
}

// startSends starts what may start. Which lane goes first is random. Nothing
// starts while others may take this node for dead, and what was claimed before
// such a time may be another's by now.
func (s *Service) startSends(ctx context.Context) {
	now := time.Now()
	shown, ok := s.opt.Shown()
	if !ok {
		return
	}
	var doubtful []int64
	defer func() { s.release(ctx, doubtful) }()
	for _, l := range s.lanes {
		for s.sending < maxSends {
			j, ok := l.next(now)
			if !ok {
				break
			}
			s.waiting--
			if j.claimedAt.Before(shown) {
				l.sending--
				doubtful = append(doubtful, j.due.Delivery.ID)
				continue
			}
			if now.Sub(j.claimedAt) > claimHold-j.sender.Timeout()-stopGrace {
				// Its claim may run out while it is told: then another node
				// would tell it at the same time. It comes again by itself.
				l.sending--
				continue
			}
			if c := j.notice.Channel; c != nil {
				if wait := s.paces.paused(int64(c.ID), now); wait > 0 {
					l.sending--
					_ = s.putOff(ctx, j, wait, "not tried yet: the receiver asked to wait") // logged; its claim runs out
					continue
				}
			}
			s.sending++
			go s.send(ctx, j) // ends within the sender's timeout; Run waits for it in stop
		}
	}
}

// release gives claims back; it writes nothing about those that others have.
func (s *Service) release(ctx context.Context, ids []int64) {
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	if err := s.opt.Store.ReleaseDeliveries(ctx, s.opt.Boot, ids); err != nil {
		s.log.Warn("claimed alerts could not be given back; their claims run out", "count", len(ids), "err", err)
		return
	}
	s.Nudge()
}

// forgetLanes drops lanes that nothing goes through.
func (s *Service) forgetLanes(now time.Time) {
	for name, l := range s.lanes {
		if l.idle() && (l.misses < closeAfter || now.Sub(l.closedAt) > forgetLane) {
			delete(s.lanes, name)
		}
	}
}

// stop gives back what waits, and waits for what is under way.
func (s *Service) stop(ctx context.Context, cancelSends context.CancelFunc) {
	s.giveBack(ctx)
	grace := time.AfterFunc(stopGrace, cancelSends)
	defer grace.Stop()
	for ; s.sending > 0; s.sending-- {
		<-s.ended
	}
}

// giveBack lets other nodes have at once what waits in the lanes.
func (s *Service) giveBack(ctx context.Context) {
	for _, l := range s.lanes {
		for _, j := range l.queue {
			if s.putOff(ctx, j, 0, "not tried yet: the node stopped") != nil {
				return // see pump
			}
		}
	}
}
