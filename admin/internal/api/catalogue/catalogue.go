package catalogue

import (
	"context"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/jsonschema"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Lenient says what of a request is believed although the catalogue does not
// have it: a job may be made before its application is deployed.
type Lenient struct{ Handler, Input bool }

// CheckHandler refuses a handler that the executor's instances never
// registered, and an input that does not fit it. A job that fires needs an
// input that fits; one that runs when asked may get it then.
func CheckHandler(ctx context.Context, from store.Executors, tenant domain.TenantID, executor domain.Executor, spec *domain.JobSpec, allow Lenient) error {
	h, err := Known(ctx, from, tenant, executor, spec.Handler, HintSave)
	switch {
	case domain.Is(err, domain.CodeUnknownHandler) && allow.Handler:
		return nil
	case err != nil || h == nil || allow.Input || spec.Input == nil && spec.Schedule.Kind == domain.ScheduleNone:
		return err
	}
	return CheckInput(h, spec.Input, "")
}

// What to do about a handler that is not known and is not misspelled.
const (
	HintSave = "save with allowUnknownHandler=true if it comes later"
	HintCall = "ask again when an instance has registered it"
)

// namesAround bounds the names that a misspelled one is compared with. They are next to it in
// the order of names.
const namesAround = 500

// Known finds one by name, and reads no other one. An executor without any catalogue is believed:
// its application may come later, and nothing is known of the handler then. hint is
// for a name that is like none that is known.
func Known(ctx context.Context, from store.Executors, tenant domain.TenantID, executor domain.Executor, name, hint string) (*domain.Handler, error) {
	h, err := from.FindHandler(ctx, tenant, executor.ID, name)
	if err == nil {
		return &h, nil
	}
	if !domain.Is(err, domain.CodeNotFound) {
		return nil, err
	}
	names, err := from.ListHandlerNames(ctx, tenant, executor.ID, name, namesAround)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	message := fmt.Sprintf("no instance of the executor %q has registered a handler %q", executor.Name, name)
	if near := spelling.Hint(name, names); near != "" {
		hint = near
	}
	return nil, &domain.Error{
		Code: domain.CodeUnknownHandler, Message: message + "; " + hint,
		Fields: []domain.FieldError{{Location: "body.handler", Message: message, Value: name, Position: -1, Hint: hint}},
	}
}

// CheckInput refuses an input that does not fit the handler's schema, at each
// field that does not. whose goes before the message: empty, or for an input
// that the request does not hold.
func CheckInput(h *domain.Handler, input []byte, whose string) error {
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

// CheckRunInput checks what a run of the job would get: input, or without one
// the job's own. A handler that is not known is believed, as it was when the
// job was saved.
func CheckRunInput(ctx context.Context, from store.Executors, v store.JobView, input []byte, allowUnfit bool) error {
	if allowUnfit {
		return nil
	}
	h, err := from.FindHandler(ctx, v.TenantID, v.Executor, v.Spec.Handler)
	if domain.Is(err, domain.CodeNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	whose := ""
	if input == nil && v.Spec.Input != nil {
		input, whose = v.Spec.Input, "in the job's own input: "
	}
	return CheckInput(&h, input, whose)
}
