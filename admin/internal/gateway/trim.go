package gateway

import (
	"bytes"
	"strings"

	"github.com/carillon-sched/carillon/proto"
)

// maxWord bounds codes and kinds, in bytes; ours have a few.
const maxWord = proto.MaxName

// trim cuts what is longer than our SDK sends it, before anybody keeps it: one
// text may be as large as a frame. What is cut is copied, so that the rest of it
// is let go.
func trim(m *proto.CommandToAdmin) {
	switch body := m.Body.(type) {
	case *proto.CommandToAdmin_Answers:
		for _, a := range body.Answers.GetAnswers() {
			a.RejectCode, a.Message = cut(a.RejectCode, maxWord), cut(a.Message, proto.MaxProgressText)
		}
	case *proto.CommandToAdmin_Results:
		for _, r := range body.Results.GetResults() {
			r.ErrorKind, r.Error, r.Stack = cut(r.ErrorKind, maxWord), cut(r.Error, proto.MaxErrorText), cut(r.Stack, proto.MaxErrorText)
			if len(r.Output) > proto.MaxOutput {
				r.Output = bytes.Clone(r.Output[:proto.MaxOutput])
			}
		}
	case *proto.CommandToAdmin_Progress:
		for _, p := range body.Progress.GetProgress() {
			p.Message = cut(p.Message, proto.MaxProgressText)
		}
	}
}

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.Clone(clipText(s, limit))
}
