package main

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/carillon-sched/carillon/proto"
)

// pipe is what takes offers and returns results. One goroutine uses it.
type pipe interface {
	send(first, n int) error
	// receive returns how many results came, at least one.
	receive(ctx context.Context) (int, error)
}

// trips are measured round trips.
type trips struct {
	done   int
	took   time.Duration
	micros []float64 // of each frame, from the sending to its first result; one run at a time only
}

func (t *trips) perSecond() float64 { return float64(t.done) / t.took.Seconds() }

// roundTrips sends for as long as window, in frames of so many, and waits for
// everything. One run at a time means that; in larger frames as many are under
// way as there are slots.
func roundTrips(ctx context.Context, p pipe, frame int, window time.Duration) (*trips, error) {
	limit := frame
	if frame > 1 {
		limit = underWay
	}
	t := &trips{}
	sent, began := 0, time.Now()
	for time.Since(began) < window {
		start := time.Now()
		for sent-t.done+frame <= limit {
			if err := p.send(sent, frame); err != nil {
				return nil, err
			}
			sent += frame
		}
		n, err := p.receive(ctx)
		if err != nil {
			return nil, err
		}
		t.done += n
		if frame == 1 {
			t.micros = append(t.micros, float64(time.Since(start).Nanoseconds())/1000)
		}
	}
	for t.done < sent {
		n, err := p.receive(ctx)
		if err != nil {
			return nil, err
		}
		t.done += n
	}
	t.took = time.Since(began)
	return t, nil
}

// wireFloor sends the same frames over a yamux stream on loopback to a
// goroutine that answers each frame of offers with one of results.
func wireFloor(ctx context.Context, frame int, window time.Duration) (_ *trips, err error) {
	near, far, err := muxPair(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, near.Close(), far.Close()) }()
	stop := context.AfterFunc(ctx, func() { _ = near.Close() }) // ends all reads
	defer stop()
	echoed := make(chan error, 1)
	go func() { echoed <- echo(far) }() // until the stream is closed, below
	stream, err := near.Open()
	if err != nil {
		return nil, err
	}
	out, err := roundTrips(ctx, &plainPipe{stream: stream, reader: proto.NewReader(stream, proto.MaxFrame)}, frame, window)
	if closeErr := stream.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	return out, <-echoed
}

// muxPair is both ends of a session over TCP.
func muxPair(ctx context.Context) (near, far *yamux.Session, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	dialed, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	accepted, err := l.Accept()
	if err != nil {
		return nil, nil, errors.Join(err, dialed.Close())
	}
	config := yamux.DefaultConfig()
	config.LogOutput = io.Discard
	if near, err = yamux.Client(dialed, config); err != nil {
		return nil, nil, errors.Join(err, dialed.Close(), accepted.Close())
	}
	if far, err = yamux.Server(accepted, config); err != nil {
		return nil, nil, errors.Join(err, near.Close(), accepted.Close())
	}
	return near, far, nil
}

// echo answers frames of offers until the stream ends.
func echo(s *yamux.Session) error {
	stream, err := s.Accept()
	if err != nil {
		return err
	}
	defer stream.Close()
	reader := proto.NewReader(stream, proto.MaxFrame)
	for {
		var m proto.CommandToExecutor
		if err := reader.Next(&m); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		results := make([]*proto.Result, len(m.GetOffers().GetOffers()))
		for i, o := range m.GetOffers().GetOffers() {
			results[i] = &proto.Result{ExecutionId: o.ExecutionId, Fence: o.Fence, Outcome: proto.Outcome_OUTCOME_SUCCEEDED, StartedAtMs: o.FireAtMs}
		}
		answer := &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{Results: &proto.ResultBatch{Results: results}}}
		if err := proto.WriteFrame(stream, answer, proto.MaxFrame); err != nil {
			return err
		}
	}
}

// plainPipe is a stream with frames and nothing else.
type plainPipe struct {
	stream net.Conn
	reader *proto.Reader
}

func (p *plainPipe) send(first, n int) error {
	offers := make([]*proto.Offer, n)
	for i := range offers {
		offers[i] = offerOf(first + i)
	}
	m := &proto.CommandToExecutor{Body: &proto.CommandToExecutor_Offers{Offers: &proto.OfferBatch{Offers: offers}}}
	return proto.WriteFrame(p.stream, m, proto.MaxFrame)
}

func (p *plainPipe) receive(ctx context.Context) (int, error) {
	var m proto.CommandToAdmin
	if err := p.reader.Next(&m); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return 0, err
	}
	return len(m.GetResults().GetResults()), nil
}
