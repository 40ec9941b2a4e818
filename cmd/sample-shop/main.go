// Command sample-shop is an application as a user of Carillon would write it:
// a small shop with its own database, which embeds the executor SDK and leaves
// its timed work to Carillon.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/cmd/sample-shop/internal/shop"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sample-shop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("sample-shop", flag.ContinueOnError)
	data := flags.String("data", "shop-data", "folder for the shop's database, its reports and the executor's journal")
	name := flags.String("name", "sample-shop", "executor name")
	addresses := flags.String("executors", "", "addresses of admin nodes, comma separated (default: CARILLON_EXECUTOR_ADDRESSES)")
	api := flags.String("api", os.Getenv("CARILLON_URL"), "address of Carillon's API (CARILLON_URL); empty: no new orders")
	unpaid := flags.Duration("unpaid-after", time.Minute, "how long an order may stay unpaid")
	if err := flags.Parse(args); err != nil {
		return err
	}
	// What handlers log with slog goes to their run's log too.
	slog.SetDefault(slog.New(executor.LogHandler(slog.NewTextHandler(os.Stderr, nil))))

	business, err := shop.Open(ctx, *data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, business.Close()) }()
	ex, err := executor.New(executor.Config{
		// The join token, and the addresses unless given, come from CARILLON_EXECUTOR_….
		Name: *name, Addresses: strings.FieldsFunc(*addresses, func(r rune) bool { return r == ',' }),
		JournalDir: filepath.Join(*data, "journal"), Version: "1.0.0", Slots: 16,
	})
	if err != nil {
		return err
	}
	shop.RegisterOrders(ex, &shop.Orders{Shop: business, Reports: filepath.Join(*data, "reports")})
	shop.RegisterStock(ex, &shop.Stock{Shop: business})
	shop.RegisterShelves(ex, &shop.Shelves{Shop: business})

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return ex.Run(ctx) })
	if *api != "" {
		carillon := &delayedRuns{base: strings.TrimRight(*api, "/"), key: os.Getenv("CARILLON_API_KEY")}
		group.Go(func() error {
			return business.Customers(ctx, func(ctx context.Context, order int64) error {
				return carillon.cancelUnpaid(ctx, order, *unpaid)
			})
		})
	}
	return group.Wait()
}
