package gateway

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

// Texts of which our SDK says little may be as large as a frame: what is kept of
// them is bounded.
func TestNobodyKeepsTextsAsLargeAsAFrame(t *testing.T) {
	h := &hoarder{}
	b := startWith(t, func(o *Options) { h.recorder = o.Sink.(*recorder); o.Sink = h })
	p := b.join(bootA, 4)
	long := strings.Repeat("x", proto.MaxFrame/4)
	p.send(p.command, commandFrame(&proto.AnswerBatch{Answers: []*proto.Answer{{ExecutionId: 1, RejectCode: long, Message: long}}}))
	p.send(p.command, commandFrame(&proto.ResultBatch{Results: []*proto.Result{{ExecutionId: 1, ErrorKind: long, Error: long, Stack: long}}}))
	p.send(p.command, &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Progress{Progress: &proto.ProgressBatch{Progress: []*proto.Progress{{ExecutionId: 1, Message: long}}}}})
	waitFor(t, "all of it is here", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.answers == 1 && h.results == 1 && h.progress == 1
	})
	_, _, _, bytes := h.has()
	require.Less(t, bytes, 3*proto.MaxErrorText)
	require.Equal(t, "xx", cut("xx€", 4), "no half of a character")
}

// What fits stays as it is.
func TestTrimLeavesWhatFits(t *testing.T) {
	for _, m := range []*proto.CommandToAdmin{
		commandFrame(&proto.AnswerBatch{Answers: []*proto.Answer{{RejectCode: "busy", Message: "no room"}}}),
		commandFrame(&proto.ResultBatch{Results: []*proto.Result{{ErrorKind: "retryable", Error: strings.Repeat("e", proto.MaxErrorText), Output: make([]byte, proto.MaxOutput)}}}),
	} {
		want := gproto.Clone(m)
		trim(m)
		require.True(t, gproto.Equal(want, m))
	}
}
