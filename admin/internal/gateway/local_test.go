package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// An executor in this process is who its connection was opened for, whatever it
// says; and that it is there does not make the node one that executors reach.
func TestAnExecutorInThisProcess(t *testing.T) {
	b := startSecure(t, true)
	conn, err := b.gate.DialLocal(t.Context(), 7, 9)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = conn.Write([]byte(proto.Preface))
	require.NoError(t, err)
	require.NoError(t, proto.WriteFrame(conn, hello("", bootA), proto.MaxFrame))
	var answer proto.ServerHello
	require.NoError(t, proto.ReadHello(conn, &answer))
	require.Nil(t, answer.Error)
	require.False(t, answer.Enroll)
	p := b.joinOver(conn, &answer, &proto.Register{InstanceName: "node-1", Slots: 4, Handlers: []*proto.Handler{{Name: "http"}}})
	s := get(t, b.rec.joined)
	require.Equal(t, []any{domain.TenantID(7), domain.ExecutorID(9)}, []any{s.Tenant, s.Executor})
	require.Len(t, b.gate.Sessions(7, 9, "http"), 1)
	require.Empty(t, p.registered.Nodes.GetNodes(), "other nodes have an instance of their own")
	require.Equal(t, []int{1, 0}, []int{b.gate.Count(), b.gate.Reached()})

	b.gate.SetNodes([]domain.Node{{Name: "node-1", ExecutorAddress: "127.0.0.1:1"}, {Name: "node-2", ExecutorAddress: "127.0.0.1:2"}})
	require.True(t, s.Reserve(3, 1, 1, 0))
	s.SendOffers([]*proto.Offer{{ExecutionId: 3, Fence: 1, Handler: "http"}})
	require.Len(t, p.nextCommand().GetOffers().GetOffers(), 1)
	b.trust.denied.Store(new(string))
	*b.trust.denied.Load() = bootB
	refused, err := b.gate.DialLocal(t.Context(), 7, 9)
	require.NoError(t, err)
	t.Cleanup(func() { refused.Close() })
	_, err = refused.Write([]byte(proto.Preface))
	require.NoError(t, err)
	require.NoError(t, proto.WriteFrame(refused, hello("", bootB), proto.MaxFrame))
	require.NoError(t, proto.ReadHello(refused, &answer))
	require.Equal(t, "denied", answer.Error.GetCode())
}
