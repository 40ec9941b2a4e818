package publish

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/wire"
)

// DedupeWindow is how long Redis knows the id of a message. It is longer than
// an engine that is well takes to try a message again whose fate it does not
// know, and costs about 150 bytes of Redis's memory for each message within it.
const DedupeWindow = 15 * time.Minute

// redisStreams publishes to a stream of Redis. Its client keeps connections, and
// does not see that one has died before it is used: when one has, the others are
// likely dead too, and each would cost a message its attempt.
type redisStreams struct {
	client redis.UniversalClient
	work   sync.WaitGroup // messages that wait for their answer
	failed atomic.Bool    // a connection has died: the next message opens another client
}

// addOnce adds an entry unless there is a key of its id already. Both keys have
// one hash tag, so that a cluster keeps them on one node, and a script is one
// step. The key is written after the entry: a stream without room leaves none.
//
//	KEYS: stream, key of the id
//	ARGV: window in ms, "1" to create the stream, length to trim to or "0", field, value, ...
var addOnce = redis.NewScript(`
local known = redis.call('GET', KEYS[2])
if known then return known end
local add = {'XADD', KEYS[1]}
if ARGV[2] ~= '1' then add[#add + 1] = 'NOMKSTREAM' end
if ARGV[3] ~= '0' then
	add[#add + 1] = 'MAXLEN'
	add[#add + 1] = '~'
	add[#add + 1] = ARGV[3]
end
add[#add + 1] = '*'
for i = 4, #ARGV do add[#add + 1] = ARGV[i] end
local id = redis.call(unpack(add))
if id then redis.call('SET', KEYS[2], id, 'PX', ARGV[1]) end
return id
`)

// clusterBounds leave room for CLUSTER SLOTS, which has some 20 elements for a range
// of slots with three nodes.
var clusterBounds = wire.RedisBounds{Bytes: 1 << 20, Elements: 4096}

// quiet: the library's log goes to standard error, and says what errors say.
var quiet = sync.OnceFunc(logging.Disable)

func openRedis(ctx context.Context, e *endpoint) (broker, error) {
	quiet()
	options := &redis.UniversalOptions{
		Addrs: e.spec.Addresses, Username: e.spec.Username, Password: e.secrets[noun.SecretPassword], DB: e.spec.Database, MasterName: e.spec.SentinelMaster,
		ClientName: "carillon", Dialer: e.read(wire.Redis), DialTimeout: dialTimeout, DialerRetries: 1, ContextTimeoutEnabled: true,
		ReadTimeout: writeTimeout, WriteTimeout: writeTimeout,
		MaxRetries: -1, // whoever publishes decides that
		PoolSize:   16, ConnMaxIdleTime: idleTime, ConnMaxLifetime: maxAge, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	var client redis.UniversalClient
	var err error
	if len(options.Addrs) > 1 && options.MasterName == "" {
		options.Dialer = e.read(wire.RedisWithin(clusterBounds))
		own := options.Cluster()
		own.DisableRoutingPolicies = true // they need COMMAND, whose answer has some 10,000 elements
		cluster := redis.NewClusterClient(own)
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return node.Ping(ctx).Err() })
		client = cluster
	} else {
		client = redis.NewUniversalClient(options)
		err = client.Ping(ctx).Err()
	}
	if err != nil {
		return nil, errors.Join(redisError(err), client.Close())
	}
	return &redisStreams{client: client}, nil
}

// publish leaves the message to a goroutine of its own: of a context the library
// sees the deadline, and not its end before that.
func (b *redisStreams) publish(ctx context.Context, m *noun.Message) error {
	done := make(chan error, 1)
	b.work.Go(func() { done <- b.add(ctx, m) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *redisStreams) add(ctx context.Context, m *noun.Message) error {
	create := "0"
	if m.Target.Create {
		create = "1"
	}
	args := []any{DedupeWindow.Milliseconds(), create, m.Target.MaxLength, "body", m.Body, "Content-Type", m.ContentType}
	for _, h := range m.AllHeaders() {
		args = append(args, h.Name, h.Value)
	}
	err := addOnce.Run(ctx, b.client, []string{m.Target.Stream, dedupeKey(m.Target.Stream, m.ID)}, args...).Err()
	if errors.Is(err, redis.Nil) {
		return permanent("there is no stream %q", m.Target.Stream)
	}
	if said := redis.Error(nil); err != nil && !errors.As(err, &said) && !errors.Is(err, context.Canceled) {
		b.failed.Store(true)
	}
	return redisError(err)
}

// dedupeKey lies on the same node of a cluster as the stream.
func dedupeKey(stream, id string) string {
	tag := stream
	if _, rest, ok := strings.Cut(stream, "{"); ok {
		tag, _, _ = strings.Cut(rest, "}")
	}
	return "carillon:dedupe:{" + tag + "}:" + stream + ":" + id
}

// redisError sorts out what the server says, by the first word.
func redisError(err error) error {
	var said redis.Error
	if err == nil || !errors.As(err, &said) {
		return err
	}
	text := said.Error()
	for _, word := range []string{"NOAUTH", "WRONGPASS", "NOPERM", "WRONGTYPE", "DENIED"} {
		if strings.Contains(text, word) { // a script's error begins with ERR
			return permanent("Redis: %w", err)
		}
	}
	return retryable("Redis: %w", err)
}

func (b *redisStreams) broken() bool { return b.failed.Load() }

// close ends what waits, with its sockets.
func (b *redisStreams) close() {
	_ = b.client.Close()
	b.work.Wait()
}
