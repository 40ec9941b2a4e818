package proto_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

func TestFrameRoundTrip(t *testing.T) {
	var buf []byte
	var err error
	for seq := range int64(3) {
		buf, err = proto.AppendFrame(buf, &proto.Heartbeat{Seq: seq, Running: 7}, proto.MaxFrame)
		require.NoError(t, err)
	}
	r := proto.NewReader(bytes.NewReader(buf), proto.MaxFrame)
	for seq := range int64(3) {
		var got proto.Heartbeat
		require.NoError(t, r.Next(&got))
		require.Equal(t, seq, got.Seq)
		require.Equal(t, int32(7), got.Running)
	}
	require.ErrorIs(t, r.Next(&proto.Heartbeat{}), io.EOF)
}

func TestFrameFaults(t *testing.T) {
	good, err := proto.AppendFrame(nil, &proto.Heartbeat{Seq: 1 << 40}, proto.MaxFrame)
	require.NoError(t, err)

	flipped := bytes.Clone(good)
	flipped[len(flipped)-1] ^= 1
	huge := bytes.Clone(good)
	binary.BigEndian.PutUint32(huge, 1<<31)
	// A well-formed frame whose payload is a field key without its value.
	garbage := []byte{0, 0, 0, 1, 0, 0, 0, 0, 0x08}
	binary.BigEndian.PutUint32(garbage[4:], crc32.Checksum(garbage[8:], crc32.MakeTable(crc32.Castagnoli)))

	for name, c := range map[string]struct {
		bytes []byte
		want  error
	}{
		"flipped bit":        {flipped, proto.ErrChecksum},
		"announces 2 GiB":    {huge, proto.ErrFrameTooLarge},
		"cut in the header":  {good[:5], proto.ErrTruncated},
		"cut in the payload": {good[:len(good)-1], proto.ErrTruncated},
		"cut after header":   {good[:proto.HeaderSize], proto.ErrTruncated},
		"not a message":      {garbage, proto.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			err := proto.NewReader(bytes.NewReader(c.bytes), proto.MaxFrame).Next(&proto.Heartbeat{})
			require.ErrorIs(t, err, c.want)
		})
	}
}

// A frame's size is known before any memory is taken for it, and it can be read
// afterwards.
func TestFrameIsAnnounced(t *testing.T) {
	large := &proto.Result{Output: make([]byte, 100_000)}
	buf, err := proto.AppendFrame(nil, large, proto.MaxFrame)
	require.NoError(t, err)
	r := proto.NewReader(bytes.NewReader(append(buf, buf[:5]...)), proto.MaxFrame)
	for range 2 { // it takes nothing
		size, err := r.Announced()
		require.NoError(t, err)
		require.Equal(t, len(buf)-proto.HeaderSize, size)
	}
	var got proto.Result
	require.NoError(t, r.Next(&got))
	require.True(t, gproto.Equal(large, &got))
	_, err = r.Announced()
	require.ErrorIs(t, err, proto.ErrTruncated)

	_, err = proto.NewReader(bytes.NewReader(nil), proto.MaxFrame).Announced()
	require.ErrorIs(t, err, io.EOF)
	_, err = proto.NewReader(bytes.NewReader(buf), 99_999).Announced()
	require.ErrorIs(t, err, proto.ErrFrameTooLarge)
}

func TestFrameOverLimitIsRefusedBySender(t *testing.T) {
	before := []byte("kept")
	got, err := proto.AppendFrame(before, &proto.Result{Output: make([]byte, proto.MaxFrame)}, proto.MaxFrame)
	require.ErrorIs(t, err, proto.ErrFrameTooLarge)
	require.Equal(t, "kept", string(got))
}

func TestReadHelloTakesNoByteTooMany(t *testing.T) {
	buf, err := proto.AppendFrame(nil, &proto.ClientHello{Executor: "shop"}, proto.MaxHello)
	require.NoError(t, err)
	r := bytes.NewReader(append(buf, "mux"...))
	var hello proto.ClientHello
	require.NoError(t, proto.ReadHello(r, &hello))
	require.Equal(t, "shop", hello.Executor)
	require.Equal(t, 3, r.Len())
}

func FuzzReader(f *testing.F) {
	seed, err := proto.AppendFrame(nil, &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{
		Results: &proto.ResultBatch{Results: []*proto.Result{{ExecutionId: 1, Fence: 2, Error: "x"}}},
	}}, proto.MaxFrame)
	require.NoError(f, err)
	f.Add(seed)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := proto.NewReader(bytes.NewReader(data), 1<<16)
		for {
			var m proto.CommandToAdmin
			if err := r.Next(&m); err != nil {
				return
			}
			// What was read can be written and read again to the same message.
			again, err := proto.AppendFrame(nil, &m, proto.MaxFrame)
			require.NoError(t, err)
			var second proto.CommandToAdmin
			require.NoError(t, proto.NewReader(bytes.NewReader(again), proto.MaxFrame).Next(&second))
			require.True(t, gproto.Equal(&m, &second))
		}
	})
}
