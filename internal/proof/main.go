// Command proof runs a small fleet of real processes, breaks it, and compares
// what should have happened with what handlers wrote down themselves.
//
//	go run ./internal/proof failover            # two admins, one of them killed and restarted
//	go run ./internal/proof failover -jobs 50 -for 30s
//
// It starts a private MariaDB, two admin nodes and two executors, gives them
// jobs that fire every second for the whole time, kills one admin with SIGKILL
// in the middle and starts it again. Afterwards it counts: fire times
// expected, rows written, handlers started, doubles, and how late each was.
// The handlers' own file is the witness; our tables are only compared with it.
// Everything runs on loopback and stops by itself.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("which proof? failover, or executor (used by itself)")
	}
	switch args[0] {
	case "failover":
		return failover(ctx, args[1:])
	case "executor":
		return witness(ctx, args[1:])
	default:
		return fmt.Errorf("there is no proof called %q", args[0])
	}
}
