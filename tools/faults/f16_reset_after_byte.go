package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// sweep hands out byte offsets: the connection that gets one is reset after
// exactly so many bytes, in one direction and then in the other.
type sweep struct {
	limit, step int64
	next        atomic.Int64
	over        atomic.Bool

	mu      sync.Mutex
	covered map[int64]bool // guarded by mu; the offset, negative for down
}

func (w *sweep) limits(int64) (up, down int64) {
	if w.over.Load() {
		return -1, -1
	}
	turn := w.next.Add(1) - 1
	n := turn / 2 * w.step % w.limit
	w.mu.Lock()
	defer w.mu.Unlock()
	if turn%2 == 0 {
		w.covered[n] = true
		return n, -1
	}
	w.covered[-n-1] = true
	return -1, n
}

func (w *sweep) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.covered)
}

// f16 resets connections between executors and admins after byte N, N swept
// over everything that a session says: handshake, registration, offers,
// acceptances, grants, results, heartbeats, logs.
func f16(ctx context.Context, s *stage) error {
	w := &sweep{limit: 4000, step: pick(s.set, int64(1), 17), covered: map[int64]bool{}}
	w.over.Store(true)
	err := s.open(ctx, fleetPlan{admins: 2, executors: 2, advertise: func(_ int, listens string) (string, error) {
		p, err := proxy.New(listens, proxy.Options{Limits: w.limits})
		if err != nil {
			return "", err
		}
		s.defers(p.Close)
		return p.Addr(), nil
	}})
	if err != nil {
		return err
	}
	if err := s.load(ctx, max(50, s.rate()/2)); err != nil {
		return err
	}
	// Sessions that were opened before the sweep stay: with them the fleet
	// goes on, as it does in a network where some paths are bad.
	w.over.Store(false)
	began := time.Now()
	p, err := s.fleet.StartExecutor(lab.Command{
		Name: "swept", Env: []string{"CARILLON_EXECUTOR_TOKEN=" + s.tenant.token}, Program: s.set.self,
		Args: []string{"swept", "-addr", s.fleet.Admins[0].Wire, "-journal", filepath.Join(s.dir, "swept"), "-history", s.historyDir(),
			"-n", fmt.Sprint(pick(s.set, 24, 12))},
	})
	if err != nil {
		return err
	}
	all := int(2 * ((w.limit + w.step - 1) / w.step))
	for limit := time.Now().Add(pick(s.set, 6*time.Minute, time.Minute)); w.count() < all && time.Now().Before(limit); {
		if err := wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	w.over.Store(true)
	if p.Ended() {
		return errors.New("the swept executors ended by themselves")
	}
	p.Stop()
	if err := s.faults("reset after byte N", "admin-executor", began, time.Now(), int(w.next.Load())); err != nil {
		return err
	}
	if err := wait(ctx, 20*time.Second); err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j != nil {
		s.result.Figures["offsetsCovered"], s.result.Figures["offsets"], s.result.Figures["resets"] = w.count(), all, w.next.Load()
		s.figure("%d of %d offsets covered (0 to %d, both ways, every %d) by %d resets; lateness %s", w.count(), all, w.limit-1, w.step, w.next.Load(), j.inside)
	}
	return err
}
