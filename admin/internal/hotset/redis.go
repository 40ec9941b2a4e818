package hotset

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/wire"
)

const (
	// lookTime bounds a look, for which the planner waits. It is much longer than a look
	// takes (a millisecond), and much shorter than the planner's look-ahead.
	lookTime = 250 * time.Millisecond
	// writeTime bounds a page that is written, for which nobody waits.
	writeTime = 500 * time.Millisecond
)

// answerBounds leave room for a look at 20,000 timers, which have three elements and
// 46 bytes each.
var answerBounds = wire.RedisBounds{Bytes: 2 << 20, Elements: 1 << 16}

// quiet: the library's log goes to standard error, and says what errors say.
var quiet = sync.OnceFunc(logging.Disable)

// conn is all that is asked of Redis. Each method is one round trip.
type conn struct {
	client *redis.Client
	look   time.Duration // bounds read
}

// errURL does not repeat the URL, which has a password.
var errURL = errors.New("hot store: it must be redis://user:password@host:port/db, or rediss:// for TLS, with special characters percent-encoded")

func options(url string) (*redis.Options, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, errURL
	}
	o.ClientName, o.DisableIdentity = "carillon", true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ContextTimeoutEnabled, o.DialTimeout, o.DialerRetries = true, writeTime, 1
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = writeTime, writeTime, writeTime
	o.MaxRetries = -1 // the database is asked instead
	o.PoolSize = 4
	dial, read := redis.NewDialer(o), wire.RedisWithin(answerBounds)
	o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return read(conn, nil), nil
	}
	return o, nil
}

// CheckURL reports what is wrong with the URL of a hot store.
func CheckURL(url string) error {
	_, err := options(url)
	return err
}

func openConn(url string) (conn, error) {
	quiet()
	o, err := options(url)
	if err != nil {
		return conn{}, err
	}
	return conn{redis.NewClient(o), lookTime}, nil
}

// Ping asks whether the Redis at url answers, and lets us in.
func Ping(ctx context.Context, url string) error {
	c, err := openConn(url)
	if err != nil {
		return err
	}
	return errors.Join(c.client.Ping(ctx).Err(), c.client.Close())
}

// member is an id in a sorted set, with its score.
type member struct {
	id domain.TimerID
	at int64 // ms
}

// look is what is asked of one key.
type look struct {
	partition int
	key       string
	late      string // the partition's set of late ones
	page      *page  // nil: it is that
	tried     []domain.TimerID
}

// seen is the answer.
type seen struct {
	due     []member
	removed int64
	size    int64 // without those that were removed
}

// read removes what was tried and reads what is due until then.
func (c conn) read(ctx context.Context, looks []look, until time.Time, limit int) ([]seen, error) {
	ctx, cancel := context.WithTimeout(ctx, c.look)
	defer cancel()
	type asked struct {
		removed, size *redis.IntCmd
		due           *redis.ZSliceCmd
	}
	all := make([]asked, len(looks))
	bound := redis.ZRangeArgs{Start: "-inf", Stop: strconv.FormatInt(until.UnixMilli(), 10), ByScore: true, Count: int64(limit)}
	_, err := c.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, l := range looks {
			if len(l.tried) > 0 {
				all[i].removed = p.ZRem(ctx, l.key, anys(l.tried)...)
			}
			if l.page != nil {
				all[i].size = p.ZCard(ctx, l.key)
			}
			r := bound
			r.Key = l.key
			all[i].due = p.ZRangeArgsWithScores(ctx, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]seen, len(looks))
	for i, a := range all {
		if a.removed != nil {
			out[i].removed = a.removed.Val()
		}
		if a.size != nil {
			out[i].size = a.size.Val()
		}
		for _, z := range a.due.Val() {
			text, _ := z.Member.(string)
			if id, err := strconv.ParseInt(text, 10, 64); err == nil && id > 0 { // what else is there is none of ours
				out[i].due = append(out[i].due, member{domain.TimerID(id), int64(z.Score)})
			}
		}
	}
	return out, nil
}

// write adds members to keys that end with ttl, and returns their sizes.
func (c conn) write(ctx context.Context, sets map[string][]member, ttl time.Duration) (sizes map[string]int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	asked := map[string]*redis.IntCmd{}
	_, err = c.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for key, members := range sets {
			list := make([]redis.Z, len(members))
			for i, m := range members {
				list[i] = redis.Z{Score: float64(m.at), Member: int64(m.id)}
			}
			p.ZAdd(ctx, key, list...)
			p.PExpire(ctx, key, ttl)
			asked[key] = p.ZCard(ctx, key)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("write timers: %w", err)
	}
	sizes = make(map[string]int64, len(asked))
	for key, size := range asked {
		sizes[key] = size.Val()
	}
	return sizes, nil
}

// remove deletes a key.
func (c conn) remove(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	return c.client.Del(ctx, key).Err()
}

func (c conn) close() error { return c.client.Close() }

func anys(ids []domain.TimerID) []any {
	out := make([]any, len(ids))
	for i, id := range ids {
		out[i] = int64(id)
	}
	return out
}
