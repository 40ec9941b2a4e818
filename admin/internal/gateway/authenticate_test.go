package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// slowAuth is a database that does not answer until it is told to.
type slowAuth struct {
	fakeAuth
	answer chan error

	mu    sync.Mutex
	asked []int // guarded by mu: about how many at once
}

func (a *slowAuth) VerifyJoinTokens(ctx context.Context, claims []domain.JoinClaim) ([]domain.JoinVerdict, error) {
	a.mu.Lock()
	a.asked = append(a.asked, len(claims))
	a.mu.Unlock()
	select {
	case err := <-a.answer:
		if err != nil {
			return nil, err
		}
		return a.fakeAuth.VerifyJoinTokens(ctx, claims)
	case <-ctx.Done():
		return nil, domain.Errorf(domain.CodeUnavailable, "no answer")
	}
}

func bootOf(n int) string { return fmt.Sprintf("%032x", n) }

// TestCredentialsAreCheckedTogether: 40 executors that restarted five times a second took
// all connections of a node, and the leases of the others ran out (fault row
// F11). Now there is one question at a time, and who has a bad token fails alone.
func TestCredentialsAreCheckedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		auth := &slowAuth{answer: make(chan error)}
		g := New(Options{Auth: auth, NewID: func() int64 { return 1 }, Logger: slog.New(slog.DiscardHandler)})
		type answer struct {
			boot string
			err  error
		}
		answers := make(chan answer, 400)
		admit := func(n int, token string) {
			go func() {
				p, _, err := g.admit(t.Context(), hello(token, bootOf(n)), nil, nil, func() {})
				if err == nil {
					p.leave()
				}
				answers <- answer{bootOf(n), err}
			}()
			synctest.Wait()
		}
		for n := range 250 {
			token := goodToken
			if n == 100 {
				token = "cjt_wrong"
			}
			admit(n, token)
		}
		for range 3 {
			auth.answer <- nil
			synctest.Wait()
		}
		require.Equal(t, []int{1, maxBatch, 49}, auth.asked)
		for range 250 {
			a := <-answers
			if a.boot == bootOf(100) {
				require.Equal(t, domain.CodeUnauthenticated, domain.CodeOf(a.err))
			} else if a.err != nil { // its token is good: it was only too many who came in at once
				require.True(t, domain.Is(a.err, codeOverloaded), "%v", a.err)
			}
		}

		// Without a database everybody is told so, and nobody is let in.
		admit(300, goodToken)
		admit(301, goodToken)
		admit(302, "cjt_wrong")
		auth.answer <- errors.New("no database")
		synctest.Wait()
		for range 3 { // the others' time is over
			code, _ := helloCode((<-answers).err)
			require.Equal(t, "unavailable", code)
		}
	})
}

// TestInstancesRegisterTogether: what piles up goes with one transaction, and one
// that is refused is refused alone.
func TestInstancesRegisterTogether(t *testing.T) {
	b := start(t)
	b.fleet.hold = make(chan struct{}, 8)
	const crowd = 40
	peers := make([]*peerEnd, crowd)
	for n := range peers {
		conn, answer := b.dial(hello(goodToken, bootOf(n)))
		require.Nil(t, answer.Error)
		name := fmt.Sprintf("i-%d", n)
		if n == 7 {
			name = "nobody's"
		}
		peers[n] = b.registerOver(conn, answer, &proto.Register{InstanceName: name, Slots: int32(n + 1), Handlers: []*proto.Handler{{Name: "sync"}}})
	}
	// The first one asks, the rest waits.
	require.Eventually(t, func() bool { return b.gate.registers.Waiting() == crowd-1 }, 20*time.Second, time.Millisecond)
	close(b.fleet.hold)
	for n, p := range peers {
		if n == 7 {
			var m proto.ControlToExecutor
			require.Error(t, p.fromControl.Next(&m), "it comes again")
			continue
		}
		require.NotNil(t, p.nextControl().GetRegistered())
		s := get(t, b.rec.joined)
		require.Equal(t, s.Name, fmt.Sprintf("i-%d", s.Slots.occupancy.slots-1), "each gets its own")
		require.Equal(t, s.BootID, bootOf(s.Slots.occupancy.slots-1))
	}
	b.fleet.mu.Lock()
	defer b.fleet.mu.Unlock()
	require.Equal(t, []int{1, crowd - 1}, b.fleet.together)
}

// TestWhoWaitsToRegisterIsNotPending: those who wait for a place have shown their
// tokens, and do not count among the connections that have not.
func TestWhoWaitsToRegisterIsNotPending(t *testing.T) {
	b := startWith(t, func(o *Options) { o.Limits.PendingPerAddress = 1 })
	b.fleet.hold = make(chan struct{}, 200)
	const crowd = minRegistering + 20 // more than there are places for one tenant
	for n := range crowd {
		conn, err := net.Dial("tcp", b.addr)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		_, err = conn.Write([]byte(proto.Preface))
		require.NoError(t, err)
		require.NoError(t, proto.WriteFrame(conn, hello(goodToken, bootOf(n)), proto.MaxHello))
		require.Eventually(t, func() bool {
			b.gate.admission.mu.Lock()
			defer b.gate.admission.mu.Unlock()
			return b.gate.admission.pending[0].count+b.gate.admission.pending[1].count == 0 && b.gate.admission.sessions == n+1
		}, 20*time.Second, time.Millisecond)
	}
	require.Zero(t, b.gate.TurnedAway(), "each was heard while others waited")
	close(b.fleet.hold)
}

// TestWhoIsDeniedIsDeniedAlone: of those who are checked together.
func TestWhoIsDeniedIsDeniedAlone(t *testing.T) {
	denied, subject := &fakeTrust{}, bootB
	denied.denied.Store(&subject)
	g := New(Options{Auth: fakeAuth{}, Denials: denied, NewID: func() int64 { return 1 }, Logger: slog.New(slog.DiscardHandler)})
	claim := func(token, boot string) credential {
		return credential{claim: domain.JoinClaim{Secret: token, BootID: boot, Executor: "shop"}, who: domain.ExecutorIdentity{BootID: boot}}
	}
	proven := credential{proven: true, who: domain.ExecutorIdentity{Tenant: 7, Executor: 8, BootID: bootA, Serial: "5e"}}
	out, err := g.verifier.authenticateAll(t.Context(), []credential{claim(goodToken, bootA), claim(goodToken, bootB), claim("cjt_wrong", bootB), proven})
	require.NoError(t, err)
	require.Equal(t, authenticated{tenant: 1, executor: 2}, out[0])
	require.Equal(t, domain.CodeInstanceDenied, domain.CodeOf(out[1].err))
	require.Zero(t, out[1].tenant)
	require.Equal(t, domain.CodeUnauthenticated, domain.CodeOf(out[2].err))
	require.Equal(t, authenticated{tenant: 7, executor: 8}, out[3])
}
