package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// f17 lets somebody who has listened say it all again: recorded sessions of
// executors come once more as new connections, word by word, with messages
// doubled, and with messages in another order. Nothing may change twice.
func f17(ctx context.Context, s *stage) error {
	tape := &recorder{}
	var listens []string
	err := s.open(ctx, fleetPlan{admins: 2, executors: 2, advertise: func(_ int, at string) (string, error) {
		p, err := proxy.New(at, proxy.Options{Tap: func(int64) io.Writer { return tape.next() }})
		if err != nil {
			return "", err
		}
		listens = append(listens, at)
		s.defers(p.Close)
		return p.Addr(), nil
	}})
	if err != nil {
		return err
	}
	if err := s.load(ctx, max(20, s.rate()/4)); err != nil {
		return err
	}
	if err := wait(ctx, 10*time.Second); err != nil {
		return err
	}
	// A process that is dead by then is replayed, too.
	if err := s.fault("kill", s.executors[1].name, func() error {
		s.executors[1].Kill()
		return s.startExecutor(s.executors[1])
	}); err != nil {
		return err
	}
	began := time.Now()
	random := rand.New(rand.NewPCG(17, 17))
	replays, messages := 0, 0
	for range s.rounds(20, 4) {
		for _, r := range tape.sessions() {
			for _, how := range []func(*recording, *rand.Rand) []byte{(*recording).verbatim, (*recording).doubled, (*recording).shuffled} {
				if err := replay(ctx, listens[random.IntN(len(listens))], how(r, random)); err != nil {
					return err
				}
				replays++
				messages += len(r.commands)
			}
		}
		if err := wait(ctx, time.Second); err != nil {
			return err
		}
	}
	if err := s.faults("replayed sessions", "admin", began, time.Now(), replays); err != nil {
		return err
	}
	if err := wait(ctx, 20*time.Second); err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j != nil {
		s.result.Figures["replays"], s.result.Figures["messages"] = replays, messages
		s.figure("%d sessions replayed with %d messages: none changed anything twice; lateness %s", replays, messages, j.inside)
	}
	if messages == 0 {
		err = errors.Join(err, errors.New("no message was recorded: not enough evidence"))
	}
	return err
}

// replay says it all on a new connection, and listens for a moment.
func replay(ctx context.Context, address string, what []byte) error {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	go func() { _, _ = conn.Write(what) }() // ends with the connection
	_, _ = io.Copy(io.Discard, conn)        // until the admin has had enough, or the second is over
	return nil
}

// maxTape bounds what is kept of one connection.
const maxTape = 2 << 20

// recorder keeps what clients said, connection by connection.
type recorder struct {
	mu    sync.Mutex
	tapes []*tape // guarded by mu
}

type tape struct {
	mu   sync.Mutex
	said []byte // guarded by mu
}

func (r *recorder) next() io.Writer {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &tape{}
	r.tapes = append(r.tapes, t)
	return t
}

func (t *tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, p[:min(len(p), maxTape-len(t.said))]...)
	return len(p), nil
}

// sessions are the recordings of sessions that said something.
func (r *recorder) sessions() (out []*recording) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tapes {
		t.mu.Lock()
		if one, err := understand(t.said); err == nil && len(one.commands) > 0 {
			out = append(out, one)
		}
		t.mu.Unlock()
	}
	return out
}
