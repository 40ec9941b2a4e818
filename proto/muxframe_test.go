package proto_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

func TestMuxHeader(t *testing.T) {
	open := proto.MuxHeader{0, proto.MuxWindowUpdate, 0, proto.MuxFlagSYN, 0, 0, 0, 1, 0, 0, 1, 9}
	require.True(t, open.Opens())
	require.EqualValues(t, proto.MuxWindowUpdate, open.Type())
	require.EqualValues(t, 265, open.Length())
	ping := proto.MuxHeader{0, proto.MuxPing, 0, proto.MuxFlagSYN}
	require.False(t, ping.Opens(), "a ping opens no stream")
}
