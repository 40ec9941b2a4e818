package hello

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// The sample handlers.
const (
	Hello = "sample.hello"
	Sleep = "sample.sleep"
	Fail  = "sample.fail"
)

// sleepers are the runs of sample.sleep of a tenant that a node has at once. Others are put off.
const sleepers = 16

// HelloInput is the input of sample.hello.
type HelloInput struct {
	Name string `json:"name,omitempty" maxLength:"100" doc:"Whom to greet; empty: the world"`
}

// Greeting is its output.
type Greeting struct {
	Greeting string `json:"greeting"`
}

// SleepInput is the input of sample.sleep.
type SleepInput struct {
	Seconds int `json:"seconds" minimum:"1" maximum:"60" doc:"How long the run takes"`
}

// FailInput is the input of sample.fail.
type FailInput struct {
	Message string `json:"message,omitempty" maxLength:"200" doc:"The error; empty: a text that says that it is wanted"`
}

func handlers() nodehandler.List {
	return nodehandler.List{
		{Name: Hello, Add: func(ex *executor.Executor, _ domain.TenantID, _ nodehandler.Within) {
			executor.Handle(ex, Hello, greet, executor.Idempotent(), executor.Description("A sample: greets somebody, and succeeds"))
		}},
		{Name: Sleep, Add: func(ex *executor.Executor, _ domain.TenantID, within nodehandler.Within) {
			executor.Handle(ex, Sleep, func(ctx context.Context, in SleepInput) (Greeting, error) {
				err := within(ctx, "sample handlers", sleepers, func() (nodehandler.Outcome, error) { return nodehandler.Answered, sleep(ctx, in) })
				return Greeting{fmt.Sprintf("Good morning, after %d s", in.Seconds)}, err
			}, executor.Idempotent(), executor.Description("A sample: takes some seconds with its progress, and obeys a cancel"))
		}},
		{Name: Fail, Add: func(ex *executor.Executor, _ domain.TenantID, _ nodehandler.Within) {
			executor.Handle(ex, Fail, fail, executor.Idempotent(), executor.Description("A sample: fails, so that retries and alerts can be seen"))
		}},
	}
}

func greet(ctx context.Context, in HelloInput) (Greeting, error) {
	name := in.Name
	if name == "" {
		name = "world"
	}
	executor.Logger(ctx).Info("a sample handler of an admin node greets", "name", name)
	return Greeting{"Hello, " + name + "!"}, nil
}

// sleep says how far it is each second.
func sleep(ctx context.Context, in SleepInput) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for second := 1; second <= in.Seconds; second++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			executor.Progress(ctx, 100*float64(second)/float64(in.Seconds), fmt.Sprintf("%d of %d s", second, in.Seconds))
		}
	}
	return nil
}

func fail(_ context.Context, in FailInput) (Greeting, error) {
	if in.Message == "" {
		in.Message = "this sample handler always fails"
	}
	return Greeting{}, errors.New(in.Message)
}
