package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
)

// recording is what an executor said in one session, taken apart as
// proto/SPEC.md says: hello, registration, and whole messages.
type recording struct {
	said     []byte
	hello    []byte // with the preface
	register []byte
	control  [][]byte // after the registration
	commands [][]byte
}

var errNoSession = errors.New("not a session")

const (
	prefaceSize = 10
	muxHeader   = 12
	// maxStream is less than a stream's window: a replay does not wait for more.
	maxStream = 200 << 10
)

func understand(said []byte) (*recording, error) {
	if len(said) < prefaceSize {
		return nil, errNoSession
	}
	hello, rest := message(said[prefaceSize:])
	// The multiplexer begins by opening stream 1.
	if hello == nil || !bytes.HasPrefix(rest, []byte{0, 1, 0, 1, 0, 0, 0, 1}) {
		return nil, errNoSession
	}
	r := &recording{said: slices.Clone(said), hello: slices.Clone(said[:len(said)-len(rest)])}
	streams := map[uint32][]byte{}
	for len(rest) >= muxHeader {
		kind, id, length := rest[1], binary.BigEndian.Uint32(rest[4:]), binary.BigEndian.Uint32(rest[8:])
		rest = rest[muxHeader:]
		if kind != 0 {
			continue
		}
		if int(length) > len(rest) {
			break
		}
		streams[id] = append(streams[id], rest[:length]...)
		rest = rest[length:]
	}
	for id, into := range map[uint32]*[][]byte{1: &r.control, 3: &r.commands} {
		if len(streams[id]) == 0 {
			return nil, errNoSession
		}
		for one, more := message(streams[id][1:]); one != nil; one, more = message(more) {
			*into = append(*into, one)
		}
	}
	if len(r.control) == 0 {
		return nil, errNoSession
	}
	r.register, r.control = r.control[0], r.control[1:]
	return r, nil
}

// message cuts the first message off; nil when it is not whole.
func message(p []byte) (one, rest []byte) {
	if len(p) < 8 {
		return nil, p
	}
	n := 8 + int(binary.BigEndian.Uint32(p))
	if len(p) < n {
		return nil, p
	}
	return p[:n:n], p[n:]
}

func (r *recording) verbatim(*rand.Rand) []byte { return r.said }

// doubled says each message twice.
func (r *recording) doubled(*rand.Rand) []byte {
	var twice [][]byte
	for _, m := range r.commands {
		twice = append(twice, m, m)
	}
	return r.session(append(slices.Clone(r.control), r.control...), twice)
}

// shuffled says the messages in any order.
func (r *recording) shuffled(random *rand.Rand) []byte {
	commands := slices.Clone(r.commands)
	random.Shuffle(len(commands), func(i, j int) { commands[i], commands[j] = commands[j], commands[i] })
	return r.session(r.control, commands)
}

// session puts messages together to a session of their own.
func (r *recording) session(control, commands [][]byte) []byte {
	out := slices.Clone(r.hello)
	frame := func(kind byte, flags byte, stream uint32, data []byte) {
		out = append(out, 0, kind, 0, flags)
		out = binary.BigEndian.AppendUint32(out, stream)
		out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
		out = append(out, data...)
	}
	say := func(stream uint32, messages [][]byte) {
		sum := 0
		for _, m := range messages {
			if sum += len(m); sum > maxStream {
				return
			}
			for part := range slices.Chunk(m, 16<<10) {
				frame(0, 0, stream, part)
			}
		}
	}
	frame(1, 1, 1, nil)
	frame(1, 1, 3, nil)
	frame(0, 0, 1, []byte{'C'})
	frame(0, 0, 3, []byte{'X'})
	say(1, [][]byte{r.register})
	say(3, commands)
	say(1, control)
	return out
}
