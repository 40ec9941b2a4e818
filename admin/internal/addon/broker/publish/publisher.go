package publish

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/internal/egress"
)

const (
	// Timeout bounds one message, from the reading of its connection's row to
	// the broker's answer.
	Timeout = 30 * time.Second
	// openTimeout bounds the opening of a connection, whoever waits for it.
	openTimeout = 10 * time.Second
	// idleTime is how long a connection is kept that nobody uses, maxAge how
	// long one is used.
	idleTime = 5 * time.Minute
	maxAge   = time.Hour
	// closeTime is how long a broker may take to say goodbye, and stopTime how long
	// messages under way may take when the node stops. Then their sockets are closed.
	closeTime = 2 * time.Second
	stopTime  = 2 * time.Second
	// tidyInterval is how often that is looked after.
	tidyInterval = 30 * time.Second
	// rowAge is how old the row of a connection may be that a node goes by: an
	// edit counts everywhere after that.
	rowAge = 2 * time.Second
	// DefaultMax is how many connections a node keeps.
	DefaultMax = 256
)

// Connections is where connections are kept.
type Connections interface {
	FindConnectionByName(ctx context.Context, tenant domain.TenantID, name string) (noun.Connection, error)
}

// Options of a Publisher.
type Options struct {
	Connections Connections
	Secrets     resource.Opener
	// AllowPrefixes are networks that connections may lead to though they are
	// loopback, private or otherwise special. Empty: none.
	AllowPrefixes []netip.Prefix
	Max           int // connections that are kept; 0 = DefaultMax
	Logger        *slog.Logger
}

// Publisher publishes to the tenants' brokers. It is safe for concurrent use.
type Publisher struct {
	opt     Options
	dial    dialFunc
	openers map[noun.Broker]opener
	work    sync.WaitGroup // users, openings and closings of connections

	mu     sync.Mutex
	open   map[connectionKey]*connection // guarded by mu
	alive  map[*connection]struct{}      // guarded by mu; also those that are retired and not closed
	rows   map[rowKey]*row               // guarded by mu; at most 4 × Max
	closed bool                          // guarded by mu: Run has ended, nothing is opened
}

type connectionKey struct {
	tenant domain.TenantID
	id     int64
}

type rowKey struct {
	tenant domain.TenantID
	name   string
}

// row is a connection's row as it was read.
type row struct {
	connection noun.Connection
	readAt     time.Time
}

// connection is one that is open, or is being opened.
type connection struct {
	// Fixed after construction.
	version  int64
	openedAt time.Time
	ready    chan struct{}           // closed when broker or err is set
	stop     context.CancelCauseFunc // ends the opening

	broker   broker // fixed once ready is closed; nil with err
	endpoint *endpoint
	err      error

	users   int       // guarded by Publisher.mu
	usedAt  time.Time // guarded by Publisher.mu
	retired bool      // guarded by Publisher.mu: its last user closes it
}

// broker is an open connection. publish returns an Error, or what typed makes
// one of; it may be called by many at once.
type broker interface {
	publish(ctx context.Context, m *noun.Message) error
	// broken reports that it does not come back by itself.
	broken() bool
	close()
}

// opener returns when the broker has let us in; ctx is only of the opening.
type opener func(ctx context.Context, e *endpoint) (broker, error)

var openers = map[noun.Broker]opener{
	noun.BrokerNATS: openNATS, noun.BrokerRabbitMQ: openRabbitMQ, noun.BrokerKafka: openKafka, noun.BrokerRedis: openRedis,
}

// New returns a publisher without connections. Run looks after those that come.
func New(opt Options) *Publisher {
	if opt.Max == 0 {
		opt.Max = DefaultMax
	}
	return &Publisher{
		opt: opt, dial: egress.NewDialer(dialTimeout, opt.AllowPrefixes, opt.Logger).DialContext, openers: openers,
		open: map[connectionKey]*connection{}, alive: map[*connection]struct{}{}, rows: map[rowKey]*row{},
	}
}

// Publish returns nil once the broker keeps the message. Errors are of type
// Error, of the store (domain.CodeNotFound: there is no such connection), or
// say that the message is not valid (domain.CodeInvalid).
func (p *Publisher) Publish(ctx context.Context, m noun.Message) error {
	return p.publish(ctx, m, rowAge)
}

// Try is Publish by the connection as it is now, for who has just edited it.
func (p *Publisher) Try(ctx context.Context, m noun.Message) error { return p.publish(ctx, m, 0) }

func (p *Publisher) publish(ctx context.Context, m noun.Message, newerThan time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	row, err := p.row(ctx, m.Tenant, m.Connection, newerThan)
	if err != nil {
		return err
	}
	if m.ContentType == "" {
		m.ContentType = "application/json"
	}
	if err := noun.CheckMessage(row.Spec.Broker, &m); err != nil {
		return err
	}
	c, err := p.take(&row)
	if err != nil {
		return err
	}
	defer p.release(c)
	select {
	case <-c.ready:
	case <-ctx.Done():
		return silent("the broker does not let us in: %w", ctx.Err())
	}
	if c.err != nil {
		return c.err
	}
	return c.endpoint.explain(c.broker.publish(ctx, &m))
}

// row reads a connection's row, or takes one that is younger than newerThan.
func (p *Publisher) row(ctx context.Context, tenant domain.TenantID, name string, newerThan time.Duration) (noun.Connection, error) {
	key := rowKey{tenant, name}
	p.mu.Lock()
	known := p.rows[key]
	p.mu.Unlock()
	now := time.Now()
	if known != nil && now.Sub(known.readAt) < newerThan {
		return known.connection, nil
	}
	read, err := p.opt.Connections.FindConnectionByName(ctx, tenant, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		delete(p.rows, key)
		return read, err
	}
	if len(p.rows) >= 4*p.opt.Max {
		clear(p.rows) // they are only there to spare the database
	}
	p.rows[key] = &row{read, now}
	return read, nil
}

// take returns the connection of a row, which it opens when there is none, and
// keeps it open until release.
func (p *Publisher) take(row *noun.Connection) (*connection, error) {
	key := connectionKey{row.Tenant, row.ID}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, retryable("%w", errStops)
	}
	c := p.open[key]
	if c != nil && !c.good(row.Version, now) {
		p.retireLocked(key, c)
		c = nil
	}
	if c == nil {
		if len(p.open) >= p.opt.Max && !p.makeRoomLocked() {
			return nil, retryable("this node has %d connections to brokers, all in use", p.opt.Max)
		}
		ctx, stop := context.WithCancelCause(context.Background())
		c = &connection{version: row.Version, openedAt: now, ready: make(chan struct{}), stop: stop}
		p.open[key] = c
		p.alive[c] = struct{}{}
		c.users++ // the opening itself
		p.work.Add(1)
		p.work.Go(func() { p.opening(ctx, key, c, row) })
	}
	c.users++
	p.work.Add(1) // before Run waits: it has not set closed
	c.usedAt = now
	return c, nil
}

// good tells whether the connection can take another message.
func (c *connection) good(version int64, now time.Time) bool {
	if c.version != version || now.Sub(c.openedAt) > maxAge {
		return false
	}
	select {
	case <-c.ready:
		return c.err == nil && !c.endpoint.isCut() && !c.broker.broken()
	default:
		return true
	}
}

func (p *Publisher) opening(ctx context.Context, key connectionKey, c *connection, row *noun.Connection) {
	defer c.stop(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, errOpening)
	defer cancel()
	c.broker, c.err = p.connect(ctx, c, row)
	if c.err != nil {
		p.opt.Logger.Warn("connection to a broker failed", "tenant_id", row.Tenant, "connection", row.Name, "err", egress.Detailed(c.err))
		p.mu.Lock()
		p.retireLocked(key, c) // the next message tries anew, also one that follows this answer at once
		p.mu.Unlock()
	}
	close(c.ready)
	p.release(c)
}

func (p *Publisher) connect(ctx context.Context, c *connection, row *noun.Connection) (broker, error) {
	secrets, err := resource.OpenSecrets(p.opt.Secrets, secret.PurposeConnection, &row.Meta)
	if err != nil { // a node with the right key can still do it
		return nil, retryable("open the connection's secrets: %w", err)
	}
	if c.endpoint, err = newEndpoint(row.Spec, secrets, p.dial); err != nil {
		return nil, err
	}
	// Libraries do not look at ctx while they read.
	watch := context.AfterFunc(ctx, func() { c.endpoint.cut(context.Cause(ctx)) })
	b, err := p.openers[row.Spec.Broker](ctx, c.endpoint)
	if !watch() {
		<-c.endpoint.ended // so that explain has the cause
	}
	if err != nil {
		return nil, c.endpoint.explain(err)
	}
	return b, nil
}

// Look opens the connection of a row, as the next message would, and closes it.
// Nothing is published.
func (p *Publisher) Look(ctx context.Context, row noun.Connection) error {
	c := new(connection)
	b, err := p.connect(ctx, c, &row)
	if err == nil {
		c.endpoint.close(b)
	}
	return err
}

// release says that a user of the connection is done with it.
func (p *Publisher) release(c *connection) {
	defer p.work.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	c.users--
	if c.retired && c.users == 0 {
		p.closeLocked(c)
	}
}

// retireLocked takes a connection out of use; its last user closes it.
func (p *Publisher) retireLocked(key connectionKey, c *connection) {
	if c.retired {
		return
	}
	c.retired = true
	if p.open[key] == c {
		delete(p.open, key)
	}
	if c.users == 0 {
		p.closeLocked(c)
	}
}

// closeLocked lets a goroutine do it: brokers may take a second to say goodbye.
func (p *Publisher) closeLocked(c *connection) {
	if c.broker == nil {
		delete(p.alive, c)
		return
	}
	p.work.Go(func() {
		c.endpoint.close(c.broker)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.alive, c)
	})
}

// makeRoomLocked retires the connection that nobody uses for longest.
func (p *Publisher) makeRoomLocked() bool {
	var oldest connectionKey
	var found *connection
	for key, c := range p.open {
		if c.users == 0 && (found == nil || c.usedAt.Before(found.usedAt)) {
			oldest, found = key, c
		}
	}
	if found == nil {
		return false
	}
	p.retireLocked(oldest, found)
	return true
}

// Run closes connections that are idle, old or broken. When ctx ends, it closes all
// of them, gives messages under way stopTime, and returns when nothing is under way.
func (p *Publisher) Run(ctx context.Context) error {
	tick := time.NewTicker(tidyInterval)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			p.tidy(now)
		case <-ctx.Done():
			p.retireAll()
			cut := time.AfterFunc(stopTime, p.cutAll)
			p.work.Wait()
			cut.Stop()
			return nil
		}
	}
}

// retireAll ends openings and closes idle connections.
func (p *Publisher) retireAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for key, c := range p.open {
		c.stop(errStops)
		p.retireLocked(key, c)
	}
}

// cutAll closes the sockets of messages that are still under way.
func (p *Publisher) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.alive {
		select {
		case <-c.ready:
			if c.endpoint != nil {
				c.endpoint.cut(errStops)
			}
		default: // its opening ends
		}
	}
}

func (p *Publisher) tidy(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, c := range p.open {
		if c.users == 0 && (now.Sub(c.usedAt) > idleTime || !c.good(c.version, now)) {
			p.retireLocked(key, c)
		}
	}
	for key, r := range p.rows {
		if now.Sub(r.readAt) > idleTime {
			delete(p.rows, key)
		}
	}
}
