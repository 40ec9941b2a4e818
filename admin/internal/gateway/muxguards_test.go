package gateway

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// A session's log connections are its own process's, of its executor and tenant,
// and few.
func TestLogConnectionsBelongToTheirSession(t *testing.T) {
	b := start(t)
	in := b.join(bootA, 5)
	s := get(t, b.rec.joined)
	own := func(change func(*peer)) *peer {
		h := hello(goodToken, bootA)
		h.Purpose, h.SessionId = proto.Purpose_PURPOSE_LOGS, in.sessionID
		p := &peer{tenant: s.Tenant, executor: s.Executor, hello: h}
		change(p)
		return p
	}
	for name, change := range map[string]func(*peer){
		"another process":  func(p *peer) { p.hello.BootId = bootB },
		"another executor": func(p *peer) { p.executor++ },
		"another tenant":   func(p *peer) { p.tenant++ },
		"another session":  func(p *peer) { p.hello.SessionId++ },
	} {
		require.Equal(t, codeNotRegistered, domain.CodeOf(b.gate.admitLogs(own(change))), name)
	}
	var open []*peer
	for range maxLogs {
		p := own(func(*peer) {})
		require.NoError(t, b.gate.admitLogs(p))
		open = append(open, p)
	}
	err := b.gate.admitLogs(own(func(*peer) {}))
	require.Equal(t, domain.CodeRateLimited, domain.CodeOf(err))
	require.ErrorContains(t, err, "4 log connections already")
	open[0].leave()
	require.NoError(t, b.gate.admitLogs(own(func(*peer) {})), "a place was given back")
}

// brokenAuth has a database that says too much.
type brokenAuth struct{}

func (brokenAuth) VerifyJoinTokens(context.Context, []domain.JoinClaim) ([]domain.JoinVerdict, error) {
	return nil, errors.New("dial tcp 10.0.0.7:3306: access denied for user 'carillon'")
}

// What the database says is for the operator, and not for whoever connects.
func TestDatabaseErrorsAreNotTold(t *testing.T) {
	b := startWith(t, func(o *Options) { o.Auth = brokenAuth{} })
	_, answer := b.dial(hello(goodToken, bootA))
	require.Equal(t, "unavailable", answer.Error.Code)
	require.Equal(t, "the admin cannot check the token now", answer.Error.Message)
}

// stuck is a stream of a peer that reads nothing.
type stuck struct{ release chan struct{} }

func (s stuck) Write([]byte) (int, error)      { <-s.release; return 0, errors.New("closed") }
func (stuck) SetWriteDeadline(time.Time) error { return nil }

// What piles up for a peer that does not read is bounded, also of small frames.
func TestWhoeverDoesNotReadIsGivenUp(t *testing.T) {
	w := stuck{make(chan struct{})}
	var o outbox
	o.init(w, func(error) {}, func() {})
	frame := &proto.CommandToExecutor{Body: &proto.CommandToExecutor_Grants{Grants: &proto.GrantBatch{Grants: listOf(proto.MaxBatch, func(n int64) *proto.Grant {
		return &proto.Grant{ExecutionId: n + 1, Fence: 1, Granted: true}
	})}}}
	var err error
	put := 0
	for ; err == nil && put < 10_000; put++ {
		err = o.put(frame)
	}
	require.ErrorContains(t, err, "does not read")
	o.mu.Lock()
	held := len(o.buf)
	o.mu.Unlock()
	require.LessOrEqual(t, held, maxQueued+proto.MaxFrame)
	close(w.release)
	o.stop()
}
