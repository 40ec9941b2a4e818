package gateway

import (
	"errors"
	"time"

	"github.com/hashicorp/yamux"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

const (
	// smallFrame is what a frame may have, in bytes, without a share of what its
	// tenant may have in memory (maxTenantFrames).
	smallFrame = 32 << 10
	// smallControl is the same on the control stream, where items of two bytes
	// may be a hundred when decoded. Heartbeats are far below.
	smallControl = 1 << 10
	// decodedControl is about how much larger a registration is when decoded, with
	// the catalogue that is made of it.
	decodedControl = 4
)

// frameTime is how long a large frame may take from its header to its end: as
// long as a line of 128 kbit/s needs, and a write may be late.
func frameTime(size int) time.Duration {
	return proto.WriteTimeout + time.Duration(size)*time.Second/(16<<10)
}

// weightOf is what a frame of this size takes of its tenant's memory, if it is not
// small.
func weightOf(size, small, weight int) int {
	if size <= small {
		return 0
	}
	return weight
}

// inbox reads the frames of one of a session's streams.
type inbox struct {
	s      *Session
	stream *yamux.Stream
	reader *proto.Reader
	// cost is what a frame takes of the tenant's pace beside its size; 0 = small
	// frames take nothing, for heartbeats wait for nobody.
	cost int
}

var errEnded = errors.New("the session has ended")

// next reads a frame into m and hands it on. weight says how much of its
// tenant's memory it takes, given its size: it waits for that, and for the
// tenant's pace, before any memory is taken, and gives it back when use has
// returned.
func (in *inbox) next(m gproto.Message, weight func(size int) int, use func() error) error {
	size, err := in.reader.Announced()
	if err != nil {
		return err
	}
	w := int64(min(weight(size), maxTenantFrames))
	if (w > 0 || in.cost > 0) && !in.s.waitTurn(size+in.cost) {
		return errEnded
	}
	if w > 0 {
		if !in.s.acquire(in.s.account.frames, w) {
			return errEnded
		}
		defer in.s.account.frames.Release(w)
		_ = in.stream.SetReadDeadline(time.Now().Add(frameTime(size)))
		defer func() { _ = in.stream.SetReadDeadline(time.Time{}) }()
	}
	if err := in.reader.Next(m); err != nil {
		return err
	}
	return use()
}
