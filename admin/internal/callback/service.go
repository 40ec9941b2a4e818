package callback

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
)

// Tenant is one that has a built-in executor.
type Tenant struct {
	ID       domain.TenantID
	Executor domain.ExecutorID
	// Policy is what may be called, with its secret opened; nil: nothing.
	Policy *domain.CallbackPolicy
	// Err is why the policy cannot be told. The one that was read last counts.
	Err error
}

// Options of New.
type Options struct {
	// List returns all tenants that have a built-in executor.
	List func(ctx context.Context) ([]Tenant, error)
	// Dial connects to this node's gateway as an instance of a tenant's executor.
	Dial func(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (net.Conn, error)
	// Handlers are those beside the handler that calls an address.
	Handlers nodehandler.List
	// Dir is for journals, one folder per tenant.
	Dir string
	// NewID makes ids for trials.
	NewID func() int64
	// Node and Version name the instances.
	Node, Version string
	// Networks may be called though they are loopback, private or otherwise special.
	Networks []netip.Prefix
	RootCAs  *x509.CertPool // nil = the system's
	Logger   *slog.Logger
}

// lookEvery is how often it is looked who has a built-in executor, and what may be
// called.
const lookEvery = time.Second

// Service runs this node's instances of the built-in executors.
type Service struct {
	// fixed after construction
	opt     Options
	log     *slog.Logger
	limits  *limits
	answers answers

	mu      sync.Mutex // held while it is looked: there is one look at a time
	running bool       // guarded by mu
	members map[domain.TenantID]*member
	ends    map[domain.TenantID]string // guarded by mu: why members ended whose successors are not registered
}

// New returns a Service; it starts nothing.
func New(opt Options) *Service {
	return &Service{
		opt: opt, log: opt.Logger.With("component", "http_callbacks"), limits: newLimits(), answers: newAnswers(),
		members: map[domain.TenantID]*member{}, ends: map[domain.TenantID]string{},
	}
}

// Run runs the instances until ctx ends, and then lets them finish what they run
// (executor.Run). It needs the gateway until it returns.
func (s *Service) Run(ctx context.Context) {
	s.mu.Lock()
	s.running = true
	s.mu.Unlock()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	said := ""
	for {
		if err := s.look(ctx); ctx.Err() == nil {
			said = s.report(said, err)
		}
		select {
		case <-ctx.Done():
			s.stop()
			return
		case <-tick.C:
		}
	}
}

// report logs what a look has failed at, when it is not what was said last.
func (s *Service) report(last string, err error) (said string) {
	some, ofSome := errors.AsType[tenantsError](err)
	switch {
	case err == nil:
		if last != "" {
			s.log.Info("callbacks are up to date again on this node")
		}
		return ""
	case ofSome:
		if said = some.Error(); said != last {
			s.log.Warn("callbacks of some tenants are not up to date on this node", "err", err)
		}
	default: // what databases say may differ each time
		if said = "all"; said != last {
			s.log.Warn("the policies of callbacks cannot be read; those that were read last count", "err", err)
		}
	}
	return said
}

// tenantsError is of some tenants; the others are up to date.
type tenantsError struct{ error }

func (s *Service) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	for _, m := range s.members {
		m.stop()
	}
	for id, m := range s.members {
		<-m.done
		delete(s.members, id)
	}
}

// Refresh makes a tenant's policy count on this node that was changed just now. It
// returns when this node is registered for the tenant, or ctx ends; other nodes hear
// of it within lookEvery.
func (s *Service) Refresh(ctx context.Context, tenant domain.TenantID) {
	if err := s.look(ctx); err != nil && !errors.As(err, new(tenantsError)) {
		return // Run tells of it
	}
	s.mu.Lock()
	m := s.members[tenant]
	s.mu.Unlock()
	if m == nil {
		return
	}
	select {
	case <-m.executor.Ready():
	case <-m.done:
	case <-ctx.Done():
	}
}

// look begins what is new, ends what is gone, and lets the others know what counts.
func (s *Service) look(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	list, err := s.opt.List(ctx)
	if err != nil {
		return err
	}
	there := make(map[domain.TenantID]bool, len(list))
	var errs []error
	for _, t := range list {
		there[t.ID] = true
		m := s.members[t.ID]
		if m == nil {
			if m, err = s.join(t); err != nil {
				errs = append(errs, fmt.Errorf("tenant %s: %w", t.ID, err))
				continue
			}
			s.members[t.ID] = m
		}
		if t.Err != nil {
			errs = append(errs, fmt.Errorf("tenant %s: %w", t.ID, t.Err))
			continue
		}
		if old := m.policy.Load(); old == nil || !reflect.DeepEqual(old.of, t.Policy) {
			p, err := s.read(t.ID, t.Policy)
			if err != nil {
				errs = append(errs, fmt.Errorf("tenant %s: %w", t.ID, err))
				continue
			}
			m.policy.Store(p)
			old.close()
			if t.Policy == nil {
				s.limits.forget(t.ID)
			}
		}
	}
	for id, m := range s.members {
		switch {
		case m.ended(): // it begins anew at the next look
			s.logEnd(m)
		case there[id]:
			if m.registered() {
				delete(s.ends, id)
			}
			continue
		}
		m.stop()
		<-m.done
		delete(s.members, id)
		if !there[id] {
			delete(s.ends, id)
			s.limits.forget(id)
		}
	}
	if len(errs) > 0 {
		return tenantsError{errors.Join(errs...)}
	}
	return nil
}

// logEnd tells why a member has ended, once for the same reason. mu is held.
func (s *Service) logEnd(m *member) {
	if why := fmt.Sprint(m.err); s.ends[m.tenant] != why {
		s.ends[m.tenant] = why
		s.log.Error("an instance of the built-in executor has ended; it begins anew", "tenant_id", m.tenant, "err", m.err)
	}
}
