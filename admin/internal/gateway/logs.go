package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

var errLogsNotStored = errors.New("log lines could not be stored")

var errInstanceGone = errors.New("the instance was declared gone; it has to register again")

// How logs are taken. All of this is about logs alone: sessions, results and
// the database's other connections have nothing to wait for here.
const (
	// logIdle ends a log connection that says nothing; the executor dials again
	// when it has lines.
	logIdle = 10 * time.Minute
	// logFrameTime bounds how long a batch may take to arrive once it has begun.
	logFrameTime = 10 * time.Second
	// logStoreTime bounds the storing of a batch.
	logStoreTime = 10 * time.Second
	// logFrames is how many batches of all connections are stored at once: at
	// most 1 MiB each on the wire, and two or three times that when decoded.
	logFrames = 32
	// logRate and logBurst bound what one session may store, in bytes a second:
	// its executor drops with a count what is more.
	logRate, logBurst = 8 << 20, 4 << 20
	// lineCost is what a line takes beside its text: a row, numbers, a time.
	lineCost = 64
)

// logReceiver stores the logs that executors send.
type logReceiver struct {
	// fixed after construction
	sink     LogSink
	registry *registry
	tasks    *tasks
	log      *slog.Logger
	frames   chan struct{} // one token per log batch in memory
	writes   *batch.Calls[store.LogAppend, struct{}]
}

// serve reads log batches, stores each, and acknowledges it. One batch of a
// connection at a time: a handler that floods its log slows its own log down.
// What several connections have is stored together, in one transaction at a
// time, so that each gets its turn.
func (lr *logReceiver) serve(ctx context.Context, conn net.Conn, p *peer) error {
	s := lr.registry.bySession(domain.SessionID(p.session))
	if s == nil {
		return nil
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() { // ends with the session, or with this function
		select {
		case <-s.closed:
			_ = conn.Close()
		case <-stop:
		}
	}()
	reader := proto.NewReader(conn, proto.MaxFrame)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(logIdle))
		if err := reader.Await(); err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		ack, size, err := lr.takeBatch(ctx, conn, s.account, p, reader)
		if err != nil {
			if why := faultOf(err); why != nil {
				_ = conn.SetWriteDeadline(time.Now().Add(proto.WriteTimeout))
				_ = proto.WriteFrame(conn, &proto.LogAck{Error: why}, proto.MaxHello)
			}
			return err
		}
		// Late acknowledgements are what slows an executor down. After a failure
		// it has to wait for its next connection anyway.
		if ack.Error == nil {
			if err := s.logRate.WaitN(ctx, min(size, logBurst)); err != nil {
				return err
			}
		}
		_ = conn.SetWriteDeadline(time.Now().Add(proto.WriteTimeout))
		if err := proto.WriteFrame(conn, ack, proto.MaxHello); err != nil {
			return fmt.Errorf("write log ack: %w", err)
		}
		if ack.Error != nil {
			// The next batch may be here already. Storing it would make the lines
			// of this one a resend, which nobody keeps.
			return errLogsNotStored
		}
	}
}

// takeBatch reads one batch and stores it. From its header on it holds what it
// takes of its tenant's memory, and once it is there one of the node's places:
// whoever sends slowly delays nobody but himself.
func (lr *logReceiver) takeBatch(ctx context.Context, conn net.Conn, a *account, p *peer, reader *proto.Reader) (*proto.LogAck, int, error) {
	_ = conn.SetReadDeadline(time.Now().Add(logFrameTime))
	announced, err := reader.Announced()
	if err != nil {
		return nil, 0, fmt.Errorf("read log: %w", err)
	}
	weight := int64(max(announced, smallLogs))
	if err := a.logs.Acquire(ctx, weight); err != nil {
		return nil, 0, err
	}
	defer a.logs.Release(weight)
	_ = conn.SetReadDeadline(time.Now().Add(logFrameTime))
	var batch proto.LogBatch
	if err := reader.Next(&batch); err != nil {
		return nil, 0, fmt.Errorf("read log: %w", err)
	}
	select {
	case lr.frames <- struct{}{}:
		defer func() { <-lr.frames }()
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	ack := &proto.LogAck{Seq: batch.Seq}
	chunks, size := logChunks(p, &batch)
	if len(chunks) > 0 {
		_, err = lr.writes.Do(ctx, store.LogAppend{Tenant: p.tenant, Executor: p.executor, Chunks: chunks})
	}
	if err != nil {
		ack.Seq-- // of the last one that was stored
		ack.Error = &proto.Error{Code: "unavailable", Message: "the log could not be stored now", RetryAfterMs: 1000}
		lr.log.Warn("log lines could not be stored", "executor", p.name, "err", err)
		lr.tasks.tellFault(err)
	}
	return ack, size, nil
}

// logChunks translates a batch; size is what its lines take, in bytes.
func logChunks(p *peer, batch *proto.LogBatch) (chunks []domain.LogChunk, size int) {
	for _, c := range batch.Chunks {
		if len(c.Lines) == 0 || c.FirstLine < 1 || c.Attempt < 1 {
			continue
		}
		chunk := domain.LogChunk{
			TenantID: p.tenant, ExecutionID: domain.ExecutionID(c.ExecutionId),
			Attempt: int(c.Attempt), FirstLine: c.FirstLine, Lines: make([]domain.LogLine, len(c.Lines)),
		}
		for i, l := range c.Lines {
			chunk.Lines[i] = domain.LogLine{
				Number: c.FirstLine + int64(i), Attempt: int(c.Attempt), At: time.UnixMilli(l.AtMs).UTC(),
				Level: int(l.Level), Message: l.Message, Attrs: proto.CleanJSON(l.Attrs), TraceID: traceID(l.TraceId),
			}
			size += lineCost + len(l.Message) + len(l.Attrs) + len(l.TraceId)
		}
		chunks = append(chunks, chunk)
	}
	return chunks, size
}

// traceID returns a trace id as the W3C writes it, or none.
func traceID(id string) string {
	if !isHex(id) {
		return ""
	}
	return id
}

// storeLogs stores what several connections have in one transaction.
func (lr *logReceiver) storeLogs(ctx context.Context, list []store.LogAppend) ([]struct{}, error) {
	dropped, err := lr.sink.AppendLogs(ctx, list)
	if dropped > 0 {
		lr.log.Warn("log chunks of unknown executions dropped", "chunks", dropped)
	}
	return make([]struct{}, len(list)), err
}
