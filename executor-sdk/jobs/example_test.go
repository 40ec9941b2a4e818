package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/jobs"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
)

type Report struct {
	Customer int `json:"customer"`
}

func Example() {
	client, err := proxy.New(proxy.Config{URL: "https://carillon.internal", Key: "ck_…"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	reports := jobs.New(client, "shop")
	_, err = reports.Put(ctx, "report-77", jobs.Spec{
		Handler: "send-report", Input: Report{Customer: 77}, Schedule: jobs.Cron("0 8 * * MON", "Europe/Berlin"), Attempts: 3, Timeout: time.Minute,
	})
	if errors.Is(err, jobs.ErrTaken) {
		fmt.Println("another application has a job of this name")
	}

	run, err := reports.Run(ctx, "report-77", jobs.Note("asked for by mail"))
	if err == nil {
		fmt.Println(run.State)
	}
	for result, err := range reports.Results(ctx, "report-77") {
		if err != nil {
			break
		}
		fmt.Println(result.FireAt, result.State, result.Error)
	}
	_ = reports.Delete(ctx, "report-77") // the customer has left
}
