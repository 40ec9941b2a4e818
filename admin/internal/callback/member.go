package callback

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/egress"
	"github.com/carillon-sched/carillon/internal/httpcall"
)

const (
	// slots is how many runs of one tenant this node takes at a time.
	slots = 1024
	// drainTimeout is how long calls that are under way may take when the node stops.
	drainTimeout = 5 * time.Second
	killGrace    = 2 * time.Second
	// brokenFor is how long after its planned time a run is put off while its receiver
	// does not answer. Then it fails, so that its owner hears of it. Failures of a
	// receiver that nobody has called for so long are forgotten.
	brokenFor = 10 * time.Minute
	// freeTries is the least number of tries of a call without effect before its run
	// fails, in a job without attempts left. Runs that were planned less than brokenFor
	// ago go on until then. The first pause is firstPause, and it doubles up to maxPause.
	freeTries  = 6
	firstPause = 5 * time.Second
	maxPause   = time.Minute
)

// member is this node's instance of one tenant's executor.
type member struct {
	// fixed after construction
	tenant   domain.TenantID
	limits   *limits
	answers  answers
	executor *executor.Executor
	stop     context.CancelFunc
	done     chan struct{} // closed when it has ended
	err      error         // why; read only after done

	policy atomic.Pointer[policy] // nil: not read yet
}

// policy is what may be called; it never changes.
type policy struct {
	of     *domain.CallbackPolicy // nil: nothing
	caller *httpcall.Caller       // nil with it
}

// close closes its connections that nobody uses.
func (p *policy) close() {
	if p != nil && p.caller != nil {
		p.caller.Client.CloseIdleConnections()
	}
}

func (m *member) ended() bool      { return closed(m.done) }
func (m *member) registered() bool { return closed(m.executor.Ready()) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *Service) read(tenant domain.TenantID, p *domain.CallbackPolicy) (*policy, error) {
	if p == nil {
		return &policy{}, nil
	}
	hosts, err := httpcall.ParseHosts(p.Hosts)
	if err != nil {
		return nil, err
	}
	transport := httpcall.NewTransport(s.opt.Networks, s.opt.RootCAs, s.log.With("tenant_id", tenant))
	transport.MaxIdleConnsPerHost = p.PerHost
	transport.MaxIdleConns = slots // with fewer, calls to many receivers in turn would connect anew each time
	return &policy{of: p, caller: &httpcall.Caller{
		Client: httpcall.NewClient(transport), Hosts: hosts, MaxTimeout: p.MaxTimeout, Secret: p.Secret, Room: s.answers.room(tenant), UserAgent: "carillon/" + s.opt.Version,
		Who: "a callback", HostsBy: "the tenant's policy: carillon script policy --callback-hosts", NetworksBy: "--webhook-allow",
	}}, nil
}

func (s *Service) join(t Tenant) (*member, error) {
	ex, err := executor.New(executor.Config{
		Name: domain.BuiltInExecutor, InstanceName: s.opt.Node, Version: s.opt.Version, Generation: 1, Labels: map[string]string{},
		Dial: func(ctx context.Context, _ string) (net.Conn, error) { return s.opt.Dial(ctx, t.ID, t.Executor) },
		// Nobody reads them: who it is says the connection.
		Addresses: []string{"localhost:0"}, Token: executor.Secret("in-process-" + t.ID.String()),
		Slots: slots, JournalDir: filepath.Join(s.opt.Dir, t.ID.String()), DrainTimeout: drainTimeout, KillGrace: killGrace,
		Logger: s.log.With("tenant_id", t.ID), LogLevel: slog.LevelWarn, LogBuffer: 1 << 20,
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &member{tenant: t.ID, limits: s.limits, answers: s.answers, executor: ex, stop: stop, done: make(chan struct{})}
	executor.Handle(ex, domain.CallbackHandler, m.call, executor.Idempotent(), executor.Description("Calls an address that the tenant's policy allows. It is signed, and carries the run's id as Idempotency-Key"))
	for _, h := range s.opt.Handlers {
		h.Add(ex, t.ID, m.within)
	}
	go func() { // ends after stop
		defer close(m.done)
		m.err = ex.Run(ctx)
		m.policy.Load().close()
	}()
	return m, nil
}

// call is the handler.
func (m *member) call(ctx context.Context, in httpcall.Request) (out httpcall.Response, err error) {
	task, p := executor.TaskFrom(ctx), m.policy.Load()
	switch {
	case p == nil:
		return out, executor.Snooze(putOff)
	case p.of == nil:
		return out, executor.Permanent(fmt.Errorf("callbacks are off for this tenant; a platform administrator switches them on (carillon script policy)"))
	}
	request, err := p.caller.Prepare(&in, task)
	if err != nil {
		return out, err
	}
	if !m.answers.open(ctx, m.tenant) {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		return out, executor.Snooze(putOff + rand.N(putOff/2))
	}
	to := httpcall.Receiver(request.URL)
	err = m.within(ctx, to, p.of.PerHost, func() (outcome, error) {
		out, err = p.caller.Do(ctx, request, &in, executor.Logger(ctx))
		switch {
		case httpcall.NoAnswer(err):
			return unanswered, err
		case ctx.Err() == nil && !egress.Refused(err):
			return answered, err
		}
		return unknown, err
	})
	return out, again(err, task, time.Now())
}

// again puts off a run whose call had no effect, if its job has no attempts left.
func again(err error, task executor.Task, now time.Time) error {
	wait, undone := httpcall.Undone(err)
	if !undone || task.Attempt < task.MaxAttempts {
		return err
	}
	pause := min(firstPause<<min(task.Attempt-1, 10), maxPause)
	pause = max(pause+rand.N(pause/2), wait)
	left := brokenFor - now.Sub(task.FireTime)
	if task.Attempt >= freeTries && left <= 0 || wait > max(left, maxPause) {
		return err
	}
	return fmt.Errorf("%w; it is called again without using up an attempt, because this call had no effect: %w", err, executor.Snooze(pause))
}

// within makes a call as the limits of its receiver allow, or puts the run off.
func (m *member) within(ctx context.Context, to string, most int, call func() (outcome, error)) (err error) {
	begun, broken, later := m.limits.enter(ctx, m.tenant, to, most)
	switch {
	case begun == nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case broken && time.Since(executor.TaskFrom(ctx).FireTime) > brokenFor:
		return executor.RetryAfter(fmt.Errorf("%s has not answered for some time, and was not called again (circuit breaker)", to), later)
	case begun == nil:
		return executor.Snooze(later)
	}
	result := unknown // also of a panic
	defer func() { m.limits.leave(begun, result) }()
	result, err = call()
	return err
}
