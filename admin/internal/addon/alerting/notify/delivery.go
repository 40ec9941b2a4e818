package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

const (
	// recordTimeout bounds one attempt to write down what became of a telling.
	recordTimeout = 5 * time.Second
	recordTries   = 3
)

// What became of a claimed delivery, as a metric's label.
const (
	resultDelivered = "delivered"
	resultRetry     = "retry"
	resultFailed    = "failed"
	resultPutOff    = "put_off"
)

var errStopped = errors.New("the node stopped before the receiver answered")

func errNotConfigured(channel string) error {
	switch channel {
	case ChannelEmail:
		return errors.New("mail is not configured on this server (mail-host)")
	default:
		return fmt.Errorf("this server has no channel %q", channel)
	}
}

// errClosed stands for the telling that did not take place.
func errClosed(l *lane) error {
	return Unreachable(fmt.Errorf("not tried: the last %d tellings to the same receiver went unanswered (%s)", l.misses, l.lastError))
}

// send tells one notice and records what became of it. It runs in a goroutine
// of its own.
func (s *Service) send(ctx context.Context, j job) {
	s.nameInstance(ctx, j.notice)
	if j.sender.Channel() == ChannelEmail {
		s.lastLines(ctx, j.notice)
	}
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, j.sender.Timeout())
	err := panics.Catch(func() error { return j.sender.Send(bounded, j.notice) })
	cancel()
	took := time.Since(began)
	s.metrics.duration.WithLabelValues(j.sender.Channel()).Observe(took.Seconds())
	if err != nil && ctx.Err() != nil {
		err = errStopped                     // says nothing about the receiver
		_ = s.putOff(ctx, j, 0, err.Error()) // logged; its claim runs out
	} else {
		_ = s.record(ctx, j, err) // as above
	}
	s.ended <- ending{j, took, err}
}

// nameInstance fills in the name of the run's instance; its id does when the
// name cannot be found.
func (s *Service) nameInstance(ctx context.Context, n *Notice) {
	if n.Execution == nil || n.Execution.Instance == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, instanceLookup)
	defer cancel()
	instance, err := s.opt.Store.FindInstance(ctx, n.Event.TenantID, n.Execution.Instance)
	if err != nil || instance.Name == "" {
		n.Instance = "#" + n.Execution.Instance.String()
		return
	}
	n.Instance = instance.Name
}

// logLines is how many of the last lines of a run's log a mail has.
const logLines = 20

// lastLines reads the end of the log of a run that ended badly. A mail without it is
// better than no mail.
func (s *Service) lastLines(ctx context.Context, n *Notice) {
	switch {
	case n.Execution == nil || n.Over():
		return
	case n.Event.Kind != domain.AlertRunFailed && n.Event.Kind != domain.AlertRunTimedOut && n.Event.Kind != domain.AlertRunLost:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, instanceLookup)
	defer cancel()
	attempt, end, err := s.opt.Store.LogEnd(ctx, n.Event.TenantID, n.Event.ExecutionID)
	if err == nil && end > 0 {
		var page store.LogPage
		page, err = s.opt.Store.ReadLog(ctx, store.ReadLogParams{
			Tenant: n.Event.TenantID, Execution: n.Event.ExecutionID, Attempt: attempt, Before: end + 1, Limit: logLines,
		})
		slices.SortFunc(page.Lines, func(a, b domain.LogLine) int { return cmp.Compare(a.Number, b.Number) })
		for _, l := range page.Lines {
			n.Log = append(n.Log, l.At.In(n.Zone()).Format("15:04:05.000 ")+slog.Level(l.Level).String()+" "+Line(l.Message, maxFact))
		}
	}
	if err != nil {
		s.log.Warn("a mail goes without the last lines of the log", "execution_id", n.Event.ExecutionID, "err", err)
	}
}

// record writes what became of a telling: delivered, to be told again, or
// given up. Its error is the database's.
func (s *Service) record(ctx context.Context, j job, err error) error {
	d := j.due.Delivery
	if err == nil {
		return s.finish(ctx, j, resultDelivered, noun.DeliveryDelivered, 0, "")
	}
	failure := sendErrorOf(err)
	wait, again := retryWait(d.Attempts, time.Since(d.CreatedAt), failure.RetryAfter, rand.Float64())
	if again && !failure.Permanent {
		s.log.Debug("alert will be told again", "delivery_id", d.ID, "channel", d.Channel, "tries", d.Attempts, "wait", wait, "err", err)
		return s.finish(ctx, j, resultRetry, noun.DeliveryPending, wait, err.Error())
	}
	s.log.Warn("alert could not be delivered and is given up", "delivery_id", d.ID, "channel", d.Channel,
		"tenant_id", d.TenantID.String(), "job_id", j.notice.Event.JobID.String(), "tries", d.Attempts, "err", err)
	return s.finish(ctx, j, resultFailed, noun.DeliveryFailed, 0, err.Error())
}

// putOff returns a delivery that was not tried.
func (s *Service) putOff(ctx context.Context, j job, wait time.Duration, why string) error {
	return s.finish(ctx, j, resultPutOff, noun.DeliveryPending, wait, why)
}

// finish writes to the delivery log, also while the node stops. What cannot
// be written is told again when the claim has run out: at least once.
func (s *Service) finish(ctx context.Context, j job, result string, state noun.DeliveryState, wait time.Duration, lastError string) error {
	s.metrics.results.WithLabelValues(j.due.Delivery.Channel, result).Inc()
	ctx = context.WithoutCancel(ctx)
	var err error
	for try := range recordTries {
		if try > 0 && state != noun.DeliveryDelivered {
			break // only a repeated telling is worth the insistence
		}
		bounded, cancel := context.WithTimeout(ctx, recordTimeout)
		err = s.opt.Store.FinishDelivery(bounded, j.due.Delivery.ID, state, wait, lastError)
		cancel()
		if err == nil {
			return nil
		}
	}
	s.log.Warn("what became of an alert could not be written; it will be told again", "delivery_id", j.due.Delivery.ID, "result", result, "err", err)
	return err
}
