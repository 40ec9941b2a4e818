package auth

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// crowd lets many wait at a gate and writes down who got in.
type crowd struct {
	gate    *gate
	entered []string // in order; owned by who holds the gate's only slot
	refused chan string
}

func (c *crowd) come(ctx context.Context, name string) {
	go func() {
		leave, err := c.gate.enter(ctx, name)
		if err != nil {
			c.refused <- name
			return
		}
		c.entered = append(c.entered, name)
		leave()
	}()
	synctest.Wait() // the order of arrival is that of the calls
}

func TestAGateServesNamesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{gate: newGate(1, 100), refused: make(chan string, 100)}
		leave, err := c.gate.enter(t.Context(), "first")
		require.NoError(t, err)
		for range 50 {
			c.come(t.Context(), "flood")
		}
		c.come(t.Context(), "ann")
		c.come(t.Context(), "bob")
		c.come(t.Context(), "ann")
		leave()
		synctest.Wait()
		require.Len(t, c.entered, 53)
		require.Equal(t, []string{"flood", "ann", "bob", "flood", "ann", "flood", "flood"}, c.entered[:7])
		require.Zero(t, c.gate.running)
		require.Zero(t, c.gate.waiting)
		require.Empty(t, c.gate.lines)
		require.Empty(t, c.gate.order)
	})
}

func TestAFullGateRefusesTheLongestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{gate: newGate(1, 8), refused: make(chan string, 100)}
		leave, err := c.gate.enter(t.Context(), "first")
		require.NoError(t, err)
		for range 20 {
			c.come(t.Context(), "flood") // 8 wait, 12 are refused
		}
		for i := range 7 {
			c.come(t.Context(), fmt.Sprint("user-", i)) // each takes the place of one of the flood
		}
		c.come(t.Context(), "late") // everybody has one place
		leave()
		synctest.Wait()
		close(c.refused)
		count := map[string]int{}
		for name := range c.refused {
			count[name]++
		}
		require.Equal(t, map[string]int{"flood": 19, "late": 1}, count)
		require.Len(t, c.entered, 8)
		require.Zero(t, c.gate.running)
	})
}

func TestWhoGivesUpLeavesNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{gate: newGate(1, 8), refused: make(chan string, 8)}
		leave, err := c.gate.enter(t.Context(), "first")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		c.come(ctx, "impatient")
		c.come(t.Context(), "patient")
		cancel()
		synctest.Wait()
		require.Equal(t, "impatient", <-c.refused)
		leave()
		synctest.Wait()
		require.Equal(t, []string{"patient"}, c.entered)
		require.Zero(t, c.gate.running)
		require.Empty(t, c.gate.lines)
	})
}

// TestStrangersDoNotDelayWhoIsKnown floods the gate of strangers from as many
// addresses as there are places. Who has logged in from his address before gets
// in while it is full.
func TestStrangersDoNotDelayWhoIsKnown(t *testing.T) {
	s, _ := withAdmin(t)
	login(t, s, "admin", adminPassword)
	leave, err := s.hasher.strangers.enter(t.Context(), "")
	require.NoError(t, err)
	ctx, cancel := cancelled(t)
	done := make(chan error)
	for i := range 2 * hashPlaces {
		go func() {
			_, err := s.Login(ctx, LoginParams{Username: "admin", Password: "x", Address: fmt.Sprintf("10.0.%d.%d", i/200, i%200)})
			done <- err
		}()
	}
	for range hashPlaces {
		require.True(t, domain.Is(<-done, domain.CodeRateLimited)) // no place
	}
	login(t, s, "admin", adminPassword)
	cancel()
	for range hashPlaces {
		require.ErrorIs(t, <-done, context.Canceled)
	}
	leave()
}
