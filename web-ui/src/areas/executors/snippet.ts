// The program that a newcomer copies to connect a first executor. It uses the
// public face of the SDK only and compiles as it stands.

/**
 * The address to dial from where the browser runs: what the server tells, but
 * a node that listens on loopback or everywhere is known here by the page's host.
 */
export function executorAddress(told: string | undefined, hostname: string): string {
  const host = hostname.includes(':') ? `[${hostname}]` : hostname
  if (!told) return `${host}:7070`
  const port = told.slice(told.lastIndexOf(':') + 1)
  return /^(127\.|localhost:|\[::1?\]:|0\.0\.0\.0:)/.test(told) ? `${host}:${port}` : told
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
