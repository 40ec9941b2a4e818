package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/proxy"
)

type CloseDay struct {
	Day string `json:"day"`
}

type Report struct {
	Orders int `json:"orders"`
}

func ExampleCall() {
	client, err := proxy.New(proxy.Config{URL: "https://carillon.internal", Key: "ck_…"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	report, err := proxy.Call[Report](ctx, client, "shop", "close-day", CloseDay{Day: "2026-11-20"}, proxy.Attempts(3))
	var failed *proxy.RunError
	if errors.As(err, &failed) {
		fmt.Println("the run", failed.Run, "ended as", failed.State, failed.Message)
		return
	}
	fmt.Println(report, err)
}

func ExampleStart() {
	client, err := proxy.New(proxy.Config{}) // CARILLON_URL, CARILLON_API_KEY
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	run, err := proxy.Start[Report](ctx, client, "shop", "close-day", CloseDay{Day: "2026-11-20"}, proxy.Key("close-2026-11-20"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if status, err := run.Status(ctx); err == nil {
		fmt.Println(run.ID(), status.State, status.Percent)
	}
	report, err := run.Wait(ctx)
	fmt.Println(report, err)
}
