package callback

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/httpcall"
)

const (
	// trialTimeout bounds a trial, so that its answer comes before the request for it ends.
	trialTimeout = 30 * time.Second
	// HeaderTrial marks a call that no run makes.
	HeaderTrial = "Carillon-Trial"
)

// Try makes one call as a run with this input would. It has the policy, the signature and the
// limits of a run's call, and HeaderTrial beside. An error says why nothing was called.
func (s *Service) Try(ctx context.Context, tenant domain.TenantID, input []byte) (out nodehandler.Trial, err error) {
	s.mu.Lock()
	m := s.members[tenant]
	s.mu.Unlock()
	if m == nil || m.policy.Load() == nil {
		return out, domain.Errorf(domain.CodeUnavailable, "this node does not make callbacks for the tenant yet; try again in a second")
	}
	p := m.policy.Load()
	if p.of == nil {
		return out, domain.Errorf(domain.CodePolicyRefused, "callbacks are off for this tenant; a platform administrator switches them on (carillon script policy)")
	}
	in, err := httpcall.Decode(input)
	if err != nil {
		return out, domain.Invalid("body.callback", "%v", err)
	}
	in.MaxResponse = httpcall.SmallAnswer - 1 // so that it needs no room of the answers of runs
	now := time.Now().UTC()
	request, err := p.caller.Prepare(&in, executor.Task{ExecutionID: s.opt.NewID(), Attempt: 1, MaxAttempts: 1, FireTime: now, JobName: "trial"})
	if err != nil {
		return out, domain.Invalid("body.callback", "%v", err)
	}
	request.Header.Set(HeaderTrial, "true")
	in.Timeout = min(cmp.Or(in.Timeout, httpcall.DefaultTimeout), p.of.MaxTimeout, trialTimeout)
	out.Timeout = in.Timeout
	begun, broken, later := s.limits.enter(ctx, tenant, httpcall.Receiver(request.URL), p.of.PerHost)
	switch {
	case begun == nil && ctx.Err() != nil:
		return out, context.Cause(ctx)
	case broken:
		out.Message = fmt.Sprintf("the receiver has not answered the last calls, and is not called for %s (circuit breaker)", later.Round(time.Second))
		return out, nil
	case begun == nil:
		out.Message = "as many calls to this receiver are under way as the policy allows; try again later"
		return out, nil
	}
	result := unknown // a trial without an answer says nothing about the calls of runs
	defer func() { s.limits.leave(begun, result) }()
	began := time.Now()
	answer, err := p.caller.Do(ctx, request, &in, slog.New(slog.DiscardHandler))
	out.Took = time.Since(began)
	out.Status, out.Truncated = answer.Status, answer.Truncated
	out.Body = cmp.Or(answer.Body, string(answer.JSON))
	if out.OK = err == nil; !out.OK {
		out.Message = err.Error()
	}
	if answer.Status != 0 {
		result = answered
	}
	return out, nil
}
