package membership

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// list is a cluster's list of nodes.
type list struct {
	mu      sync.Mutex
	live    []domain.Node // guarded by mu
	err     error         // guarded by mu
	beats   int           // guarded by mu
	reached int           // guarded by mu
	removed string        // read after Run has ended
}

// set changes the list, or how it answers.
func (l *list) set(err error, more ...domain.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live, l.err = append(l.live, more...), err
}

func (l *list) HeartbeatNode(_ context.Context, n domain.Node, _ time.Duration) (time.Time, []domain.Node, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beats, l.reached = l.beats+1, n.Sessions
	return time.Now(), l.live, l.err
}

func (l *list) RemoveNode(_ context.Context, id domain.NodeID, boot string) error {
	l.removed = id.String() + " " + boot
	return nil
}

// A member beats until it ends, tells of each change of the list once, and leaves the list.
func TestAMemberBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		self := domain.Node{ID: 1, BootID: "one"}
		l, changes := &list{live: []domain.Node{self}}, 0
		m := New(l, self, func([]domain.Node) { changes++ }, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx, func() int { return 3 }) }()
		synctest.Wait()
		require.Equal(t, []int{1, 1, 3}, []int{l.beats, changes, l.reached})
		l.set(nil, domain.Node{ID: 2, BootID: "two"})
		m.Nudge()
		synctest.Wait()
		require.Equal(t, 2, l.beats, "a nudge does not wait for the next beat")
		time.Sleep(beatEvery)
		synctest.Wait()
		require.Equal(t, []int{3, 2}, []int{l.beats, changes})
		require.Len(t, m.Nodes(), 2)
		l.set(errors.New("no database"))
		time.Sleep(beatEvery)
		synctest.Wait()
		require.Len(t, m.Nodes(), 2, "the last list counts")
		cancel()
		require.NoError(t, <-ended)
		require.Equal(t, "1 one", l.removed)
	})
}

// A node whose number was given to another one ends: its ids would not be unique.
func TestANodeWithoutANumberEnds(t *testing.T) {
	t.Parallel()
	l := &list{err: domain.Errorf(domain.CodeNotFound, "no such node")}
	err := New(l, domain.Node{ID: 1}, nil, slog.New(slog.DiscardHandler)).Run(t.Context(), func() int { return 0 })
	require.Equal(t, domain.CodeUnavailable, domain.CodeOf(err))
	require.ErrorContains(t, err, "it has to start again")
	require.Empty(t, l.removed)
}
