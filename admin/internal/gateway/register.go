package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// register reads the Register frame and enters the instance.
func (g *Gateway) register(ctx context.Context, s *Session, p *peer, io streams) (out *proto.Registered, orphanCheck *store.EndOrphansParams, err error) {
	tell := func(why *proto.Error) {
		_ = proto.WriteFrame(io.control, &proto.ControlToExecutor{Body: &proto.ControlToExecutor_Error{Error: why}}, proto.MaxFrame)
	}
	in := inbox{s, io.control, io.reader, 0}
	slow := time.AfterFunc(proto.HelloTimeout, func() { s.close(errors.New("the registration was not here in time")) })
	defer slow.Stop()
	var first proto.ControlToAdmin
	read := false
	err = in.next(&first, func(size int) int { return weightOf(size, smallControl, decodedControl*size) }, func() error {
		if read = slow.Stop(); !read {
			return s.err()
		}
		out, orphanCheck, err = g.enterInstance(ctx, s, p, first.GetRegister(), tell)
		return err
	})
	if err != nil && !read {
		if why := faultOf(err); why != nil {
			tell(why)
		}
		err = fmt.Errorf("read registration: %w", err)
	}
	return out, orphanCheck, err
}

// enterInstance enters an instance; tell tells it why not.
func (g *Gateway) enterInstance(ctx context.Context, s *Session, p *peer, reg *proto.Register, tell func(*proto.Error)) (*proto.Registered, *store.EndOrphansParams, error) {
	refuse := func(code, message string, retryAfter int64) error {
		tell(&proto.Error{Code: code, Message: message, RetryAfterMs: retryAfter})
		return fmt.Errorf("registration refused: %s", message)
	}
	s.Slots.leasedAt = time.Since(s.began) // nobody else has it yet
	fail := func(code, message string) error { return refuse(code, message, -1) }
	if reg == nil {
		return nil, nil, fail("malformed", "the first control frame must be Register")
	}
	if message := checkRegister(reg); message != "" {
		return nil, nil, fail("malformed", message)
	}
	if err := g.admission.hold(p.hello, reg.InstanceName, time.Now()); err != nil { // of an SDK whose hello does not name it
		s.Name = "" // it has not lived
		code, retry := helloCode(err)
		return nil, nil, refuse(code, err.Error(), retry)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	build, err := buildOf(p, reg)
	if err != nil {
		return nil, nil, err
	}
	registration, err := g.registers.Do(ctx, store.RegisterInstanceParams{
		Instance: instanceOf(g.opt.NewID(), p, reg, build), Handlers: handlersOf(p, reg), Build: build, TTL: proto.LeaseTTL,
	})
	if err == nil {
		err = registration.Err
	}
	if domain.Is(err, domain.CodeQuotaExceeded) {
		s.Name = "" // it has not lived
		return nil, nil, refuse("limit_reached", err.Error(), quotaRetry.Milliseconds())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("register instance: %w", err)
	}
	instance := registration.Instance
	s.Instance, s.Name, s.Labels = instance.ID, instance.Name, reg.Labels
	s.Slots.occupancy.slots, s.Slots.refusesOld = int(reg.Slots), reg.RefusesOld
	if reg.Draining {
		s.drainLocked() // nobody else has it yet
	}
	s.drain(!instance.DrainedAt.IsZero())
	for _, h := range reg.Handlers {
		s.idempotent[h.Name] = h.Idempotent
	}
	s.Slots.weigh(reg.Handlers)
	out := &proto.Registered{
		Verdicts:   g.inventories.settle(ctx, s, reg.Inventory),
		InstanceId: int64(instance.ID), HeartbeatIntervalMs: proto.HeartbeatInterval.Milliseconds(),
		LeaseTtlMs: proto.LeaseTTL.Milliseconds(),
	}
	if !s.local {
		out.Nodes = g.nodeList()
	}
	if len(reg.SupersededBoots) > 0 {
		g.supersede(ctx, s, reg)
	}
	if g.opt.Declarer != nil {
		out.Notices = g.opt.Declarer.Declare(ctx, p.tenant, p.executor, build.Digest)
	}
	return out, orphanCheckOf(s, p, reg, instance), nil
}

// quotaRetry is after how long an instance tries again for which its tenant has no
// room.
const quotaRetry = 10 * time.Second

// supersedeGrace is how long results from a taken-over journal may take before
// their attempts are judged without them.
const supersedeGrace = 3 * time.Second

// supersede ends the boots whose journal this process holds the lock of: the
// kernel gives it to nobody while they live. What the journal owes no result
// for has ended with them.
func (g *Gateway) supersede(ctx context.Context, s *Session, reg *proto.Register) {
	p := store.SupersedeBootsParams{
		Tenant: s.Tenant, Executor: s.Executor, BootIDs: reg.SupersededBoots, Grace: supersedeGrace,
		OwedComplete: reg.OwedComplete && len(reg.Owed) <= proto.MaxOwed,
	}
	for _, item := range reg.Owed {
		p.Owed = append(p.Owed, domain.ExecutionID(item.ExecutionId))
	}
	superseded, err := g.succeeds.Do(ctx, p)
	if err == nil {
		err = superseded.Err
	}
	if err != nil {
		// Their leases run out by themselves; this was only quicker.
		g.log.Warn("could not end superseded boots", "instance_id", s.Instance, "err", err)
		g.tasks.tellFault(err)
		return
	}
	for _, id := range superseded.Ended {
		if old := g.registry.byInstance(id); old != nil {
			old.close(errors.New("a newer process took over its journal"))
		}
	}
}

func checkRegister(r *proto.Register) string {
	switch {
	case r.Slots < 1 || r.Slots > 100_000:
		return "slots must be from 1 to 100000"
	case len(r.Handlers) > proto.MaxHandlers:
		return fmt.Sprintf("at most %d handlers can be registered", proto.MaxHandlers)
	case len(r.InstanceName) > proto.MaxName || len(r.Host) > 255 || len(r.AppVersion) > proto.MaxName:
		return "instance_name, host or app_version is too long"
	case len(r.Labels) > 64 || len(r.SupersededBoots) > 1000:
		return "too many labels or superseded boots"
	}
	for _, h := range r.Handlers {
		if h.Name == "" || len(h.Name) > proto.MaxName {
			return fmt.Sprintf("handler name %q must have 1 to %d bytes", h.Name, proto.MaxName)
		}
		for _, schema := range [][]byte{h.InputSchema, h.OutputSchema} {
			if len(schema) > 0 && !proto.ValidJSON(schema) {
				return fmt.Sprintf("the schemas of handler %q must be JSON in UTF-8", h.Name)
			}
		}
	}
	return ""
}

func instanceOf(id int64, p *peer, r *proto.Register, build domain.Build) domain.Instance {
	names := slices.Clone(build.Handlers) // never nil
	slices.Sort(names)
	return domain.Instance{
		ID: domain.InstanceID(id), TenantID: p.tenant, Executor: p.executor, BootID: p.hello.BootId,
		Name: r.InstanceName, Host: r.Host, Address: p.address, PID: int(r.Pid), AppVersion: r.AppVersion, Build: build.Digest, Client: p.hello.Client,
		Labels: r.Labels, Handlers: names, Slots: int(r.Slots), Draining: r.Draining,
		StartedAt: time.UnixMilli(r.StartedAtMs).UTC(),
	}
}

func handlersOf(p *peer, r *proto.Register) []domain.Handler {
	out := make([]domain.Handler, 0, len(r.Handlers))
	for _, h := range r.Handlers {
		out = append(out, domain.Handler{
			TenantID: p.tenant, Executor: p.executor, Name: h.Name, Description: h.Description,
			InputSchema: h.InputSchema, OutputSchema: h.OutputSchema, Idempotent: h.Idempotent,
		})
	}
	return out
}

// buildOf names what an instance registers by its digest: instances of one
// build register the same, in the same order.
func buildOf(p *peer, r *proto.Register) (domain.Build, error) {
	catalogue, err := gproto.MarshalOptions{Deterministic: true}.Marshal(&proto.Register{
		AppVersion: r.AppVersion, Generation: r.Generation, Strict: r.Strict, Handlers: r.Handlers,
	})
	if err != nil {
		return domain.Build{}, fmt.Errorf("encode catalogue: %w", err)
	}
	sum := sha256.Sum256(catalogue)
	b := domain.Build{
		TenantID: p.tenant, Executor: p.executor, Digest: hex.EncodeToString(sum[:16]), Version: r.AppVersion,
		Generation: r.Generation, NoJobs: p.noJobs, Handlers: make([]string, 0, len(r.Handlers)), Catalogue: catalogue,
	}
	for _, h := range r.Handlers {
		b.Handlers = append(b.Handlers, h.Name)
	}
	return b, nil
}
