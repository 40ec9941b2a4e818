package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

var (
	errChannelGone     = errors.New("the alert channel has been deleted")
	errChannelDisabled = errors.New("the alert channel is disabled")
)

// open makes a channel's secrets readable. nil is one that is gone.
func (s *Service) open(c *noun.AlertChannel) (*Channel, error) {
	switch {
	case c == nil:
		return nil, Permanent(errChannelGone)
	case !c.Spec.Enabled:
		return nil, Permanent(errChannelDisabled)
	}
	return s.unseal(c)
}

func (s *Service) unseal(c *noun.AlertChannel) (*Channel, error) {
	out := &Channel{ID: c.ID, AlertChannelSpec: c.Spec}
	if len(c.Secrets) == 0 {
		return out, nil
	}
	// Temporary: a node with the right key can still deliver it.
	plain, err := s.opt.Opener.Open(c.TenantID, secret.PurposeAlertChannel, int64(c.ID), c.Secrets)
	if err != nil {
		return nil, fmt.Errorf("open the channel's secrets: %w", err)
	}
	if err := json.Unmarshal(plain, &out.Secrets); err != nil {
		return nil, fmt.Errorf("read the channel's secrets: %w", err)
	}
	return out, nil
}

// TryChannel sends a test message through a channel, also one that is disabled, at
// once and only once. It counts for the channel's limit like any message, and is refused
// while deliveries wait for the channel. A product that would keep it open is told that
// it is over.
func (s *Service) TryChannel(ctx context.Context, tenant domain.Tenant, c noun.AlertChannel) noun.ChannelTrial {
	fail := func(err error) noun.ChannelTrial {
		e := sendErrorOf(err)
		return noun.ChannelTrial{Permanent: e.Permanent, Message: err.Error()}
	}
	opened, err := s.unseal(&c)
	if err != nil {
		return fail(err)
	}
	sender := s.senders[string(c.Spec.Kind)]
	if sender == nil {
		return fail(Permanent(errNotConfigured(string(c.Spec.Kind))))
	}
	deliveries := c.Deliveries(0)
	if err := s.mayTry(&c, len(deliveries)); err != nil {
		return fail(err)
	}
	errs := make([]error, len(deliveries))
	notices := make([]*Notice, len(deliveries))
	var work sync.WaitGroup
	for i, d := range deliveries {
		n := s.test(tenant, opened, d)
		notices[i] = n
		work.Go(func() { // ends with ctx, or in the sender's timeout
			errs[i] = sendOnce(ctx, sender, n)
			if errs[i] == nil && keepsOpen(d.Channel) {
				over := *n
				over.Phase = PhaseResolve
				if err := sendOnce(ctx, sender, &over); err != nil {
					errs[i] = fmt.Errorf("the test message came, but could not be closed: %w", err)
				}
			}
			if errs[i] != nil && len(deliveries) > 1 {
				errs[i] = fmt.Errorf("%s: %w", d.Target, errs[i])
			}
		})
	}
	work.Wait()
	trial := noun.ChannelTrial{Delivered: true}
	if err := errors.Join(errs...); err != nil {
		trial = fail(err)
		s.paces.pause(int64(c.ID), time.Now(), min(sendErrorOf(err).RetryAfter, maxRetryAfter))
	}
	trial.Rendered, _ = sender.Render(notices[0]) // its error is that of Send
	return trial
}

// mayTry counts a test of so many messages for the channel and, of mails, for the tenant.
// A refused test counts for neither.
func (s *Service) mayTry(c *noun.AlertChannel, messages int) error {
	nodes, now := len(s.opt.Living()), time.Now()
	most, isMail := mailLimit(s.opt.MailsPerHour, nodes), c.Spec.Kind == noun.ChannelEmail
	if isMail {
		if wait := s.mails.free(int64(c.TenantID), most, nodes, messages, now); wait > 0 {
			return fmt.Errorf("the tenant's mails of this hour are used up (--mail-per-hour); try again in %s", wait.Round(time.Second))
		}
	}
	if wait := s.paces.try(int64(c.ID), limits[c.Spec.Kind], nodes, 1, now); wait > 0 {
		return fmt.Errorf("the channel takes no more messages now; try again in %s", wait.Round(time.Second))
	}
	if isMail && s.mails.try(int64(c.TenantID), most, nodes, messages, now) > 0 {
		return errors.New("the tenant's mails of this hour have just been used up (--mail-per-hour); try again later")
	}
	return nil
}

// sendOnce sends within the sender's timeout.
func sendOnce(ctx context.Context, sender Sender, n *Notice) error {
	bounded, cancel := context.WithTimeout(ctx, sender.Timeout())
	defer cancel()
	return panics.Catch(func() error { return sender.Send(bounded, n) })
}

func (s *Service) test(tenant domain.Tenant, c *Channel, d noun.Delivery) *Notice {
	n := Sample(domain.AlertTest)
	now := time.Now()
	n.Event.TenantID, n.Event.CreatedAt, n.Tenant, n.Executor = tenant.ID, now, tenant, domain.Executor{}
	n.Event.DedupeKey = "test:" + c.ID.String() + ":" + now.UTC().Format(time.RFC3339Nano)
	n.DedupeKey, n.Group, n.Target, n.Channel = dedupeKey(n.Event, d), groupKey(n.Event), d.Target, c
	return n
}

// PreviewChannel shows what a channel would send of an event; nil: of a sample of
// the kind. Its secrets are not needed.
func (s *Service) PreviewChannel(spec noun.AlertChannelSpec, kind domain.AlertKind, of *AlertContext) (noun.RenderedAlert, error) {
	sender := s.senders[string(spec.Kind)]
	if sender == nil {
		return noun.RenderedAlert{}, errNotConfigured(string(spec.Kind))
	}
	n := Sample(kind)
	if of != nil {
		n = newNotice(DueDelivery{Context: *of, Delivery: noun.Delivery{Channel: string(spec.Kind), Target: spec.Name, Attempts: 1}}, &s.opt)
	}
	n.Channel = &Channel{AlertChannelSpec: spec}
	if spec.Kind == noun.ChannelEmail && len(spec.Emails) > 0 {
		n.Target = spec.Emails[0]
	}
	return sender.Render(n)
}

// Mails reports whether there is a mail server.
func (s *Service) Mails() bool { return s.opt.Addresses != nil }

// Check refuses a channel that this server cannot send to.
func (s *Service) Check(spec *noun.AlertChannelSpec) error {
	for i, address := range spec.Emails {
		if s.opt.Addresses == nil {
			break
		}
		if err := s.opt.Addresses.Check(address); err != nil {
			return domain.Invalid(fmt.Sprintf("body.spec.emails[%d]", i), "%v", err)
		}
	}
	return CheckTemplates(spec)
}
