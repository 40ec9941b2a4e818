package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/internal/testenv"
)

// peer is another product that fires timers, on a server of its own kind.
type peer struct {
	said  string
	kind  string // asynq or rabbitmq
	check time.Duration
	start func(dir string) (*testenv.Broker, error)
}

// peers are as durable as we are, what is acknowledged is on disk, where nothing
// else is said.
func peers() []peer {
	return []peer{
		{"asynq, looks every 5 s (its default)", "asynq", 0, redis("always")},
		{"asynq, looks every 100 ms", "asynq", 100 * time.Millisecond, redis("always")},
		{"asynq, looks every 100 ms; a crash of the machine loses a second", "asynq", 100 * time.Millisecond, redis("everysec")},
		{"RabbitMQ, message TTL and dead-letter exchange", "rabbitmq", 0, testenv.StartRabbitMQ},
	}
}

// timersPeers measures how late timers fire that are set in other products, beside
// ours in the same run: 5,000 a second, spread evenly.
func (b *bench) timersPeers() (parts []part) {
	kind, window := b.o.databases(true)[0], b.window(20*time.Second)
	n := timersSteady * int(window/time.Second)
	parts = append(parts, part{
		result: Result{Scenario: "timers-peers", Variant: "Carillon", Database: kind, Admins: 1},
		usual:  2*window + 30*time.Second,
		run: func(ctx context.Context, r *Result) error {
			return b.withFleet(ctx, kind, 1, func(f *fleet) error { return f.timersFire(ctx, n, evenly(timersSteady), r) })
		},
	})
	for _, p := range peers() {
		parts = append(parts, part{
			result: Result{Scenario: "timers-peers", Variant: p.said},
			usual:  2*window + time.Minute,
			run:    func(ctx context.Context, r *Result) error { return b.timersPeer(ctx, p, n, window, r) },
		})
	}
	return parts
}

// peerEnv tells a peer's client where its server is.
const peerEnv = "CARILLON_BENCH_PEER"

func (b *bench) timersPeer(ctx context.Context, p peer, n int, window time.Duration, r *Result) (err error) {
	server, err := p.start(b.o.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	address := url.URL{Scheme: map[string]string{"asynq": "redis", "rabbitmq": "amqp"}[p.kind], Host: server.Addr, User: url.UserPassword(server.User, server.Password)}
	client := exec.CommandContext(ctx, b.o.Executor, "peer", "--kind", p.kind, "--timers", strconv.Itoa(n), "--check", p.check.String())
	client.Env, client.Stderr = append(os.Environ(), peerEnv+"="+address.String()), os.Stderr
	out, err := client.StdoutPipe()
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Wait()) }()
	said := json.NewDecoder(bufio.NewReader(out))
	var set peerSet
	if err := said.Decode(&set); err != nil {
		return fmt.Errorf("%s set no timers: %w", p.kind, err)
	}
	r.Window = seconds(window)
	r.Notes = append(r.Notes, fmt.Sprintf("%d timers set in %.1f s, one by one from %d connections", n, set.Took.Seconds(), timerClients))
	f := &fleet{b: b, dir: b.o.Dir, processes: []watched{{p.kind + "'s worker", client.Process.Pid}, {"server", server.PID()}}}
	if err := pauseUntil(ctx, set.First.Add(-time.Second)); err != nil {
		return err
	}
	if err := f.measure(ctx, set.Last.Add(2*time.Second), r); err != nil {
		return err
	}
	var seen peerSeen
	if err := said.Decode(&seen); err != nil {
		return err
	}
	r.Fires, r.Lateness = &seen.Fires, spreadOf(seen.Late)
	perFire(r.Processes, r.Fires.Started)
	return nil
}

// peerSet is what a peer's client says when all timers are set.
type peerSet struct {
	First, Last time.Time
	Took        time.Duration
}

// peerSeen is what it says in the end. A peer that is late or loses is not an error
// of the bench.
type peerSeen struct {
	Fires Fires
	Late  []float64 // milliseconds
}

// redis is a Redis with a log on disk, in a folder of its own, that is synced always
// (before the answer) or everysec.
func redis(fsync string) func(dir string) (*testenv.Broker, error) {
	return func(dir string) (*testenv.Broker, error) {
		home, err := os.MkdirTemp(dir, "redis-")
		if err != nil {
			return nil, err
		}
		return testenv.StartRedis("--dir", home, "--appendonly", "yes", "--appendfsync", fsync)
	}
}

// peerWork sets timers in a product and has its workers call fired.
type peerWork interface {
	// set sets timer i, durably; of several goroutines, each with its own lane.
	set(ctx context.Context, lane, i int, due time.Time) error
	// work fires until ctx ends.
	work(ctx context.Context, fired func(i int)) error
}

// servePeer is what the bench starts as client and worker of a peer.
func servePeer(ctx context.Context, args []string) error {
	f := pflag.NewFlagSet("bench peer", pflag.ContinueOnError)
	kind := f.String("kind", "", "asynq or rabbitmq")
	n := f.Int("timers", 0, "how many")
	check := f.Duration("check", 0, "how often asynq looks for what is due (0: its default)")
	if err := f.Parse(args); err != nil {
		return err
	}
	work, err := newPeer(*kind, os.Getenv(peerEnv), *check)
	if err != nil {
		return err
	}
	began := time.Now()
	// One request a timer: what 16 connections do of 2,000 a second at least.
	first := began.Add(timerLead + time.Duration(*n)*500*time.Microsecond).Truncate(time.Second)
	due := func(i int) time.Time { return evenly(timersSteady)(first, int64(i)) }
	var next atomic.Int64
	group, gctx := errgroup.WithContext(ctx)
	for lane := range timerClients {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < *n; i = int(next.Add(1)) - 1 {
				if err := work.set(gctx, lane, i, due(i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if time.Until(first) < time.Second {
		return fmt.Errorf("setting %d timers took %s: the first was due meanwhile", *n, time.Since(began))
	}
	say := json.NewEncoder(os.Stdout)
	if err := say.Encode(peerSet{First: first, Last: due(*n - 1), Took: time.Since(began)}); err != nil {
		return err
	}
	seen, err := watchPeer(ctx, work, *n, due)
	if err != nil {
		return err
	}
	return say.Encode(seen)
}

// watchPeer lets the workers work until all timers fired, or a minute after the last
// was due.
func watchPeer(ctx context.Context, work peerWork, n int, due func(int) time.Time) (*peerSeen, error) {
	var mu sync.Mutex
	at := make([]time.Time, n)
	seen := &peerSeen{Fires: Fires{Expected: n, Rows: n}}
	all := make(chan struct{})
	working, stop := context.WithDeadline(ctx, due(n-1).Add(time.Minute))
	defer stop()
	go func() {
		select {
		case <-all:
			_ = pause(working, time.Second) // for what fires twice
			stop()
		case <-working.Done():
		}
	}()
	err := work.work(working, func(i int) {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		if !at[i].IsZero() {
			seen.Fires.Doubled++
			return
		}
		at[i] = now
		if seen.Fires.Started++; seen.Fires.Started == n {
			close(all)
		}
	})
	mu.Lock()
	defer mu.Unlock()
	for i, t := range at {
		switch late := t.Sub(due(i)); {
		case t.IsZero():
			seen.Fires.Missed++
		case late < 0:
			seen.Fires.Early++
		default:
			seen.Late = append(seen.Late, float64(late)/1e6)
		}
	}
	return seen, err
}

func newPeer(kind, address string, check time.Duration) (peerWork, error) {
	switch kind {
	case "asynq":
		o, err := asynq.ParseRedisURI(address)
		if err != nil {
			return nil, err
		}
		return &asynqPeer{o, asynq.NewClient(o), check}, nil
	case "rabbitmq":
		return newRabbitPeer(address)
	}
	return nil, fmt.Errorf("there is no peer %q", kind)
}

// asynqPeer: a task of a time, in a sorted set of Redis.
type asynqPeer struct {
	redis  asynq.RedisConnOpt
	client *asynq.Client
	check  time.Duration
}

func (p *asynqPeer) set(ctx context.Context, _, i int, due time.Time) error {
	task := asynq.NewTask("cancel", []byte(fmt.Sprintf(`{"orderId":%d,"reason":"unpaid"}`, i)))
	_, err := p.client.EnqueueContext(ctx, task, asynq.ProcessAt(due), asynq.TaskID(fmt.Sprintf("order-%014d", i)))
	return err
}

func (p *asynqPeer) work(ctx context.Context, fired func(int)) error {
	server := asynq.NewServer(p.redis, asynq.Config{Concurrency: 100, DelayedTaskCheckInterval: p.check, LogLevel: asynq.ErrorLevel})
	err := server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		var order timerInput
		if err := json.Unmarshal(t.Payload(), &order); err != nil {
			return err
		}
		fired(int(order.OrderID))
		return nil
	}))
	if err != nil {
		return err
	}
	<-ctx.Done()
	server.Shutdown()
	return nil
}

// rabbitPeer: a durable message of a time to live in a queue that nobody reads, which
// ends in the queue of the workers. Such a queue is left from its head alone: they
// have to be set in the order in which they are due, and each lane has one.
type rabbitPeer struct {
	conn     *amqp.Connection
	channels [timerClients]*amqp.Channel
}

const rabbitWork = "cancel"

func rabbitWaiting(lane int) string { return "waiting-" + strconv.Itoa(lane) }

func newRabbitPeer(address string) (*rabbitPeer, error) {
	p := &rabbitPeer{}
	var err error
	if p.conn, err = amqp.Dial(address); err != nil {
		return nil, err
	}
	for lane := range p.channels {
		c, err := p.conn.Channel()
		if err != nil {
			return nil, err
		}
		p.channels[lane] = c
		if err := c.Confirm(false); err != nil {
			return nil, err
		}
		if _, err := c.QueueDeclare(rabbitWork, true, false, false, false, nil); err != nil {
			return nil, err
		}
		if _, err := c.QueueDeclare(rabbitWaiting(lane), true, false, false, false, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": rabbitWork}); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *rabbitPeer) set(ctx context.Context, lane, i int, due time.Time) error {
	live := strconv.FormatInt(max(0, time.Until(due).Milliseconds()+1), 10) // never early
	confirm, err := p.channels[lane].PublishWithDeferredConfirmWithContext(ctx, "", rabbitWaiting(lane), false, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, Expiration: live, MessageId: strconv.Itoa(i), Body: []byte(fmt.Sprintf(`{"orderId":%d,"reason":"unpaid"}`, i)),
	})
	if err != nil {
		return err
	}
	ok, err := confirm.WaitContext(ctx)
	if err == nil && !ok {
		err = errors.New("RabbitMQ did not take a message")
	}
	return err
}

func (p *rabbitPeer) work(ctx context.Context, fired func(int)) error {
	c, err := p.conn.Channel()
	if err != nil {
		return err
	}
	if err := c.Qos(1000, 0, false); err != nil {
		return err
	}
	messages, err := c.ConsumeWithContext(ctx, rabbitWork, "worker", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for m := range messages {
		i, err := strconv.Atoi(m.MessageId)
		if err != nil {
			return err
		}
		fired(i)
		if err := m.Ack(false); err != nil {
			return err
		}
	}
	return nil
}
