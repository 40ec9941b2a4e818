package executor_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// Connections to two nodes are cut at random while both offer; acknowledgements
// and grants come and go. Whatever was accepted ends in a result, and nothing
// starts twice.
func TestConnectionsCutAtRandom(t *testing.T) {
	t.Parallel()
	one, two := startAdmin(t, &fakeadmin.Admin{Node: "n1"}), startAdmin(t, &fakeadmin.Admin{Node: "n2"})
	admins := []*fakeadmin.Admin{one, two}
	nodes := &proto.NodeList{Nodes: []*proto.Node{{Id: "n1", Address: one.Address()}, {Id: "n2", Address: two.Address()}}}
	for _, a := range admins {
		a.Judge = func(*fakeadmin.Session, *proto.Register) *proto.Registered { return &proto.Registered{Nodes: nodes} }
	}
	var mu sync.Mutex
	starts := map[int64]int{}
	a := start(t, one, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(ctx context.Context) error {
			mu.Lock()
			starts[executor.TaskFrom(ctx).ExecutionID]++
			mu.Unlock()
			executor.Logger(ctx).Info("running")
			return nil
		})
	}, func(c *executor.Config) { c.Slots = 200 })

	random := rand.New(rand.NewPCG(1, 2))
	id := int64(0)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		admin := admins[random.IntN(2)]
		sessions := admin.Sessions()
		if len(sessions) == 0 {
			<-time.After(time.Millisecond)
			continue
		}
		s := sessions[len(sessions)-1]
		switch random.IntN(100) {
		case 0:
			s.Cut()
		case 1:
			admin.HoldAcks.Store(!admin.HoldAcks.Load())
		case 2:
			admin.HoldGrants.Store(!admin.HoldGrants.Load())
		default:
			id++
			o := offer(id, "h")
			o.Granted = random.IntN(2) == 0
			_ = s.Offer(o, o) // the session may just have been cut
		}
		<-time.After(100 * time.Microsecond)
	}
	for _, admin := range admins {
		admin.HoldAcks.Store(false)
		admin.HoldGrants.Store(false)
		for _, s := range admin.Sessions() {
			s.Cut() // what was sent while acknowledgements were held goes out again
		}
	}
	ended := func() map[int64]bool {
		all := map[int64]bool{}
		for _, admin := range admins {
			for _, r := range admin.Seen().Results {
				all[r.GetExecutionId()] = true
			}
		}
		return all
	}
	accepted := map[int64]bool{}
	for _, admin := range admins {
		for _, answer := range admin.Seen().Answers {
			if answer.GetAccepted() {
				accepted[answer.GetExecutionId()] = true
			}
		}
	}
	require.Eventually(t, func() bool {
		results := ended()
		for execution := range accepted {
			if !results[execution] {
				return false
			}
		}
		return true
	}, patience, 50*time.Millisecond)
	require.NoError(t, a.stop())
	require.Contains(t, a.log.String(), "everything is handed over")
	for execution, n := range starts {
		require.Equal(t, 1, n, "execution %d", execution)
	}
	t.Logf("%d offers, %d accepted, %d started, sessions: %d and %d", id, len(accepted), len(starts), one.Seen().Sessions, two.Seen().Sessions)
	require.Greater(t, len(starts), 100)
}

// A deadline of the application's own is not the run's.
func TestDeadlineOfRunsContextIsNotTheHandlers(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	ex, err := executor.New(executor.Config{Name: "shop", Addresses: []string{admin.Address()}, Token: fakeadmin.Token, JournalDir: t.TempDir()})
	require.NoError(t, err)
	executor.HandleFunc(ex, "h", func(ctx context.Context) error {
		if _, ok := ctx.Deadline(); ok {
			return errors.New("has a deadline")
		}
		return ctx.Err()
	})
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "h")))
	require.Equal(t, "SUCCEEDED", brief(saw(t, admin, results(1)).Results[0]))
	require.NoError(t, <-done)
}
