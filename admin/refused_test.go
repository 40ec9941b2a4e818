package admin_test

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/proto"
)

// knock is an application with a token that nobody knows.
func (n *node) knock(name, boot string) {
	n.t.Helper()
	conn, err := net.Dial("tcp", n.admin.ExecutorAddress())
	require.NoError(n.t, err)
	defer conn.Close()
	require.NoError(n.t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = conn.Write([]byte(proto.Preface))
	require.NoError(n.t, err)
	require.NoError(n.t, proto.WriteFrame(conn, &proto.ClientHello{
		MinVersion: 1, MaxVersion: proto.Version, JoinToken: "cjt_unknown", Executor: name, InstanceName: "i-1", BootId: boot,
		Purpose: proto.Purpose_PURPOSE_CONTROL, Client: "test/1",
	}, proto.MaxFrame))
	var answer proto.ServerHello
	require.NoError(n.t, proto.ReadHello(conn, &answer))
	require.Equal(n.t, "bad_token", answer.Error.GetCode())
}

// TestEveryNodeKnowsWhoWasTurnedAway, by itself and by others, also when the
// node that did it is gone.
func TestEveryNodeKnowsWhoWasTurnedAway(t *testing.T) {
	t.Parallel()
	dsn := testenv.Database(t)
	key := filepath.Join(t.TempDir(), "sealing.key")
	start := func(name string) *node {
		return startNode(t, func(c *admin.Config) { c.Database, c.SealingKeyFile, c.NodeName = "mysql:"+dsn, key, name })
	}
	one, two := start("one"), start("two")
	one.knock("till", "0123456789abcdef0123456789abcdef")
	one.knock("till", "0123456789abcdef0123456789abcdef")
	two.knock("till", "0123456789abcdef0123456789abcdee")
	one.knock("shop", "0123456789abcdef0123456789abcdef")
	one.stop() // and with it what only its memory knew

	type refusal struct {
		Code, Executor, Instance, Remote, Node string
		Times                                  int
	}
	want := []refusal{{"bad_token", "shop", "i-1", "127.0.0.1", "one", 1}, {"bad_token", "till", "i-1", "127.0.0.1", "two", 3}}
	var got struct{ Items []refusal }
	two.eventually(func() bool {
		got.Items = nil
		two.do("GET", "/api/v1/cluster/refusals", nil, &got, 200)
		return len(got.Items) == 2 && got.Items[0].Times+got.Items[1].Times == 4
	}, func() string { return "not all refusals are told" })
	for i := range got.Items {
		if got.Items[i].Executor == "till" {
			got.Items[i].Node = "two" // either of them wrote it last
		}
	}
	require.ElementsMatch(t, want, got.Items)
}

// The owner of an application whose name is not that of its token's executor
// reads so in its log and in its health.
func TestATokenOfAnotherExecutorIsToldAsThat(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	access, err := n.admin.Provision(t.Context(), "shop")
	require.NoError(t, err)
	var lines logLines
	ex, err := executor.New(executor.Config{
		Name: "till", Addresses: []string{n.admin.ExecutorAddress()}, Token: executor.Secret(access.JoinToken), JournalDir: t.TempDir(),
		DrainTimeout: -1, Logger: slog.New(slog.NewTextHandler(&lines, nil)),
	})
	require.NoError(t, err)
	executor.HandleFunc(ex, "sell", func(context.Context) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	n.eventually(func() bool { return lines.count("admin refuses this executor") > 0 }, func() string { return "nobody told it" })
	const told = "wrong_executor: the join token is for another executor than"
	require.ErrorContains(t, ex.Health(), told+` "till"`)
	require.Equal(t, 1, lines.count(told))
	require.Equal(t, 1, lines.count("check Config.Name (CARILLON_EXECUTOR_NAME) and Config.Token"))
	cancel()
	require.NoError(t, <-done)
}
