package crashpoint

import (
	"context"
	"time"
)

// workerScenarios are the points at which the executor dies. It is started
// again with its journal at once.
func workerScenarios() (out []scenario) {
	twoSteps, all := []mode{modeFail, modeRetry}, []mode{modeFail, modeRetry, modeIdempotent}
	again := want{state: "succeeded", attempt: 2, starts: 1}
	for _, c := range []struct {
		point       string
		modes       []mode
		fail, retry want
	}{
		// Nothing was promised, or the journal proves that nothing started.
		{"journal-accepted.before-write", twoSteps, done, done},
		{"journal-accepted.after-write", twoSteps, done, done},
		{"send-answers.before", twoSteps, done, done},
		{"send-answers.after", twoSteps, done, done},
		{"journal-granted.before-write", twoSteps, done, done},
		// From here on the journal cannot tell whether the handler was called.
		{"journal-granted.after-write", twoSteps, want{state: "lost", attempt: 1}, again},
		{"handler.before", all, want{state: "lost", attempt: 1}, again},
		{"send-started.after", all, want{state: "lost", attempt: 1, orStart: true}, want{state: "succeeded", attempt: 2, starts: 1, orStart: true}},
		{"handler.after", all, want{state: "lost", attempt: 1, starts: 1}, want{state: "succeeded", attempt: 2, starts: 2}},
		{"journal-done.before-write", all, want{state: "lost", attempt: 1, starts: 1}, want{state: "succeeded", attempt: 2, starts: 2}},
		// The result survives its process.
		{"journal-done.after-fsync", all, done, done},
		{"send-results.before", all, done, done},
		{"send-results.after", all, done, done},
	} {
		for _, m := range c.modes {
			w := c.retry
			if m == modeFail {
				w = c.fail
			}
			out = append(out, scenario{"executor", c.point, m, offerOver, false, playWorker(w)})
		}
	}
	for _, m := range all {
		out = append(out, scenario{"executor", "journal-settled.before-write", m, offerOver, false, playSettled})
	}
	return out
}

// playSettled: the result is acknowledged, and the executor dies before its
// journal knows. Its next process sends the result once more.
func playSettled(ctx context.Context, p *play) error {
	id, err := p.begin(ctx, input{Ms: 100})
	if err != nil {
		return err
	}
	if _, err := p.reaches(ctx, id, "succeeded"); err != nil {
		return err
	}
	if err := p.arm("worker", p.point+"=exit"); err != nil {
		return err
	}
	if err := p.workerFalls(ctx); err != nil {
		return err
	}
	if err := p.startWorker(ctx, false); err != nil {
		return err
	}
	_, err = p.ends(ctx, id, done)
	return err
}

func playWorker(w want) func(context.Context, *play) error {
	return func(ctx context.Context, p *play) error {
		if err := p.newJob(ctx, nil); err != nil {
			return err
		}
		if err := p.arm("worker", p.point+"=exit"); err != nil {
			return err
		}
		id, err := p.trigger(ctx, input{Ms: 100})
		if err != nil {
			return err
		}
		if err := p.workerFalls(ctx); err != nil {
			return err
		}
		if err := p.startWorker(ctx, false); err != nil {
			return err
		}
		back := time.Now()
		r, err := p.ends(ctx, id, w)
		if err != nil {
			return err
		}
		p.delayed(back, r.FinishedAt)
		return nil
	}
}
