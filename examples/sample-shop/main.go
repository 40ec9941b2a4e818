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
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/sample-shop/internal/shop"
	"example.com/sample-shop/shopclient"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/auth"
	"github.com/carillon-sched/carillon/executor-sdk/metrics"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
	"github.com/carillon-sched/carillon/executor-sdk/tracing"
)

// version is that of the build: -ldflags "-X main.version=…". While two run at
// once, as in a rolling deploy, the handlers and jobs of the newer one count.
var version = "1.0.0"

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
	api := flags.String("api", os.Getenv("CARILLON_URL"), "addresses of Carillon's API, comma separated (CARILLON_URL); empty: no new orders")
	unpaid := flags.Duration("unpaid-after", time.Minute, "how long an order may stay unpaid")
	role := flags.String("role", "warehouse", "label of this process; slow exports go to a warehouse")
	scrapes := flags.String("metrics", "", "address for Prometheus, for example 127.0.0.1:9464; empty: none")
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
	config := executor.Config{
		// The join token or its file, and the addresses unless given, come from CARILLON_EXECUTOR_….
		Name: *name, Addresses: strings.FieldsFunc(*addresses, func(r rune) bool { return r == ',' }),
		JournalDir: filepath.Join(*data, "journal"), Version: version, Slots: 16,
		Labels: map[string]string{"role": *role}, DrainTimeout: 10 * time.Second,
	}
	ex, err := executor.New(config)
	if err != nil {
		return err
	}
	shop.RegisterOrders(ex, &shop.Orders{Shop: business, Reports: filepath.Join(*data, "reports")})
	shop.RegisterStock(ex, &shop.Stock{Shop: business})
	shop.RegisterShelves(ex, &shop.Shelves{Shop: business})
	shop.RegisterShipping(ex, &shop.Shipping{Shop: business, Carrier: &shop.Carrier{}})
	ex.Use(tracing.Interceptor(), timed, auth.Handler("ship-order", auth.Cause("api", "manual", "retry")))
	executors := []*executor.Executor{ex}
	for _, d := range departments {
		own, err := d.executor(config, ex)
		if err != nil {
			return err
		}
		if d.register(own, business); own != ex {
			own.Use(tracing.Interceptor(), timed)
			executors = append(executors, own)
		}
	}

	group, ctx := errgroup.WithContext(ctx)
	for _, one := range executors {
		group.Go(func() error { return one.Run(ctx) })
	}
	if *api != "" {
		calls, err := proxy.New(proxy.Config{URL: *api, AllowPlain: true}) // CARILLON_API_KEY or CARILLON_API_KEY_FILE
		if err != nil {
			return err
		}
		key, err := timerKey()
		if err != nil {
			return err
		}
		timers, err := proxy.New(proxy.Config{URL: *api, AllowPlain: true, Key: key})
		if err != nil {
			return err
		}
		desk := &checkout{shipping: shopclient.NewShippingProxy(calls, *name), orders: shopclient.NewOrdersTimers(timers, *name), unpaid: *unpaid}
		group.Go(func() error { return business.Customers(ctx, desk.ordered) })
	}
	if *scrapes != "" {
		group.Go(func() error { return serveMetrics(ctx, *scrapes, ex) })
	}
	return group.Wait()
}

// department is a part of the shop with an executor of its own, if there is a join token for it.
// Without one its handlers belong to the shop's executor.
type department struct {
	name, tokenVariable string
	register            func(*executor.Executor, *shop.Shop)
}

var departments = []department{
	{"warehouse", "CARILLON_WAREHOUSE_TOKEN", func(ex *executor.Executor, s *shop.Shop) { shop.RegisterWarehouse(ex, &shop.Warehouse{Shop: s}) }},
	{"catalogue", "CARILLON_CATALOGUE_TOKEN", func(ex *executor.Executor, s *shop.Shop) { shop.RegisterCatalogue(ex, &shop.Catalogue{Shop: s}) }},
	{"back-office", "CARILLON_BACK_OFFICE_TOKEN", func(ex *executor.Executor, s *shop.Shop) { shop.RegisterOffice(ex, &shop.Office{Shop: s}) }},
}

// executor returns the department's own executor, with the settings of the shop's, or the shop's.
func (d department) executor(config executor.Config, shops *executor.Executor) (*executor.Executor, error) {
	token := os.Getenv(d.tokenVariable)
	if token == "" {
		return shops, nil
	}
	config.Name, config.Token, config.JournalDir = d.name, executor.Secret(token), config.JournalDir+"-"+d.name
	return executor.New(config)
}

// timerKey is a key that may set timers and nothing else; empty: that of the calls
// is used.
func timerKey() (string, error) {
	path := os.Getenv("CARILLON_TIMER_KEY_FILE")
	if key := os.Getenv("CARILLON_TIMER_KEY"); key != "" || path == "" {
		return key, nil
	}
	raw, err := os.ReadFile(path) //nolint:gosec // whoever starts the program names its file
	return string(raw), err
}

// timed tells of handlers that took long.
func timed(ctx context.Context, next executor.Next) error {
	began := time.Now()
	err := next(ctx)
	if took := time.Since(began); took > 10*time.Second {
		executor.Logger(ctx).Warn("that took long", "took", took, "kind", executor.KindOf(err))
	}
	return err
}

// serveMetrics answers Prometheus until ctx ends.
func serveMetrics(ctx context.Context, address string, ex *executor.Executor) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics.Handler(ex))
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
