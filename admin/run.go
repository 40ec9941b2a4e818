package admin

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// How long each step of stopping may take.
const (
	stopHandOver = 2 * time.Second
	stopFlush    = 10 * time.Second
)

// Run serves until ctx ends, and then stops in the order of a trigger's way: not
// ready, no new claims and offers, answers and results still taken, sessions
// closed, queues flushed, node off the list, database closed. Until the queues
// are flushed the port of UI and API answers probes and scrapes, and tells all
// others that the node stops. Run returns nil after a stop that was asked for.
func (a *Admin) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.Close()) }()
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	var notice sync.WaitGroup
	notice.Go(func() { a.awaitStop(ctx, work, stopWork) })
	defer notice.Wait()
	defer stopWork() // before the wait
	// Five generations: intake (what begins new work) ends first, then this node's own
	// calls, service (what finishes work under way), the queues, and the front last.
	intake, intakeCtx := errgroup.WithContext(work)
	serviceCtx, stopService := context.WithCancel(context.WithoutCancel(ctx))
	defer stopService()
	service, serviceCtx := errgroup.WithContext(serviceCtx)

	service.Go(func() error { a.clock.Run(serviceCtx); return nil })
	service.Go(func() error { a.guard.Run(serviceCtx); return nil })
	service.Go(func() error { return a.self.Run(serviceCtx, a.gateway.Reached) })
	service.Go(func() error { return a.gateway.Serve(serviceCtx, a.executorListener) })
	service.Go(func() error { a.denials.Run(serviceCtx); return nil })
	service.Go(func() error { a.follow.Run(serviceCtx); return nil })
	for _, parts := range a.addOns {
		if parts.Run != nil {
			service.Go(func() error { return parts.Run(serviceCtx) })
		}
	}
	if a.authority != nil {
		service.Go(func() error { a.authority.Run(serviceCtx); return nil })
	}
	queuesCtx, stopQueues := context.WithCancel(context.WithoutCancel(ctx))
	defer stopQueues()
	flushed := a.runQueues(queuesCtx)
	callbacksCtx, stopCallbacks := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCallbacks()
	var callbacks sync.WaitGroup
	if a.config.NoFire {
		a.log.Warn("this node starts nothing and tells nobody (--no-fire): it is for a copied database", "component", "admin")
	} else {
		callbacks.Go(func() { a.callbacks.Run(callbacksCtx) })
		intake.Go(func() error { return a.leases.Run(intakeCtx) })
		intake.Go(func() error { a.planner.Run(intakeCtx); return nil })
		if a.hot != nil {
			intake.Go(func() error { a.hot.Run(intakeCtx); return nil })
		}
		intake.Go(func() error { a.timer.Run(intakeCtx); return nil })
		intake.Go(func() error { return a.sweeper.Run(intakeCtx) })
		for _, parts := range a.addOns {
			if parts.Intake != nil {
				intake.Go(func() error { return parts.Intake(intakeCtx) })
			}
		}
	}
	intake.Go(func() error { return a.auth.Run(intakeCtx) })
	intake.Go(func() error { // a failure of what outlasts the intake ends it too
		select {
		case <-serviceCtx.Done():
			return errors.New("a part of the service ended")
		case <-a.front.Ended():
			return a.front.Err()
		case <-a.scrapes.Ended():
			return a.scrapes.Err()
		case <-intakeCtx.Done():
			return nil
		}
	})
	a.log.Info("admin node serves", "component", "admin", "url", a.URL(), "executors", a.ExecutorAddress(), "version", a.config.Version)

	<-intakeCtx.Done()
	a.draining.Store(true) // also when a part of the node failed
	a.closing.Store(true)
	a.front.Refuse()
	a.scrapes.Refuse()
	err = intake.Wait()
	stopCallbacks()
	callbacks.Wait() // what is under way ends, and is handed over
	a.gateway.Drain(0)
	handOver, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopHandOver)
	a.gateway.Settle(handOver)
	cancel()
	stopService()
	err = errors.Join(err, service.Wait())
	stopQueues()
	select {
	case <-flushed:
	case <-time.After(stopFlush):
		err = errors.Join(err, errors.New("queued results were not stored in time; executors send them again"))
	}
	err = errors.Join(err, a.front.Stop(), a.scrapes.Stop())
	a.log.Info("admin node has stopped", "component", "admin")
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// awaitStop turns the end of ctx into the end of work: at once, or after
// Config.DrainDelay, in which balancers see that the node is not ready.
func (a *Admin) awaitStop(ctx, work context.Context, stopWork context.CancelFunc) {
	select {
	case <-ctx.Done():
	case <-work.Done():
		return
	}
	a.draining.Store(true)
	if a.config.DrainDelay > 0 {
		a.log.Info("admin node is not ready any more and stops soon", "component", "admin", "drain_delay", a.config.DrainDelay)
		select {
		case <-time.After(a.config.DrainDelay):
		case <-work.Done():
		}
	}
	a.log.Info("admin node was told to stop: it hands its work over", "component", "admin")
	stopWork()
}

// runQueues runs dispatch and completer. They end after the gateway has, so
// that they store what its sessions handed over last.
func (a *Admin) runQueues(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { a.dispatcher.Run(ctx) })
	wg.Go(func() { a.completer.Run(ctx) })
	go func() { wg.Wait(); close(done) }()
	return done
}
