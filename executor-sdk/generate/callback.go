package generate

// shape is one of the four signatures of handlers.
type shape struct{ in, out bool }

var shapes = []shape{{false, false}, {true, false}, {false, true}, {true, true}}

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

// helper is the generated function that adds callbacks to this shape.
func (s shape) helper() string {
	switch s {
	case shape{false, false}:
		return "carillonFunc"
	case shape{true, false}:
		return "carillonIn"
	case shape{false, true}:
		return "carillonOut"
	default:
		return "carillonInOut"
	}
}

// callbackHelpers are written into the generated file as needed. Type
// inference lets them work without naming, and so importing, the user's types.
var callbackHelpers = map[shape]string{
	{false, false}: `
func carillonFunc(fn func(context.Context) error, succeeded func(context.Context), failed func(context.Context, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := carillonAttempt(ctx, func() (struct{}, error) { return struct{}{}, fn(ctx) }, carillonNoOutput(succeeded), failed)
		return err
	}
}
`,
	{true, false}: `
func carillonIn[In any](fn func(context.Context, In) error, succeeded func(context.Context), failed func(context.Context, error)) func(context.Context, In) error {
	return func(ctx context.Context, in In) error {
		_, err := carillonAttempt(ctx, func() (struct{}, error) { return struct{}{}, fn(ctx, in) }, carillonNoOutput(succeeded), failed)
		return err
	}
}
`,
	{false, true}: `
func carillonOut[Out any](fn func(context.Context) (Out, error), succeeded func(context.Context, Out), failed func(context.Context, error)) func(context.Context) (Out, error) {
	return func(ctx context.Context) (Out, error) {
		return carillonAttempt(ctx, func() (Out, error) { return fn(ctx) }, succeeded, failed)
	}
}
`,
	{true, true}: `
func carillonInOut[In, Out any](fn func(context.Context, In) (Out, error), succeeded func(context.Context, Out), failed func(context.Context, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		return carillonAttempt(ctx, func() (Out, error) { return fn(ctx, in) }, succeeded, failed)
	}
}
`,
}

// callbackNoOutput goes with the helpers of handlers without output.
const callbackNoOutput = `
func carillonNoOutput(succeeded func(context.Context)) func(context.Context, struct{}) {
	if succeeded == nil {
		return nil
	}
	return func(ctx context.Context, _ struct{}) { succeeded(ctx) }
}
`

// callbackCore goes with any of the helpers. A panic is noticed without
// recover, so that the SDK still sees it with the stack of its origin.
const callbackCore = `
// errCarillonPanic is what a failure callback gets when its handler panicked.
var errCarillonPanic = errors.New("the handler panicked")

// carillonAttempt runs one attempt and then its callbacks.
func carillonAttempt[Out any](ctx context.Context, run func() (Out, error), succeeded func(context.Context, Out), failed func(context.Context, error)) (Out, error) {
	result := errCarillonPanic // until run has returned
	defer func() {
		if result != nil && failed != nil {
			failed(context.WithoutCancel(ctx), result)
		}
	}()
	out, err := run()
	result = err
	if err == nil && succeeded != nil {
		succeeded(ctx, out)
	}
	return out, err
}
`

// reserved are the names that generated code may declare besides Register….
var reserved = []string{
	"carillonFunc", "carillonIn", "carillonOut", "carillonInOut",
	"carillonNoOutput", "carillonAttempt", "errCarillonPanic",
}
