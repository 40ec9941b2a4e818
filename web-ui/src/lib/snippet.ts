// The program that a newcomer copies to connect a first executor. It uses the
// public face of the SDK only and compiles as it stands.

/** The default port for executors; the server does not tell it yet. */
const EXECUTOR_PORT = 7070

export function executorAddress(hostname: string): string {
  return `${hostname.includes(':') ? `[${hostname}]` : hostname}:${EXECUTOR_PORT}`
}

export function environmentSnippet(secret: string): string {
  return `export CARILLON_EXECUTOR_TOKEN='${secret}'`
}

export function goSnippet(executor: string, address: string): string {
  return `package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

type Greeting struct {
	Name string \`json:"name"\`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	// The token is read from CARILLON_EXECUTOR_TOKEN.
	ex, err := executor.New(executor.Config{
		Name:      ${JSON.stringify(executor)},
		Addresses: []string{${JSON.stringify(address)}},
	})
	if err != nil {
		log.Fatal(err)
	}
	executor.Handle(ex, "hello", func(ctx context.Context, in Greeting) (string, error) {
		executor.Logger(ctx).Info("saying hello", "name", in.Name)
		return "hello " + in.Name, nil
	})
	if err := ex.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
`
}
