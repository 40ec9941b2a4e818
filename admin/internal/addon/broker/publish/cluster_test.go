//go:build proof

package publish

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// The bounds leave room for the answers with which a cluster describes itself.
func TestRedisCluster(t *testing.T) {
	node, err := testenv.StartRedis("--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, node.Close()) })
	client := redis.NewClient(&redis.Options{Addr: node.Addr, Password: node.Password})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	require.NoError(t, client.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	require.Eventually(t, func() bool {
		info, err := client.ClusterInfo(t.Context()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	}, time.Minute, 10*time.Millisecond)
	w := &world{
		spec:    noun.ConnectionSpec{Broker: noun.BrokerRedis, Addresses: []string{node.Addr, "127.0.0.1:1"}},
		secrets: map[string]string{noun.SecretPassword: node.Password}, target: noun.MessageTarget{Stream: "orders", Create: true},
	}
	p := w.publisher(t)
	for _, id := range []string{"a", "a", "b"} {
		require.NoError(t, p.Publish(t.Context(), w.message(id)))
	}
	length, err := client.XLen(t.Context(), "orders").Result()
	require.NoError(t, err)
	require.EqualValues(t, 2, length)
}
