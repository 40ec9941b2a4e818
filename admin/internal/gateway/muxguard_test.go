package gateway

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

func frameOf(kind byte, flags uint16, stream, length uint32, data ...byte) []byte {
	out := []byte{0, kind}
	out = binary.BigEndian.AppendUint16(out, flags)
	out = binary.BigEndian.AppendUint32(out, stream)
	out = binary.BigEndian.AppendUint32(out, length)
	return append(out, data...)
}

func TestGuard(t *testing.T) {
	type event struct {
		every time.Duration
		n     int
		bytes []byte
	}
	began := time.Unix(1_800_000_000, 0)
	const ms = time.Millisecond
	ping := frameOf(proto.MuxPing, proto.MuxFlagSYN, 0, 1)
	update := frameOf(proto.MuxWindowUpdate, 0, 1, 128<<10)
	open := func(id uint32) []byte { return frameOf(proto.MuxWindowUpdate, proto.MuxFlagSYN, id, 0) }
	data := func(flags uint16, id uint32) []byte { return frameOf(proto.MuxData, flags, id, 1, 'x') }
	last := func(flags uint16) []byte { return frameOf(proto.MuxWindowUpdate, flags, 1, 0) }
	opened := event{0, 1, open(1)}
	for name, c := range map[string]struct {
		events []event
		want   string
	}{
		"an honest session":                        {[]event{{0, 1, open(1)}, {0, 1, open(3)}, {100 * ms, 1000, ping}, {ms, 1000, update}}, ""},
		"a pause does not save up":                 {[]event{{time.Hour, 1, ping}, {0, 39, ping}, {0, 1, ping}}, "20 pings"},
		"pings at the limit":                       {[]event{{50 * ms, 2000, ping}}, ""},
		"pings over the limit":                     {[]event{{40 * ms, 2000, ping}}, "20 pings"},
		"a third stream":                           {[]event{{0, 1, open(1)}, {0, 1, open(3)}, {time.Hour, 1, open(5)}}, "third stream"},
		"a third stream with data":                 {[]event{{0, 1, open(1)}, {0, 1, open(3)}, {0, 1, frameOf(proto.MuxData, proto.MuxFlagSYN, 5, 1, 'x')}}, "third stream"},
		"a stream that was reset":                  {[]event{{0, 3, frameOf(proto.MuxWindowUpdate, proto.MuxFlagSYN|8, 1, 0)}}, "third stream"},
		"more than a window":                       {[]event{opened, {0, 1, frameOf(proto.MuxData, 0, 1, maxWindow+1)}}, "262145 bytes"},
		"4 GB announced":                           {[]event{opened, {0, 1, frameOf(proto.MuxData, 0, 1, 0xffffffff)}}, "4294967295 bytes"},
		"a window is no flood":                     {[]event{opened, {0, 3, frameOf(proto.MuxData, 0, 1, maxWindow, make([]byte, maxWindow)...)}}, ""},
		"data that looks like pings":               {[]event{opened, {0, 100, frameOf(proto.MuxData, 0, 1, 12, ping...)}}, ""},
		"frames that carry nothing":                {[]event{opened, {0, 4001, frameOf(proto.MuxData, 0, 1, 0)}}, "without data"},
		"updates without end":                      {[]event{opened, {0, 4001, update}}, "without data"},
		"data of a stream that was not opened":     {[]event{{0, 1, data(0, 1)}}, "stream 1, which is not open"},
		"data of another stream":                   {[]event{opened, {0, 10, data(0, 1)}, {0, 1, data(0, 3)}}, "stream 3, which is not open"},
		"data of an even stream":                   {[]event{opened, {0, 1, data(0, 2)}}, "stream 2, which is not open"},
		"data of no stream":                        {[]event{opened, {0, 1, data(0, 0)}}, "stream 0, which is not open"},
		"a window of a stream that was not opened": {[]event{opened, {0, 1, frameOf(proto.MuxWindowUpdate, 0, 7, 1)}}, "stream 7, which is not open"},
		"data after the end":                       {[]event{opened, {0, 1, data(proto.MuxFlagFIN, 1)}, {0, 1, data(0, 1)}}, "stream 1, which is not open"},
		"data after a reset":                       {[]event{opened, {0, 1, last(proto.MuxFlagRST)}, {0, 1, data(0, 1)}}, "stream 1, which is not open"},
		"data on open streams":                     {[]event{opened, {0, 1, open(3)}, {0, 100, data(0, 1)}, {0, 100, data(0, 3)}, {0, 1, last(proto.MuxFlagFIN)}, {0, 100, data(0, 3)}}, ""},
		"farewells without end":                    {[]event{{0, 4001, frameOf(proto.MuxGoAway, 0, 0, 0)}}, "without data"},
		"updates within what is honest":            {[]event{opened, {ms, 10_000, update}}, ""},
	} {
		for _, pieces := range []int{1, 5, 1 << 20} { // bytes come in any portions
			var g guard
			now := began
			var err error
			for _, e := range c.events {
				for range e.n {
					now = now.Add(e.every)
					for rest := e.bytes; len(rest) > 0 && err == nil; {
						n := min(pieces, len(rest))
						err = g.pass(rest[:n], now)
						rest = rest[n:]
					}
				}
			}
			if c.want == "" {
				require.NoError(t, err, name)
			} else {
				require.ErrorContains(t, err, c.want, name)
			}
		}
	}
}
