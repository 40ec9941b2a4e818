package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// flushTimeout bounds how long a stop waits for admin nodes to take over
// results and logs. What is left then stays in the journal's folder.
const flushTimeout = 5 * time.Second

// Run connects to the admin nodes and runs handlers until ctx ends. Then it
// drains: it takes nothing new, lets running handlers finish for DrainTimeout,
// cancels the rest with ErrStopping (what that costs is told there), waits
// KillGrace for them, hands results and logs over, and returns nil. It waits for nothing longer than that.
// End the process then. A handler that still runs ends with it, and its run is
// lost, as after a crash: it is repeated where that is allowed.
//
// Values of ctx reach the handlers; its end and its deadline do not.
//
// Run returns an error at once when it cannot work at all: no handlers, a
// callback that is no registered handler, a journal that cannot be opened, or a
// second call. With Config.Strict it also ends, in the same good order as above,
// with a *RefusedError when the admin does not take all that the code declares.
// Admin nodes that cannot be reached are no reason: they are tried until ctx ends.
func (ex *Executor) Run(ctx context.Context) error {
	p, err := ex.begin(ctx)
	if err != nil {
		return fmt.Errorf("executor: %w", err)
	}
	return p.run(ctx)
}

func (ex *Executor) begin(ctx context.Context) (*process, error) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.process != nil {
		return nil, errors.New("Run was called before")
	}
	if len(ex.handlers) == 0 {
		return nil, errors.New("no handlers are registered")
	}
	if err := checkCallbacks(ex.order, ex.handlers); err != nil {
		return nil, err
	}
	p, err := ex.newProcess(context.WithoutCancel(ctx))
	ex.process = p
	return p, err
}

// run starts the rooms' loops, waits, and stops them in the order of the path.
func (p *process) run(ctx context.Context) error {
	start := func(run func(context.Context)) (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		var wait sync.WaitGroup
		wait.Go(func() { run(ctx) })
		return func() { cancel(); wait.Wait() }
	}
	var journalErr error
	// The journal ends last: the others write to it until their end.
	stopJournal := start(func(ctx context.Context) { journalErr = p.journal.Run(ctx) })
	stopRunner := start(p.runner.Run)
	stopLogs := start(p.logs.Run)
	stopReporter := start(p.reporter.Run)
	stopFleet := start(p.fleet.Run)

	select {
	case <-ctx.Done():
	case <-p.giveUp:
	}
	p.fleet.Leave(p.drain())
	stopReporter()
	stopFleet()
	stopLogs()
	stopRunner()
	stopJournal()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fatal != nil {
		return errors.Join(fmt.Errorf("executor: %w", p.fatal), journalErr)
	}
	return journalErr
}

// drain finishes what runs and hands over what is owed. clean: nothing is left
// of either.
func (p *process) drain() (clean bool) {
	grace := max(p.config.DrainTimeout, 0)
	p.logger.Info("stopping: no new runs are taken", "drain_timeout", grace)
	quiet := p.runner.Drain()
	p.fleet.Drain("the application stops", grace)
	if !within(grace, quiet) {
		p.runner.Stop()
		// The runner gives up after KillGrace; the second is for its ticks.
		within(p.killGrace()+time.Second, quiet)
	}
	flush, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	var wait sync.WaitGroup
	wait.Go(func() {
		select {
		case <-p.runner.Settled():
		case <-flush.Done():
		}
	})
	wait.Go(func() {
		if err := p.logs.Flush(flush); err != nil {
			p.logger.Warn("log lines are left; the next process with this journal folder ships them", "err", err)
		}
	})
	wait.Wait()
	if running, owed := p.runner.Left(); running > 0 || owed > 0 {
		p.logger.Warn("stopped with work left: results stay in the journal; handlers that ignore their context go on, and their runs are lost when the process ends",
			"results", owed, "handlers", running)
		if running > 0 {
			p.journal.Hold()
		}
		return false
	}
	p.logger.Info("stopped: everything is handed over")
	return true
}

// within waits for done, for at most d, and tells whether it came.
func within(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
