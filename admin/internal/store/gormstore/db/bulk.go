package db

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// RunBulk is RunRepeatable for one of many transactions that follow one another, such as the
// parts of a batch. On SQLite at most one of all bulk transactions waits for the writer, and
// others have time to write before the next one (ADR 0046).
func (s *DB) RunBulk(ctx context.Context, step string, fn func(*Tx) error) error {
	return s.Repeat(ctx, step, func(context.Context) (bool, error) { return false, nil }, func(ctx context.Context) error {
		if s.bulk == nil {
			return s.TryOnce(ctx, step, fn)
		}
		if err := s.bulk.begin(ctx); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		defer s.bulk.turn.Release(1)
		return s.TryOnce(context.WithValue(ctx, inBulk{}, true), step, fn)
	})
}

// inBulk marks the context of a bulk transaction.
type inBulk struct{}

const (
	// bulkPause is how often the time of a bulk transaction has to pass before the next one
	// begins, while others write too.
	bulkPause = 3
	// bulkAlone is the part of the writer's time, in percent, below which others do not count:
	// leases and heartbeats.
	bulkAlone = 5
	// bulkWindow is for how long the writer's time is added up.
	bulkWindow = time.Second
)

// bulkTurn is the order of bulk transactions of the only writer.
type bulkTurn struct {
	turn *semaphore.Weighted // held from begin to the end of the transaction

	mu     sync.Mutex
	since  time.Time     // guarded by mu: begin of the window
	others time.Duration // guarded by mu: how long others have had the writer in it
	busy   bool          // guarded by mu: others had more than bulkAlone in the window before
	free   time.Time     // guarded by mu: the next bulk transaction may begin
}

func newBulkTurn() *bulkTurn { return &bulkTurn{turn: semaphore.NewWeighted(1), since: time.Now()} }

// begin waits for the end of the transactions before, and of the pause behind the last one.
func (b *bulkTurn) begin(ctx context.Context) error {
	if err := b.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	b.mu.Lock()
	wait := time.Until(b.free)
	b.mu.Unlock()
	if wait > 0 && !Sleep(ctx, wait) {
		b.turn.Release(1)
		return ctx.Err()
	}
	return nil
}

// wrote takes note of a transaction that has had the writer for so long.
func (b *bulkTurn) wrote(ctx context.Context, took time.Duration) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	bulk := ctx.Value(inBulk{}) != nil
	if !bulk {
		b.others += took
	}
	if window := now.Sub(b.since); window >= bulkWindow {
		b.busy = 100*b.others > bulkAlone*window
		b.since, b.others = now, 0
	}
	if bulk && (b.busy || 100*b.others > bulkAlone*bulkWindow) {
		b.free = now.Add(bulkPause * took)
	}
}
