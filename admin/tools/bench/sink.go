package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

const (
	// sinkNetwork is where the receivers of a sink are, each at an address of its
	// own and all at one port.
	sinkNetwork = "127.0.0.0/8"
	// sinkAnswer is as little as an application answers.
	sinkAnswer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{\"code\":0}"
)

func receiver(i, port int) string { return fmt.Sprintf("127.0.1.%d:%d", i+1, port) }

// sink is many receivers of callbacks in one process, which write down what came
// when. It speaks as much HTTP as a client needs: a server would cost a good part
// of what is measured.
type sink struct {
	witness *witness
	hangs   int // so many of the receivers, the first, accept and never answer
}

// serveSink is what the bench starts as receivers of callbacks.
func serveSink(ctx context.Context, args []string) (err error) {
	f := pflag.NewFlagSet("bench sink", pflag.ContinueOnError)
	port := f.Int("port", 0, "port of all receivers")
	receivers := f.Int("receivers", 100, "how many")
	hangs := f.Int("hangs", 0, "how many of them never answer")
	history := f.String("history", "", "folder of the witness file")
	if err := f.Parse(args); err != nil {
		return err
	}
	w, err := openWitness(*history, "sink")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	s := &sink{witness: w, hangs: *hangs}
	var wg sync.WaitGroup
	defer wg.Wait() // after all connections were closed
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for i := range *receivers {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", receiver(i, *port))
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = l.Close() })
		wg.Go(func() { // until ctx ends
			for {
				c, err := l.Accept()
				if err != nil {
					cancel(err)
					return
				}
				wg.Go(func() {
					defer context.AfterFunc(ctx, func() { _ = c.Close() })()
					if err := s.serve(c, i); err != nil {
						cancel(err)
					}
					_ = c.Close()
				})
			}
		})
	}
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// serve answers on one connection. Its error is one of the sink.
func (s *sink) serve(c net.Conn, receiver int) error {
	if receiver < s.hangs {
		_, _ = io.Copy(io.Discard, c)
		return nil
	}
	in := bufio.NewReader(c)
	for {
		request, err := http.ReadRequest(in)
		if err != nil {
			return nil //nolint:nilerr // the other side has closed it
		}
		now := time.Now()
		planned, err := time.Parse(time.RFC3339, request.Header.Get("Carillon-Planned-At"))
		if err != nil {
			return err
		}
		err = s.witness.add(func(b []byte) []byte { return appendArrival(b, s.witness.boot, request.Header, planned, now) })
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return nil //nolint:nilerr // the same
		}
		if _, err := io.WriteString(c, sinkAnswer); err != nil {
			return nil //nolint:nilerr // the same
		}
	}
}

// appendArrival is appendRun for a call: what its headers say.
func appendArrival(b []byte, boot string, h http.Header, planned, now time.Time) []byte {
	b = append(append(b, `{"type":"run","job":"callback","tenant":"bench","key":"`...), h.Get("Idempotency-Key")...)
	b = append(append(b, `","boot":"`...), boot...)
	b = append(append(b, `","fence":1,"attempt":`...), h.Get("Carillon-Attempt")...)
	b = strconv.AppendInt(append(b, `,"start":`...), now.UnixMicro(), 10)
	b = strconv.AppendInt(append(b, `,"end":`...), now.UnixMicro(), 10)
	b = strconv.AppendInt(append(b, `,"fireAt":`...), planned.UnixMicro(), 10)
	return append(b, "}\n"...)
}
