package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

var errInstanceGone = errors.New("the instance was declared gone; it has to register again")

// logIdle ends a log connection that says nothing; the executor dials again
// when it has lines.
const logIdle = 10 * time.Minute

// serveLogs reads log batches, stores each, and acknowledges it. One batch at
// a time: a handler that floods its log slows its own log down, and nothing else.
func (g *Gateway) serveLogs(ctx context.Context, conn net.Conn, p *peer) error {
	s := g.registry.bySession(domain.SessionID(p.session))
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
		var batch proto.LogBatch
		if err := reader.Next(&batch); err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		ack := &proto.LogAck{Seq: batch.Seq}
		if err := g.storeLogs(ctx, p, &batch); err != nil {
			ack.Error = &proto.Error{Code: "unavailable", Message: "the log could not be stored now", RetryAfterMs: 1000}
			g.log.Warn("log lines could not be stored", "executor", p.name, "err", err)
		}
		_ = conn.SetWriteDeadline(time.Now().Add(proto.WriteTimeout))
		if err := proto.WriteFrame(conn, ack, proto.MaxHello); err != nil {
			return fmt.Errorf("write log ack: %w", err)
		}
	}
}

func (g *Gateway) storeLogs(ctx context.Context, p *peer, batch *proto.LogBatch) error {
	chunks := make([]domain.LogChunk, 0, len(batch.Chunks))
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
				Number: c.FirstLine + int64(i), Attempt: int(c.Attempt),
				At: time.UnixMilli(l.AtMs).UTC(), Level: int(l.Level), Message: l.Message, Attrs: l.Attrs,
			}
		}
		chunks = append(chunks, chunk)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	dropped, err := g.opt.Logs.AppendLogChunks(ctx, p.tenant, p.executor, chunks)
	if dropped > 0 {
		g.log.Warn("log chunks of unknown executions dropped", "executor", p.name, "chunks", dropped)
	}
	return err
}
