package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// How long each step of stopping may take.
const (
	stopRequests = 5 * time.Second
	stopHandOver = 2 * time.Second
	stopFlush    = 10 * time.Second
)

// Run serves until ctx ends, and then stops in the order of a trigger's way:
// no new requests, no new claims and offers, answers and results still taken,
// sessions closed, node off the list, database closed. It returns nil after a
// stop that was asked for.
func (a *Admin) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.Close()) }()
	// Three generations: intake (what begins new work) ends with ctx, service
	// (what finishes work under way) after it, the queues last.
	intake, intakeCtx := errgroup.WithContext(ctx)
	serviceCtx, stopService := context.WithCancel(context.WithoutCancel(ctx))
	defer stopService()
	service, serviceCtx := errgroup.WithContext(serviceCtx)

	service.Go(func() error { a.clock.Run(serviceCtx); return nil })
	service.Go(func() error { a.watchHolds(serviceCtx); return nil })
	service.Go(func() error { return a.members.run(serviceCtx, a.gateway.Reached) })
	service.Go(func() error { return a.gateway.Serve(serviceCtx, a.executorListener) })
	service.Go(func() error { a.denials.Run(serviceCtx); return nil })
	if a.authority != nil {
		service.Go(func() error { a.authority.Run(serviceCtx); return nil })
	}
	queuesCtx, stopQueues := context.WithCancel(context.WithoutCancel(ctx))
	defer stopQueues()
	flushed := a.runQueues(queuesCtx)
	intake.Go(func() error { return a.leases.Run(intakeCtx) })
	intake.Go(func() error { a.planner.Run(intakeCtx); return nil })
	intake.Go(func() error { a.timer.Run(intakeCtx); return nil })
	intake.Go(func() error { return a.sweeper.Run(intakeCtx) })
	intake.Go(func() error { return a.alerting.Run(intakeCtx) })
	intake.Go(func() error { return a.auth.Run(intakeCtx) })
	intake.Go(func() error { return a.serveHTTP(intakeCtx) })
	intake.Go(func() error { // a failure of the service ends the intake too
		select {
		case <-serviceCtx.Done():
			return errors.New("a part of the service ended")
		case <-intakeCtx.Done():
			return nil
		}
	})
	a.log.Info("admin node serves", "component", "admin", "url", a.URL(), "executors", a.ExecutorAddress(), "version", a.config.Version)

	err = intake.Wait()
	a.log.Info("admin node stops", "component", "admin")
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
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
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

func (a *Admin) serveHTTP(ctx context.Context) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopRequests)
		defer cancel()
		if a.http.Shutdown(bounded) != nil {
			_ = a.http.Close() // long polls and the like
		}
	})
	defer stop()
	err := a.http.Serve(a.httpListener)
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve UI and API: %w", err)
	}
	<-stopped
	return nil
}
