package bridge

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// deliverTimeout bounds how long offers wait for the scripts that go with them.
const deliverTimeout = 2 * time.Second

// Scripts finds what agents get with an offer. Policy and newest version are asked for
// each time: what was forbidden or replaced counts for the next offer, on every node.
type Scripts struct {
	Store interface {
		FindScriptPolicy(ctx context.Context, tenant domain.TenantID) (domain.ScriptPolicy, error)
		FindScript(ctx context.Context, tenant domain.TenantID, use domain.ScriptUse) (domain.Script, error)
	}
	Logger *slog.Logger
}

// add completes the offers of agents' handlers, and returns those that are
// ready. The others cannot be completed now. They get no answer, and so they
// are made again.
func (d *Scripts) add(offers []*proto.Offer, made []store.OfferResult) (ready, left []*proto.Offer) {
	if !slices.ContainsFunc(offers, func(o *proto.Offer) bool { return domain.IsAgentHandler(o.Handler) }) {
		return offers, nil // as nearly always
	}
	ctx, cancel := context.WithTimeout(context.Background(), deliverTimeout)
	defer cancel()
	for i, o := range offers {
		if domain.IsAgentHandler(o.Handler) {
			script, err := d.deliver(ctx, made[i].Execution.TenantID, made[i].Spec)
			if err != nil {
				d.Logger.Warn("an offer is put off: its script cannot be read", "execution_id", o.ExecutionId, "err", err)
				left = append(left, o)
				continue
			}
			o.Script = script
		}
		ready = append(ready, o)
	}
	return ready, left
}

// deliver returns what goes with one offer: a script, or why there is none.
func (d *Scripts) deliver(ctx context.Context, tenant domain.TenantID, spec *domain.JobSpec) (*proto.Script, error) {
	policy, err := d.Store.FindScriptPolicy(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if why := policy.Refuses(spec.Handler); why != "" {
		return &proto.Script{Refusal: why}, nil
	}
	switch {
	case spec.Handler == domain.HTTPHandler:
		return nil, nil
	case spec.Script == nil:
		return &proto.Script{Refusal: "the job names no script"}, nil
	}
	s, err := d.Store.FindScript(ctx, tenant, *spec.Script)
	if domain.Is(err, domain.CodeNotFound) {
		return &proto.Script{Refusal: "the job's script was deleted"}, nil
	} else if err != nil {
		return nil, err
	}
	return &proto.Script{
		Id: int64(s.ID), Name: s.Name, Revision: s.Version, Language: s.Language, Args: spec.Script.Args,
		Content: []byte(s.Content), Sha256: s.SHA256, Signature: s.Signature,
	}, nil
}

// SignScripts signs versions as SPEC.md section 11 says.
func SignScripts(key ed25519.PrivateKey) store.SignFunc {
	return func(s domain.Script, version int64, sum []byte) []byte {
		return ed25519.Sign(key, proto.ScriptMessage(int64(s.TenantID), int64(s.ID), version, s.Language, sum))
	}
}
