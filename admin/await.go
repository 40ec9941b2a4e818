package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// databaseLook is how long a node that starts waits between two looks for its
// database.
const databaseLook = time.Second

// awaitDatabase opens what needs the database, as soon as there is one that
// answers. An outage that begins meanwhile starts it over. What no waiting
// changes (a wrong password, an unknown database, a database that is refused)
// is an error at once.
func (a *Admin) awaitDatabase(ctx context.Context) error {
	log := a.log.With("component", "database")
	defer a.refuseExecutors()()
	began, told := time.Now(), ""
	for {
		err := a.open(ctx)
		if err == nil {
			if told != "" {
				log.Info("the database answers, and the node starts", "waited", time.Since(began).Round(time.Millisecond))
			}
			return nil
		}
		err = errors.Join(err, a.discard())
		reason := gormstore.Unreachable(err)
		if reason == "" || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if wait := a.config.DatabaseWait; wait < 0 || wait > 0 && time.Since(began)+databaseLook > wait {
			return fmt.Errorf("the database could not be used within %s: %s: %w", time.Since(began).Round(time.Millisecond), reason, err)
		}
		if reason != told {
			told = reason
			a.front.Starts("it waits for its database: " + reason)
			log.Warn("the node waits for its database", "reason", reason, "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(databaseLook):
		}
	}
}

// refuseExecutors ends connections of executors at once, so that they try the
// next node, until what it returns is called.
func (a *Admin) refuseExecutors() (stop func()) {
	listener, ok := a.executorListener.(*net.TCPListener)
	if !ok {
		return func() {}
	}
	var wg sync.WaitGroup
	wg.Go(func() { // ends with stop
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // nothing was said on it
		}
	})
	return func() {
		_ = listener.SetDeadline(time.Now()) // fails on a closed listener only
		wg.Wait()
		_ = listener.SetDeadline(time.Time{})
	}
}
