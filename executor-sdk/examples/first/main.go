// First is the smallest application with a handler: the one of the README.
package main

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

type Greeting struct {
	Name string `json:"name" doc:"whom to greet" required:"true"`
}

type Reply struct {
	Text string `json:"text"`
}

func greet(ctx context.Context, in Greeting) (Reply, error) {
	executor.Logger(ctx).Info("greeting", "name", in.Name)
	return Reply{Text: "Hello, " + in.Name + "!"}, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	ex, err := executor.New(executor.Config{Name: "first"})
	if err != nil {
		log.Fatal(err)
	}
	executor.Handle(ex, "greet", greet,
		executor.Description("says hello"),
		executor.Cron("*/5 * * * *"), executor.Input(Greeting{Name: "world"}))
	if err := ex.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
