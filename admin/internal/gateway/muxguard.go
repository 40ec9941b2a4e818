package gateway

import (
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// What one session may send through the multiplexer. An honest peer stays far
// below: it pings every 5 s, opens two streams, and sends one window update for
// each 128 KiB that it has read.
const (
	// maxPings is a second's worth; each costs the multiplexer a goroutine
	// that waits for its answer to be written.
	maxPings = 20
	// maxIdleFrames bounds frames without data, in a second.
	maxIdleFrames = 2000
	// maxStreams is how many may ever be opened: control and commands.
	maxStreams = 2
	// maxWindow is the most that a frame of data can carry.
	maxWindow = 256 << 10
)

// guard follows the multiplexer's frames as they come in and refuses floods
// before they cost anything. It reads no clock: now is given. It is not safe
// for concurrent use.
type guard struct {
	header  proto.MuxHeader
	have    int                // bytes of header that came
	skip    uint32             // bytes of data that are to come
	streams int                // that were opened
	ids     [maxStreams]uint32 // theirs; 0 = none, or one that the peer has closed
	pings   allowance
	idle    allowance
}

// pass looks at bytes in the order in which they came.
func (g *guard) pass(p []byte, now time.Time) error {
	for len(p) > 0 {
		if g.skip > 0 {
			n := min(int(g.skip), len(p))
			g.skip -= uint32(n)
			p = p[n:]
			continue
		}
		n := copy(g.header[g.have:], p)
		g.have += n
		p = p[n:]
		if g.have < proto.MuxHeaderSize {
			return nil
		}
		g.have = 0
		if err := g.frame(now); err != nil {
			return err
		}
	}
	return nil
}

func (g *guard) frame(now time.Time) error {
	length := g.header.Length()
	if g.header.Opens() {
		if g.streams++; g.streams > maxStreams {
			return &excess{codeMalformed, "the executor opened a third stream"}
		}
		g.ids[g.streams-1] = g.header.Stream()
	}
	if err := g.stream(); err != nil {
		return err
	}
	switch g.header.Type() {
	case proto.MuxPing:
		if !g.pings.take(maxPings, now) {
			return &excess{codeLimit, fmt.Sprintf("the executor sends more than %d pings in a second", maxPings)}
		}
		return nil
	case proto.MuxData:
		if length > maxWindow {
			return &excess{codeTooLarge, fmt.Sprintf("the executor announces %d bytes in one frame, more than the window of %d", length, maxWindow)}
		}
		if g.skip = length; length > 0 {
			return nil
		}
	}
	if !g.idle.take(maxIdleFrames, now) {
		return &excess{codeLimit, fmt.Sprintf("the executor sends more than %d frames without data in a second", maxIdleFrames)}
	}
	return nil
}

// stream refuses frames of streams that are not open. The multiplexer would read and
// discard them without end.
func (g *guard) stream() error {
	if g.header.Type() > proto.MuxWindowUpdate {
		return nil
	}
	id := g.header.Stream()
	at := slices.Index(g.ids[:], id)
	if id == 0 || at < 0 {
		return &excess{codeMalformed, fmt.Sprintf("the executor sends a frame of stream %d, which is not open", id)}
	}
	if g.header.Closes() {
		g.ids[at] = 0
	}
	return nil
}

// allowance is a number of events per second, of which two seconds' worth may
// be saved up. The zero value is full. It is not safe for concurrent use.
type allowance struct {
	at    time.Time // when left was true
	spent float64   // events of what was saved up
}

// take reports whether one more event is allowed now.
func (a *allowance) take(perSecond float64, now time.Time) bool {
	if passed := now.Sub(a.at).Seconds(); passed > 0 {
		a.spent, a.at = max(0, a.spent-passed*perSecond), now
	}
	if a.spent+1 > 2*perSecond {
		return false
	}
	a.spent++
	return true
}
