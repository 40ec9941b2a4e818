package publish

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// fake is a broker that tells what becomes of it.
type fake struct {
	name   string
	sent   chan struct{} // a message comes, and waits for go_
	goOn   chan struct{}
	isGone bool
	closed bool
}

func (f *fake) publish(ctx context.Context, _ *noun.Message) error {
	f.sent <- struct{}{}
	select {
	case <-f.goOn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
func (f *fake) broken() bool { return f.isGone }
func (f *fake) close()       { f.closed = true }

// fakes opens them, and keeps all that it has opened.
type fakes struct {
	opened []*fake
	err    error
}

func (f *fakes) open(_ context.Context, e *endpoint) (broker, error) {
	if f.err != nil {
		return nil, f.err
	}
	b := &fake{name: e.spec.Description, sent: make(chan struct{}, 10), goOn: make(chan struct{}, 10)}
	f.opened = append(f.opened, b)
	return b, nil
}

func (f *fakes) last() *fake { return f.opened[len(f.opened)-1] }

// pool is a publisher of fakes in a bubble, with connections "0" to "9".
func pool(t *testing.T, most int) (*Publisher, *fakes, *rows) {
	f, r := &fakes{}, &rows{}
	for i := range 10 {
		r.put(t, int64(i+1), strconv.Itoa(i), noun.ConnectionSpec{Broker: noun.BrokerRedis, Addresses: []string{"redis.example:6379"}}, nil)
	}
	p := publisher(t, r, func(o *Options) { o.Max = most })
	p.openers = map[noun.Broker]opener{noun.BrokerRedis: f.open}
	return p, f, r
}

func message(connection string) noun.Message {
	return noun.Message{Tenant: 1, Connection: connection, ID: "1", Target: noun.MessageTarget{Stream: "s"}}
}

// begin sends a message and returns when the broker has it.
func begin(t *testing.T, p *Publisher, connection string) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.Publish(t.Context(), message(connection)) }()
	synctest.Wait()
	return done
}

// send sends one, which the broker takes.
func send(t *testing.T, p *Publisher, f *fakes, connection string) {
	t.Helper()
	done := begin(t, p, connection)
	for _, b := range slices.Backward(f.opened) {
		if b.name == connection && len(b.sent) > 0 {
			<-b.sent
			b.goOn <- struct{}{}
			break
		}
	}
	require.NoError(t, <-done)
	synctest.Wait()
}

func TestConnectionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f, r := pool(t, 5)
		send(t, p, f, "0")
		send(t, p, f, "0")
		send(t, p, f, "1")
		require.Len(t, f.opened, 2)
		require.Equal(t, 2, r.reads, "the row is not read for each message")

		f.opened[0].isGone = true
		send(t, p, f, "0")
		require.Len(t, f.opened, 3, "a broken one is made again")
		require.True(t, f.opened[0].closed)

		time.Sleep(idleTime + tidyInterval)
		synctest.Wait()
		require.True(t, f.opened[1].closed && f.opened[2].closed, "nobody uses them")
		require.Empty(t, p.open)
		require.Empty(t, p.rows)
	})
}

func TestAConnectionGrowsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f, _ := pool(t, 5)
		done := begin(t, p, "0")
		for range 2 * maxAge / idleTime {
			time.Sleep(idleTime - tidyInterval)
			send(t, p, f, "1")
		}
		require.Len(t, f.opened, 3, "the one of 1 was replaced at its age")
		require.True(t, f.opened[1].closed)
		require.Error(t, <-done, "it had its context, and Timeout")
		require.True(t, f.opened[0].closed, "idle since")
	})
}

func TestAnEditCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f, r := pool(t, 5)
		under := begin(t, p, "0")
		old := f.last()
		r.put(t, 1, "0", noun.ConnectionSpec{Broker: noun.BrokerRedis, Addresses: []string{"other.example:6379"}}, nil)
		time.Sleep(rowAge)
		send(t, p, f, "0")
		require.Len(t, f.opened, 2)
		require.False(t, old.closed, "a message is under way on it")
		old.goOn <- struct{}{}
		require.NoError(t, <-under)
		synctest.Wait()
		require.True(t, old.closed)

		r.mu.Lock()
		delete(r.byKey, "0")
		r.mu.Unlock()
		time.Sleep(rowAge)
		require.True(t, domain.Is(p.Publish(t.Context(), message("0")), domain.CodeNotFound))
	})
}

// Who tries a connection has just edited it: the row that is kept does not count.
func TestATryReadsTheRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f, r := pool(t, 5)
		send(t, p, f, "0")
		r.put(t, 1, "0", noun.ConnectionSpec{Broker: noun.BrokerRedis, Addresses: []string{"other.example:6379"}}, nil)
		done := make(chan error, 1)
		go func() { done <- p.Try(t.Context(), message("0")) }()
		synctest.Wait()
		require.Len(t, f.opened, 2)
		f.last().goOn <- struct{}{}
		require.NoError(t, <-done)
	})
}

func TestTheNumberIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f, _ := pool(t, 3)
		for i := range 3 {
			send(t, p, f, strconv.Itoa(i))
			time.Sleep(time.Second)
		}
		busy := begin(t, p, "0")
		send(t, p, f, "3")
		require.True(t, f.opened[1].closed, "1 was used longest ago, of those that nobody uses")
		require.False(t, f.opened[0].closed)
		require.Len(t, p.open, 3)

		alsoBusy, third := begin(t, p, "2"), begin(t, p, "3")
		err := p.Publish(t.Context(), message("4"))
		require.ErrorContains(t, err, "3 connections to brokers, all in use")
		require.False(t, IsPermanent(err))
		for _, b := range f.opened {
			close(b.goOn)
		}
		require.NoError(t, <-busy)
		require.NoError(t, <-alsoBusy)
		require.NoError(t, <-third)
	})
}

func TestAFailedOpeningIsSharedAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f, _ := pool(t, 3)
		f.err = permanent("no")
		require.True(t, IsPermanent(p.Publish(t.Context(), message("0"))))
		synctest.Wait()
		require.Empty(t, p.open)
		f.err = nil
		send(t, p, f, "0")
	})
}

func TestNothingIsOpenedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, r := &fakes{}, &rows{}
		r.put(t, 1, "0", noun.ConnectionSpec{Broker: noun.BrokerRedis, Addresses: []string{"redis.example:6379"}}, nil)
		p := New(Options{Connections: r, Secrets: box(t)})
		p.openers = map[noun.Broker]opener{noun.BrokerRedis: f.open}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		under := begin(t, p, "0")
		stop()
		synctest.Wait()
		require.Empty(t, ended, "a message is under way")
		require.ErrorContains(t, p.Publish(t.Context(), message("0")), "this node stops")
		f.last().goOn <- struct{}{}
		require.NoError(t, <-under)
		require.NoError(t, <-ended)
		require.True(t, f.last().closed)
	})
}

func TestAMessageIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f, _ := pool(t, 3)
		m := message("0")
		m.Target.Topic = "orders"
		require.True(t, domain.Is(p.Publish(t.Context(), m), domain.CodeInvalid))
		require.Empty(t, f.opened)
	})
}
