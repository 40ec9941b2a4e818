package generate

import "fmt"

// shape is one of the four signatures of handlers.
type shape struct{ in, out bool }

func shapeOf(c Clock) shape { return shape{in: c.Input != "", out: c.Output != ""} }

// handle is the SDK function that registers this shape.
func (s shape) handle() string {
	switch s {
	case shape{false, false}:
		return "HandleFunc"
	case shape{true, false}:
		return "HandleIn"
	case shape{false, true}:
		return "HandleOut"
	default:
		return "Handle"
	}
}

// What is appended to a clock's name to name its callbacks' handlers.
const (
	succeededSuffix = ".succeeded"
	failedSuffix    = ".failed"
)

// callbackHelpers are written into the generated file as needed. Type
// inference lets them work without naming, and so importing, the user's types.
var callbackHelpers = []struct{ name, code string }{
	{"carillonQuiet", `
// carillonQuiet is for callbacks that cannot fail.
func carillonQuiet[T any](fn func(context.Context, T)) func(context.Context, T) error {
	return func(ctx context.Context, value T) error { fn(ctx, value); return nil }
}
`},
	{"carillonPlain", `
// carillonPlain is for callbacks of handlers without output.
func carillonPlain(fn func(context.Context) error) func(context.Context, struct{}) error {
	return func(ctx context.Context, _ struct{}) error { return fn(ctx) }
}
`},
	{"carillonPlainQuiet", `
// carillonPlainQuiet is for callbacks of handlers without output that cannot fail.
func carillonPlainQuiet(fn func(context.Context)) func(context.Context, struct{}) error {
	return func(ctx context.Context, _ struct{}) error { fn(ctx); return nil }
}
`},
}

// reserved are the names that generated code may declare besides Register….
var reserved = []string{"carillonQuiet", "carillonPlain", "carillonPlainQuiet"}

// callbacks registers the handlers of a clock's callbacks.
func (w *goWriter) callbacks(c Clock) {
	if c.OnSuccess != "" {
		helper := ""
		switch {
		case c.Output == "" && c.successFails:
			helper = "carillonPlain"
		case c.Output == "":
			helper = "carillonPlainQuiet"
		case !c.successFails:
			helper = "carillonQuiet"
		}
		w.callback(c.Name+succeededSuffix, "SuccessFunc", helper, c.OnSuccess, "Follows a success of "+c.Name)
	}
	if c.OnFailure != "" {
		helper := ""
		if !c.failureFails {
			helper = "carillonQuiet"
		}
		w.callback(c.Name+failedSuffix, "FailureFunc", helper, c.OnFailure, "Follows a failure of "+c.Name)
	}
}

func (w *goWriter) callback(name, adapter, helper, method, description string) {
	function := "t." + method
	if helper != "" {
		w.helpers[helper] = true
		function = helper + "(" + function + ")"
	}
	w.printf("executor.HandleEnd(ex, %q, executor.%s(%s), executor.Description(%q))\n", name, adapter, function, description)
}

// writeHelpers appends the helpers that were used.
func (w *goWriter) writeHelpers() {
	for _, h := range callbackHelpers {
		if w.helpers[h.name] {
			w.imports["context"] = true
			w.body.WriteString(h.code)
		}
	}
}

// callbackOptions names the callbacks in the clock's job.
func callbackOptions(c Clock) []string {
	var out []string
	if c.OnSuccess != "" {
		out = append(out, fmt.Sprintf("executor.OnSuccess(%q)", c.Name+succeededSuffix))
	}
	if c.OnFailure != "" {
		out = append(out, fmt.Sprintf("executor.OnFailure(%q)", c.Name+failedSuffix))
	}
	return out
}

// longest is how long a clock's name may be, so that its callbacks' names fit too.
func longest(c Clock) int {
	if c.OnSuccess == "" && c.OnFailure == "" {
		return maxName
	}
	return maxName - max(len(succeededSuffix), len(failedSuffix))
}
