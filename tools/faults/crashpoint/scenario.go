package crashpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// done is the end of a run that nobody notices anything of.
var done = want{state: "succeeded", attempt: 1, starts: 1}

// Goals of table 2.4, for the time until the run goes on.
const (
	soon      = time.Second     // any node, at its next look
	reconnect = 3 * time.Second // an executor finds a node again
	offerOver = 4 * time.Second // an offer's time is over, and the next look
	void      = 6 * time.Second // an acceptance is void, and the next look
	held      = 7 * time.Second // an offer's time, and that for which a swept run is left to its node
	leaseOver = 18 * time.Second
)

// scenarios lists all cells of a database.
func scenarios(database string) []scenario {
	var out []scenario
	add := func(arrow string, goal time.Duration, slow bool, modes []mode, play func(context.Context, *play) error, points ...string) {
		for _, point := range points {
			for _, m := range modes {
				out = append(out, scenario{arrow, point, m, goal, slow, play})
			}
		}
	}
	commit := func(step string, more ...string) []string {
		return append([]string{step + ".before-commit", step + ".after-commit"}, more...)
	}
	all, twoSteps, one := []mode{modeFail, modeRetry, modeIdempotent}, []mode{modeFail, modeRetry}, []mode{modeFail}
	verdicts := "send-registered.after"
	if database != sqlite {
		verdicts = "send-verdicts.after" // the other node is asked
	}
	add("1 plan", soon, false, all, playPlanned, commit("claim-due-triggers")...)
	add("1 asked for", soon, false, all, playOffer, commit("create-execution")...)
	add("2 missed", 0, false, one, playMissed, commit("claim-due-triggers")...)
	add("2 discarded", 0, false, one, playDiscarded, commit("offer-executions")...)
	add("3 offer", offerOver, false, all, playOffer, commit("offer-executions", "send-offers.before", "send-offers.after")...)
	add("4 grant", void, false, twoSteps, playOffer, commit("grant-offers", "send-grants.before", "send-grants.after")...)
	add("4 grant, executor back", void, false, twoSteps, playGrantAndWorker(false), "grant-offers.after-commit")
	add("4 grant, executor gone", leaseOver, true, twoSteps, playGrantAndWorker(true), "grant-offers.after-commit")
	add("4 inventory", void, false, twoSteps, playInventory, commit("settle-inventory", verdicts)...)
	add("5 offer expired", held, false, twoSteps, playExpired, commit("sweep-executions")...)
	add("5 session lost", offerOver, false, twoSteps, playSessionLost, commit("give-back-offers")...)
	add("5 never started", void, false, twoSteps, playNeverStarted, commit("finish-attempts")...)
	add("6 renew", reconnect, false, all, playRunning, commit("renew-instances", "send-heartbeat-ack.after")...)
	add("7 result", reconnect, false, all, playRunning, commit("finish-attempts", "send-acks.after")...)
	add("7 alert", 2*time.Second, false, one, playAlert, "finish-attempts.after-commit", "expand-alert-events.before-commit", "expand-alert-events.after-commit")
	add("8 lost", leaseOver+2*soon, true, all, playLost, commit("sweep-executions")...)
	add("9 retry", offerOver, false, all, playRetry, commit("offer-executions")...)
	add("10 late result", reconnect, true, all, playLate, commit("finish-attempts", "send-acks.after")...)
	add("3 shards", offerOver, false, all, playSpread, commit("spread-executions")...)
	add("7 last shard", reconnect, false, all, playLastShard, commit("finish-attempts", "send-acks.after")...)
	add("11 cancel", reconnect, false, all, playCancel, commit("cancel-execution", "send-cancels.after")...)
	return append(out, workerScenarios()...)
}

// playPlanned: a schedule's own fire.
func playPlanned(ctx context.Context, p *play) error {
	if err := p.dieAt(); err != nil {
		return err
	}
	at := time.Now().Add(3500 * time.Millisecond).UTC().Truncate(time.Millisecond)
	p.cell.Targets++
	err := p.newJob(ctx, func(j *apiclient.JobWrite) {
		j.Schedule.Kind, j.Schedule.At, j.Input = "once", at.Format(time.RFC3339Nano), lab.JSON(input{Ms: 50})
	})
	if err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	id, err := p.onlyRun(ctx)
	if err != nil {
		return err
	}
	return p.startsOnce(ctx, id, at)
}

// onlyRun waits for the job's run; more than one is an error.
func (p *play) onlyRun(ctx context.Context) (string, error) {
	for {
		runs, err := p.runsOf(ctx, p.job)
		if err != nil {
			return "", err
		}
		switch len(runs) {
		case 0:
		case 1:
			return runs[0].ID, nil
		default:
			return "", fmt.Errorf("%d rows for one occurrence", len(runs))
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no row for the occurrence")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// startsOnce is the end of most cells: one start, late by the delay.
func (p *play) startsOnce(ctx context.Context, id string, from time.Time) error {
	if _, err := p.ends(ctx, id, done); err != nil {
		return err
	}
	at, err := p.started(ctx, id, 1)
	p.delayed(from, at)
	return err
}

// playOffer: the node dies on the way from the row to the handler.
func playOffer(ctx context.Context, p *play) error {
	if err := p.newJob(ctx, nil); err != nil {
		return err
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	id, err := p.trigger(ctx, input{Ms: 50})
	if err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	if _, err := p.onlyRun(ctx); err != nil {
		return err
	}
	r, err := p.find(ctx, id)
	if err != nil {
		return err
	}
	return p.startsOnce(ctx, id, r.FireAt)
}

// playMissed: nobody was there to plan; the first node that comes dies, too.
func playMissed(ctx context.Context, p *play) error {
	const fires = 8
	from := time.Now().Add(2 * time.Second).Truncate(time.Second)
	err := p.newJob(ctx, func(j *apiclient.JobWrite) {
		j.Schedule = apiclient.ScheduleWrite{
			Kind: "cron", Expr: "* * * * * *", Dialect: "seconds", Zone: "UTC",
			StartAt: from.UTC().Format(time.RFC3339Nano), EndAt: from.Add((fires - 1) * time.Second).UTC().Format(time.RFC3339Nano),
		}
		j.Misfire, j.Input = &apiclient.MisfireWrite{Policy: "skip", Threshold: "1s"}, lab.JSON(input{Ms: 10})
	})
	if err != nil {
		return err
	}
	p.cell.Targets += fires
	p.setDead(true)
	for _, a := range p.fleet.Admins {
		a.Process().Kill()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(from.Add(4 * time.Second))):
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	killed := len(p.fleet.Admins)
	p.setDead(false)
	if _, err := p.fall(ctx, killed+1); err != nil {
		return err
	}
	var runs []run
	for {
		if runs, err = p.runsOf(ctx, p.job); err != nil {
			return err
		}
		over := 0
		for _, r := range runs {
			if terminal(r.State) {
				over++
			}
		}
		if over == fires && len(runs) == fires {
			break
		}
		select {
		case <-ctx.Done():
			p.cell.Missed += fires - over
			return fmt.Errorf("%d of %d fire times have ended, %d rows", over, fires, len(runs))
		case <-time.After(100 * time.Millisecond):
		}
	}
	return p.accounted(runs)
}

// accounted compares rows of fire times with what handlers wrote down.
func (p *play) accounted(runs []run) error {
	seen, missed := map[time.Time]bool{}, 0
	for _, r := range runs {
		starts, _, err := p.seen(r.ID)
		if err != nil {
			return err
		}
		switch {
		case seen[r.FireAt]:
			return fmt.Errorf("two rows for %s", r.FireAt)
		case r.State == "missed" && len(starts) == 0:
			missed++
		case r.State == "succeeded" && len(starts) == 1:
		default:
			return fmt.Errorf("%s: %s with %d starts", r.FireAt, r.State, len(starts))
		}
		seen[r.FireAt] = true
	}
	p.cell.Outcome = fmt.Sprintf("%d missed with a row, %d succeeded", missed, len(runs)-missed)
	if missed == 0 {
		return fmt.Errorf("no fire time was missed: nothing was shown")
	}
	return nil
}

func (p *play) setDead(dead bool) {
	p.mu.Lock()
	p.dead = dead
	p.mu.Unlock()
}

// playDiscarded: a run that is dropped because the one before has not ended.
func playDiscarded(ctx context.Context, p *play) error {
	if err := p.newJob(ctx, func(j *apiclient.JobWrite) { j.Blocking = "discard_later" }); err != nil {
		return err
	}
	first, err := p.trigger(ctx, input{Ms: 8000})
	if err != nil {
		return err
	}
	if _, err := p.started(ctx, first, 1); err != nil {
		return err
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	second, err := p.trigger(ctx, input{Ms: 50})
	if err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	if _, err := p.ends(ctx, second, want{state: "discarded"}); err != nil {
		return err
	}
	_, err = p.ends(ctx, first, done)
	return err
}

// playGrantAndWorker: both sides of a grant die before it is sent. A process
// that comes back to the same journal proves that nothing started; without it
// nobody can tell. (Unless the end of its session is handled before the grant
// commits: then the offer has been given back, and the run is as good as new.)
func playGrantAndWorker(gone bool) func(context.Context, *play) error {
	return func(ctx context.Context, p *play) error {
		if err := p.newJob(ctx, nil); err != nil {
			return err
		}
		if err := p.arm("worker", "send-answers.after=exit"); err != nil {
			return err
		}
		if err := p.dieAt(); err != nil {
			return err
		}
		id, err := p.trigger(ctx, input{Ms: 50})
		if err != nil {
			return err
		}
		at, err := p.fall(ctx, 1)
		if err != nil {
			return err
		}
		if err := p.workerFalls(ctx); err != nil {
			return err
		}
		if !gone {
			if err := p.startWorker(ctx, false); err != nil {
				return err
			}
			return p.startsOnce(ctx, id, at)
		}
		if err := p.startWorker(ctx, true); err != nil {
			return err
		}
		if p.mode == modeFail {
			r, err := p.ends(ctx, id, want{state: "lost", attempt: 1}, done)
			p.delayed(at, r.FinishedAt)
			return err
		}
		if _, err := p.ends(ctx, id, want{state: "succeeded", attempt: 2, starts: 1}, done); err != nil {
			return err
		}
		start, err := p.started(ctx, id, 1)
		p.delayed(at, start)
		return err
	}
}

// playInventory: a grant was lost with its node, and the node that grants it
// anew dies as well.
func playInventory(ctx context.Context, p *play) error {
	if err := p.newJob(ctx, nil); err != nil {
		return err
	}
	if err := p.first("grant-offers.after-commit=exit"); err != nil {
		return err
	}
	id, err := p.trigger(ctx, input{Ms: 50})
	if err != nil {
		return err
	}
	if _, err := p.fall(ctx, 2); err != nil {
		return err
	}
	r, err := p.find(ctx, id)
	if err != nil {
		return err
	}
	return p.startsOnce(ctx, id, r.FireAt)
}

// playExpired: the executor's disk is too slow to accept in time.
func playExpired(ctx context.Context, p *play) error {
	if err := p.newJob(ctx, nil); err != nil {
		return err
	}
	if err := p.arm("worker", "journal-accepted.after-write=pause(3500ms)"); err != nil {
		return err
	}
	id, err := p.trigger(ctx, input{Ms: 50})
	if err != nil {
		return err
	}
	r, err := p.reaches(ctx, id, "offered")
	if err != nil {
		return err
	}
	select { // earlier looks only find that the offer is open
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(r.FireAt.Add(2500 * time.Millisecond))):
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	return p.startsOnce(ctx, id, r.FireAt)
}

// playSessionLost: the executor dies with an offer that it has not answered.
func playSessionLost(ctx context.Context, p *play) error {
	if err := p.newJob(ctx, nil); err != nil {
		return err
	}
	if err := p.arm("worker", "journal-accepted.after-write=pause(1m)"); err != nil {
		return err
	}
	id, err := p.trigger(ctx, input{Ms: 50})
	if err != nil {
		return err
	}
	err = lab.Until(ctx, 20*time.Second, "the worker has the offer", func(context.Context) error {
		if !p.acted("worker") {
			return errors.New("it has not")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := p.dieAt(); err != nil {
		return err
	}
	p.current.Kill()
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	if err := p.startWorker(ctx, true); err != nil {
		return err
	}
	return p.startsOnce(ctx, id, time.Now())
}

// playNeverStarted: the node stands still between the commit of a grant and
// its sending; the executor gives the attempt back, and then the node dies.
func playNeverStarted(ctx context.Context, p *play) error {
	if err := p.newJob(ctx, nil); err != nil {
		return err
	}
	if err := p.first("grant-offers.after-commit=pause(20s)"); err != nil {
		return err
	}
	id, err := p.trigger(ctx, input{Ms: 50})
	if err != nil {
		return err
	}
	if _, err := p.fall(ctx, 1); err != nil {
		return err
	}
	r, err := p.find(ctx, id)
	if err != nil {
		return err
	}
	return p.startsOnce(ctx, id, r.FireAt)
}
