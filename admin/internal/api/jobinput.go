package api

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/jsonschema"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// checkInput refuses an input that does not fit the handler's schema, at each
// field that does not. whose goes before the message: empty, or for an input
// that the request does not hold.
func checkInput(h *domain.Handler, input []byte, whose string) error {
	s := jsonschema.Read(h.InputSchema)
	if s == nil {
		return nil
	}
	if len(input) == 0 {
		if input = []byte("null"); s.Object() {
			input = []byte("{}") // as executors take it
		}
	}
	misfits := s.Check(input)
	if len(misfits) == 0 {
		return nil
	}
	out := &domain.Error{Code: domain.CodeUnfitInput}
	for _, m := range misfits {
		location := "body.input"
		if m.Path != "" {
			location += "." + m.Path
			if m.Path[0] == '[' {
				location = "body.input" + m.Path
			}
		}
		out.Fields = append(out.Fields, domain.FieldError{
			Location: location, Message: whose + m.Message, Position: -1, Hint: m.Hint, Pointer: m.Pointer,
		})
	}
	first := out.Fields[0]
	out.Message = "the input does not fit the handler " + quoted(h.Name) + ": " + first.Location + " " + first.Message
	if first.Hint != "" {
		out.Message += "; " + first.Hint
	}
	return out
}

func quoted(name string) string { return `"` + name + `"` }

// checkRunInput checks what a run of the job would get: input, or without one
// the job's own. A handler that is not known is believed, as it was when the
// job was saved.
func (a *API) checkRunInput(ctx context.Context, v store.JobView, input []byte, allowUnfit bool) error {
	if allowUnfit {
		return nil
	}
	h, err := a.deps.Store.FindHandler(ctx, v.TenantID, v.Executor, v.Spec.Handler)
	if domain.Is(err, domain.CodeNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	whose := ""
	if input == nil && v.Spec.Input != nil {
		input, whose = v.Spec.Input, "in the job's own input: "
	}
	return checkInput(&h, input, whose)
}
