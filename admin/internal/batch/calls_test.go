package batch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/panics"
)

// slow answers with the double after a second and keeps how many it was asked.
type slow struct {
	mu    sync.Mutex
	sizes []int
	err   error
}

func (s *slow) ask(ctx context.Context, list []int) ([]int, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = append(s.sizes, len(list))
	out := make([]int, len(list))
	for i, n := range list {
		out[i] = 2 * n
	}
	return out, s.err
}

func TestCallsThatComeTogetherAreAskedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		calls := batch.NewCalls(100, time.Minute, s.ask)
		var all sync.WaitGroup
		for i := range 251 {
			all.Go(func() {
				got, err := calls.Do(t.Context(), i)
				require.NoError(t, err)
				require.Equal(t, 2*i, got)
			})
			synctest.Wait()
		}
		require.Equal(t, 250, calls.Waiting())
		all.Wait()
		require.Equal(t, []int{1, 100, 100, 50}, s.sizes)
		require.Zero(t, calls.Waiting())
	})
}

func TestACallerThatLeavesKeepsNobodyFromAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		calls := batch.NewCalls(100, time.Minute, s.ask)
		first, leave := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		answers := make(chan error, 3)
		go func() { _, err := calls.Do(first, 1); answers <- err }()
		synctest.Wait()
		go func() { _, err := calls.Do(first, 2); answers <- err }() // it would be the next to ask
		synctest.Wait()
		go func() { _, err := calls.Do(t.Context(), 3); answers <- err }()
		synctest.Wait()
		leave(gone)
		require.Equal(t, gone, <-answers, "who waits leaves at once")
		require.NoError(t, <-answers, "who asks asks to the end")
		require.NoError(t, <-answers)
		require.Equal(t, []int{1, 1}, s.sizes)
	})
}

func TestAnErrorIsEverybodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{err: errors.New("no database")}
		calls := batch.NewCalls(100, time.Minute, s.ask)
		answers := make(chan error, 3)
		for i := range 3 {
			go func() { _, err := calls.Do(t.Context(), i); answers <- err }()
		}
		for range 3 {
			require.Equal(t, s.err, <-answers)
		}
		short := batch.NewCalls(100, time.Millisecond, s.ask)
		_, err := short.Do(t.Context(), 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// TestAPanicIsTheErrorOfItsQuestion, and whoever asks later is answered.
func TestAPanicIsTheErrorOfItsQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := batch.NewCalls(100, time.Minute, func(_ context.Context, list []int) ([]int, error) {
			time.Sleep(time.Second)
			if slices.Contains(list, 7) {
				panic("seven")
			}
			return list, nil
		})
		for range 2 {
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					got, err := calls.Do(t.Context(), i)
					if i == 7 {
						assert.ErrorContains(t, err, "seven")
						assert.NotEmpty(t, panics.Stack(err))
					} else if assert.NoError(t, err) {
						assert.Equal(t, i, got)
					}
				})
			}
			all.Wait()
		}
	})
}

// TestCallersComeAndGo hammers what the other tests look at one by one.
func TestCallersComeAndGo(t *testing.T) {
	calls := batch.NewCalls(7, time.Minute, func(_ context.Context, list []int) ([]int, error) { return list, nil })
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				if (i+n)%3 == 0 {
					go cancel()
				}
				got, err := calls.Do(ctx, n)
				cancel()
				if err == nil && got != n || err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("%d: %d, %v", n, got, err)
				}
			}
		})
	}
	all.Wait()
	_, err := calls.Do(t.Context(), 1)
	require.NoError(t, err)
}
