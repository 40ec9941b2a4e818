package gateway

import (
	"encoding/json"
	"strings"

	"github.com/carillon-sched/carillon/proto"
)

// maxWord bounds codes and kinds, in bytes; ours have a few.
const maxWord = proto.MaxName

// trim cuts what is longer than our SDK sends it, before anybody keeps it: one
// text may be as large as a frame. What is cut is copied, so that the rest of it
// is let go. Outputs become JSON in UTF-8, because executors in other languages send
// other bytes, too.
func trim(m *proto.CommandToAdmin) {
	switch body := m.Body.(type) {
	case *proto.CommandToAdmin_Answers:
		for _, a := range body.Answers.GetAnswers() {
			a.RejectCode, a.Message = cut(a.RejectCode, maxWord), cut(a.Message, proto.MaxProgressText)
		}
	case *proto.CommandToAdmin_Results:
		for _, r := range body.Results.GetResults() {
			r.ErrorKind, r.Error, r.Stack = cut(r.ErrorKind, maxWord), cut(r.Error, proto.MaxErrorText), cut(r.Stack, proto.MaxErrorText)
			r.Output = outputOf(r.Output)
		}
	case *proto.CommandToAdmin_Steps:
		for _, s := range body.Steps.GetSteps() {
			s.Output = proto.CleanJSON(s.Output)
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

// outputOf is an output as JSON in UTF-8. If it is no JSON or too long, it becomes a JSON
// text with its beginning, which a person can read.
func outputOf(raw []byte) []byte {
	clean := proto.CleanJSON(raw)
	if len(clean) == 0 || len(clean) <= proto.MaxOutput && json.Valid(clean) {
		return clean
	}
	for most := proto.MaxOutput; ; most /= 2 {
		text, err := json.Marshal(clipText(string(clean[:min(len(clean), most)]), most))
		if err != nil || len(text) <= proto.MaxOutput {
			return text
		}
	}
}
