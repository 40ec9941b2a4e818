package publish

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/wire"
)

const (
	// rabbitHeartbeat: three of them in silence end the connection.
	rabbitHeartbeat = 5 * time.Second
	// rabbitChannels bounds the messages that wait for their confirm at once.
	rabbitChannels = 32
	// handshakeTimeout bounds the handshake. It ends before openTimeout, whose error names
	// no cause.
	handshakeTimeout = 9 * time.Second
)

// rabbitMQ publishes to RabbitMQ. A message has a channel of its own until it
// is confirmed: what comes back on it is this message, and an exchange that is
// missing, which closes the channel, costs no other message its confirm.
type rabbitMQ struct {
	conn  *amqp.Connection
	slots chan struct{}       // as many as messages are on their way
	idle  chan *rabbitChannel // has room for all
	work  sync.WaitGroup      // messages that wait for their confirm
}

// rabbitChannel is used by one message at a time.
type rabbitChannel struct {
	*amqp.Channel
	returned chan amqp.Return // room for one: the library must never wait
	closed   chan *amqp.Error // as well
}

func openRabbitMQ(ctx context.Context, e *endpoint) (broker, error) {
	config := amqp.Config{
		Vhost: e.spec.VirtualHost, Heartbeat: rabbitHeartbeat, ChannelMax: 2 * rabbitChannels, FrameSize: wire.MaxFrame,
		Properties: amqp.Table{"connection_name": "carillon", "product": "carillon"},
	}
	if e.spec.Mechanism == noun.MechanismExternal {
		config.SASL = []amqp.Authentication{&amqp.ExternalAuth{}}
	} else {
		config.SASL = []amqp.Authentication{&amqp.PlainAuth{Username: e.spec.Username, Password: e.secrets[noun.SecretPassword]}}
	}
	var failed error
	for _, address := range e.spec.Addresses {
		conn, err := openAMQP(ctx, e, address, config)
		if err == nil {
			e.opened()
			return &rabbitMQ{conn: conn, slots: make(chan struct{}, rabbitChannels), idle: make(chan *rabbitChannel, rabbitChannels)}, nil
		}
		failed = errors.Join(failed, rabbitError(err))
	}
	return nil, failed
}

func openAMQP(ctx context.Context, e *endpoint, address string, config amqp.Config) (*amqp.Connection, error) {
	socket, err := e.read(wire.AMQP)(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	// The library clears the deadline after the handshake.
	if err := socket.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		socket.Close()
		return nil, err
	}
	watched := &ending{Conn: socket}
	conn, err := amqp.Open(watched, config)
	if err != nil {
		socket.Close()
		return nil, e.handshakeError(err, watched.reason())
	}
	return conn, nil
}

// handshakeError corrects the library's guess. It takes every end of the handshake without
// an answer for a wrong password. That is right if the broker closed the connection.
func (e *endpoint) handshakeError(err, end error) error {
	if said, ok := errors.AsType[*amqp.Error](err); ok && said.Server {
		return err
	}
	var timed net.Error
	switch {
	case e.isCut():
		return silent("%w", e.cause)
	case errors.As(end, &timed) && timed.Timeout():
		return silent("RabbitMQ: the server did not finish the handshake within %s", handshakeTimeout)
	}
	return err
}

// ending is a connection that keeps the first error of its reads.
type ending struct {
	net.Conn
	mu  sync.Mutex
	err error // guarded by mu
}

func (c *ending) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.mu.Lock()
		if c.err == nil {
			c.err = err
		}
		c.mu.Unlock()
	}
	return n, err
}

func (c *ending) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// publish leaves the message to a goroutine of its own, for the library knows
// no context. That one ends with the broker's answer or with the connection,
// which a broker that hangs loses after three heartbeats.
func (b *rabbitMQ) publish(ctx context.Context, m *noun.Message) error {
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return silent("%d messages wait for the broker's confirm already: %w", rabbitChannels, ctx.Err())
	}
	done := make(chan error, 1)
	b.work.Go(func() {
		defer func() { <-b.slots }()
		done <- b.confirm(m)
	})
	select {
	case err := <-done:
		return rabbitError(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *rabbitMQ) confirm(m *noun.Message) error {
	channel, err := b.channel()
	if err != nil {
		return err
	}
	headers := amqp.Table{"x-deduplication-header": m.ID}
	for _, h := range m.AllHeaders() {
		headers[h.Name] = h.Value
	}
	const mandatory, immediate = true, false
	answer, err := channel.PublishWithDeferredConfirm(m.Target.Exchange, m.Target.RoutingKey, mandatory, immediate, amqp.Publishing{
		Headers: headers, ContentType: m.ContentType, DeliveryMode: amqp.Persistent, MessageId: m.ID, AppId: "carillon", Body: m.Body,
	})
	if err != nil {
		_ = channel.Close() // the library may not have closed it
		return err
	}
	select {
	case <-answer.Done():
	case why := <-channel.closed:
		return closedBecause(why)
	}
	// Whatever the broker sent before its confirm is there by now.
	select {
	case why := <-channel.closed:
		return closedBecause(why)
	case back := <-channel.returned:
		b.idle <- channel
		return permanent("no queue takes the message (exchange %q, routing key %q): %s", back.Exchange, back.RoutingKey, back.ReplyText)
	default:
	}
	b.idle <- channel
	if !answer.Acked() {
		return retryable("RabbitMQ did not take the message (nack)")
	}
	return nil
}

// channel returns one that nobody uses.
func (b *rabbitMQ) channel() (*rabbitChannel, error) {
	for {
		select {
		case c := <-b.idle:
			if !c.IsClosed() {
				return c, nil
			}
			continue
		default:
		}
		opened, err := b.conn.Channel()
		if err != nil {
			return nil, err
		}
		c := &rabbitChannel{opened, make(chan amqp.Return, 1), make(chan *amqp.Error, 1)}
		opened.NotifyReturn(c.returned)
		opened.NotifyClose(c.closed)
		if err := opened.Confirm(false); err != nil {
			return nil, err
		}
		return c, nil
	}
}

func closedBecause(why *amqp.Error) error {
	if why == nil {
		return silent("the connection to RabbitMQ was closed before the confirm")
	}
	return why
}

// rabbitError sorts out what the broker says, by the codes of AMQP 0-9-1
// (section 1.2 of its specification).
func rabbitError(err error) error {
	var said *amqp.Error
	if !errors.As(err, &said) {
		return err
	}
	switch said.Code {
	case amqp.NotFound, amqp.AccessRefused, amqp.NotAllowed, amqp.PreconditionFailed, amqp.ContentTooLarge, amqp.InvalidPath:
		return permanent("RabbitMQ: %w", err)
	default:
		return err
	}
}

func (b *rabbitMQ) broken() bool { return b.conn.IsClosed() }

// close says goodbye if the broker still listens. Nobody waits for a confirm
// any more once the connection is closed.
func (b *rabbitMQ) close() {
	_ = b.conn.CloseDeadline(time.Now().Add(time.Second))
	b.work.Wait()
}
