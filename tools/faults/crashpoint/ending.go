package crashpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// playRunning: a node dies while the handler runs, or when its result comes.
func playRunning(ctx context.Context, p *play) error {
	id, err := p.begin(ctx, input{Ms: 1500})
	if err != nil {
		return err
	}
	if _, err := p.started(ctx, id, 1); err != nil {
		return err
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	r, err := p.ends(ctx, id, done)
	if err != nil {
		return err
	}
	end, err := p.endOf(id)
	p.delayed(end, r.FinishedAt)
	return err
}

// playAlert: the owner is told of a failed run though the node dies that knew.
func playAlert(ctx context.Context, p *play) error {
	err := p.newJob(ctx, func(j *apiclient.JobWrite) {
		j.Retry, j.Alert = &apiclient.RetryWrite{MaxAttempts: 1}, p.alert()
	})
	if err != nil {
		return err
	}
	id, err := p.trigger(ctx, input{Ms: 1000, Fail: 9})
	if err != nil {
		return err
	}
	if _, err := p.started(ctx, id, 1); err != nil {
		return err
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	r, err := p.ends(ctx, id, want{state: "failed", attempt: 1, starts: 1})
	if err != nil {
		return err
	}
	at, err := p.toldOnce(ctx)
	p.delayed(r.FinishedAt, at)
	return err
}

func (p *play) alert() *apiclient.AlertWrite {
	p.stage.mu.Lock()
	clear(p.told)
	p.stage.mu.Unlock()
	return &apiclient.AlertWrite{OnFailure: true, WebhookURL: p.hook.URL, WebhookSecret: "whsec-0123456789abcdef"}
}

// toldOnce waits for a webhook; a second one with another key is an error.
func (p *play) toldOnce(ctx context.Context) (at time.Time, err error) {
	for {
		p.stage.mu.Lock()
		n := len(p.told)
		for _, t := range p.told {
			at = t
		}
		p.stage.mu.Unlock()
		switch {
		case n == 1:
			return at, nil
		case n > 1:
			return at, fmt.Errorf("the owner was told %d different things", n)
		}
		select {
		case <-ctx.Done():
			return at, fmt.Errorf("the owner was not told")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// playLost: the executor dies in the handler and never comes back.
func playLost(ctx context.Context, p *play) error {
	if err := p.newJob(ctx, func(j *apiclient.JobWrite) { j.Alert = p.alert() }); err != nil {
		return err
	}
	id, err := p.trigger(ctx, input{Ms: 50, First: 60_000})
	if err != nil {
		return err
	}
	if _, err := p.started(ctx, id, 1); err != nil {
		return err
	}
	p.current.Kill()
	killed := time.Now()
	if err := p.startWorker(ctx, true); err != nil {
		return err
	}
	select { // looks before that only find that the lease lasts
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(killed.Add(12 * time.Second))):
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	if p.mode != modeFail {
		if _, err := p.ends(ctx, id, want{state: "succeeded", attempt: 2, starts: 2}); err != nil {
			return err
		}
		at, err := p.started(ctx, id, 2)
		p.delayed(killed, at)
		return err
	}
	r, err := p.ends(ctx, id, want{state: "lost", attempt: 1, starts: 1})
	if err != nil {
		return err
	}
	p.delayed(killed, r.FinishedAt)
	_, err = p.toldOnce(ctx)
	return err
}

// playRetry: the first attempt fails, and the node dies when the second is due.
func playRetry(ctx context.Context, p *play) error {
	id, err := p.begin(ctx, input{Ms: 300, Fail: 1})
	if err != nil {
		return err
	}
	if _, err := p.started(ctx, id, 1); err != nil {
		return err
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	if _, err := p.ends(ctx, id, want{state: "succeeded", attempt: 2, starts: 2}); err != nil {
		return err
	}
	_, ends, err := p.seen(id)
	if err != nil || len(ends) == 0 {
		return fmt.Errorf("the first call of the handler has not ended: %w", err)
	}
	at, err := p.started(ctx, id, 2)
	p.delayed(ends[0].at().Add(100*time.Millisecond), at)
	return err
}

// playLate: the executor stands still until its lease is over, and then its
// handler, which does not listen, reports a success.
func playLate(ctx context.Context, p *play) error {
	id, err := p.begin(ctx, input{Ms: 50, First: 5000, Stubborn: true})
	if err != nil {
		return err
	}
	if _, err := p.started(ctx, id, 1); err != nil {
		return err
	}
	frozen := p.current
	if err := frozen.Freeze(); err != nil {
		return err
	}
	defer func() { _ = frozen.Thaw(); frozen.Kill() }()
	if err := p.startWorker(ctx, true); err != nil {
		return err
	}
	over, end := "lost", want{state: "succeeded", attempt: 1, starts: 1}
	if p.mode != modeFail {
		over, end = "succeeded", want{state: "succeeded", attempt: 2, starts: 2}
	}
	if _, err := p.reaches(ctx, id, over); err != nil {
		return err
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	thawed := time.Now()
	if err := frozen.Thaw(); err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	if _, err := p.reaches(ctx, id, "succeeded"); err != nil {
		return err
	}
	if p.mode != modeFail {
		if err := p.keptOnAttempt(ctx, id); err != nil {
			return err
		}
	}
	p.delayed(thawed, time.Now())
	_, err = p.ends(ctx, id, end)
	return err
}

// keptOnAttempt waits until the late result stands on the attempt it is of.
func (p *play) keptOnAttempt(ctx context.Context, id string) error {
	for {
		r, err := p.find(ctx, id)
		if err != nil {
			return err
		}
		if len(r.Attempts) == 2 && r.Attempts[0].State == "succeeded" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the late result is not on its attempt: %+v", r.Attempts)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// playCancel: somebody stops a run while a node dies.
func playCancel(ctx context.Context, p *play) error {
	id, err := p.begin(ctx, input{Ms: 60_000})
	if err != nil {
		return err
	}
	if _, err := p.started(ctx, id, 1); err != nil {
		return err
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	asked := time.Now()
	_, err = ask(ctx, p.stage, "cancel run "+id, func(ctx context.Context, api *lab.API) (apiclient.Doc[apiclient.Run], error) {
		d, err := api.CancelRun(ctx, id, apiclient.CancelRunInputBody{})
		if problem, ok := errors.AsType[*apiclient.Problem](err); ok && problem.Status == http.StatusConflict {
			err = nil // the cancel before, whose answer was lost, has ended it
		}
		return d, err
	})
	if err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	r, err := p.ends(ctx, id, want{state: "cancelled", attempt: 1, starts: 1})
	p.delayed(asked, r.FinishedAt)
	return err
}
