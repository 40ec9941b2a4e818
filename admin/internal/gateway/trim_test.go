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
		commandFrame(&proto.ResultBatch{Results: []*proto.Result{{ErrorKind: "retryable", Error: strings.Repeat("e", proto.MaxErrorText), Output: []byte(`"` + strings.Repeat("x", proto.MaxOutput-2) + `"`)}}}),
	} {
		want := gproto.Clone(m)
		trim(m)
		require.True(t, gproto.Equal(want, m))
	}
}

// An output is JSON in UTF-8 after trim.
func TestOutputsAreJSON(t *testing.T) {
	long := strings.Repeat("\x01", 2*proto.MaxOutput)
	for sent, want := range map[string]string{
		"": "", `{"a":1}`: `{"a":1}`, "{\"city\":\"\xb0\xd9\"}": "{\"city\":\"\uFFFD\"}", "done": `"done"`, "\xb0": "\"\uFFFD\"",
		"[" + strings.Repeat("1,", proto.MaxOutput) + "1]": `"[1,1,`, long: `"\u0001\u0001`,
	} {
		m := commandFrame(&proto.ResultBatch{Results: []*proto.Result{{Output: []byte(sent)}}})
		trim(m)
		got := m.GetResults().GetResults()[0].Output
		require.True(t, len(got) == 0 || proto.ValidJSON(got))
		require.LessOrEqual(t, len(got), proto.MaxOutput)
		if len(sent) < 100 {
			require.Equal(t, want, string(got))
		} else {
			require.Greater(t, len(got), proto.MaxOutput/4)
			require.True(t, strings.HasPrefix(string(got), want))
		}
	}
	m := commandFrame(&proto.StepBatch{Steps: []*proto.Step{{Output: []byte("\"\xb0\"")}}})
	trim(m)
	require.Equal(t, "\"\uFFFD\"", string(m.GetSteps().GetSteps()[0].Output))
	require.Contains(t, checkRegister(&proto.Register{Slots: 1, Handlers: []*proto.Handler{{Name: "h", InputSchema: []byte("{\"title\":\"\xb0\"}")}}}), `the schemas of handler "h" must be JSON in UTF-8`)
	chunks, _ := logChunks(&peer{}, &proto.LogBatch{Chunks: []*proto.LogChunk{{Attempt: 1, FirstLine: 1, Lines: []*proto.LogLine{{Attrs: []byte("{\"a\":\"\xb0\"}")}}}}})
	require.Equal(t, "{\"a\":\"\uFFFD\"}", string(chunks[0].Lines[0].Attrs))
}
