package proxy

import (
	"math/rand/v2"
	"time"
)

// Poor is a path that carries little, and loses some of it. What TCP makes of
// a loss is told here: the segment and all behind it come a retransmission
// timeout later, which doubles while the same segment is lost again.
type Poor struct {
	// BytesPerSecond each way; 0 = no limit.
	BytesPerSecond int
	// Loss is the share of segments that is lost.
	Loss float64
}

const (
	segment = 1460
	// timeout is the least that Linux waits before it sends a segment again.
	timeout = 200 * time.Millisecond
)

// Impair makes the path poor; nil heals it.
func (p *Proxy) Impair(poor *Poor) { p.poor.Store(poor) }

// gather takes what else waits: a sender that is held up fills its segments.
func gather(data []byte, line <-chan piece) []byte {
	for len(data) < 64<<10 {
		select {
		case next, ok := <-line:
			if !ok {
				return data
			}
			data = append(data, next.data...)
		default:
			return data
		}
	}
	return data
}

// carry waits as long as the data is under way; false when the link ended.
func (p *Poor) carry(data []byte, dead <-chan struct{}) bool {
	took := time.Duration(0)
	if p.BytesPerSecond > 0 {
		took = time.Duration(len(data)) * time.Second / time.Duration(p.BytesPerSecond)
	}
	for range (len(data) + segment - 1) / segment {
		for again := timeout; rand.Float64() < p.Loss; again *= 2 {
			took += again
		}
	}
	if took == 0 {
		return true
	}
	select {
	case <-time.After(took):
		return true
	case <-dead:
		return false
	}
}
