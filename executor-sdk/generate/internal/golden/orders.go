// Package golden is the sample whose generated files are checked in: a change
// of the generator shows here as a diff, and the compiler judges the output.
// Refresh with go generate.
package golden

//go:generate go run ../../cmd/carillon-generate

import (
	"context"
	"errors"
	"time"
)

// Orders has one handler of each shape.
//
//carillon:timer name=shop-orders description="Orders of the shop" proxy
type Orders struct {
	Closed []Report
	Failed []error
	Done   int
}

// CloseDay is the input of the handler of the same name.
type CloseDay struct {
	Day string `json:"day"`
}

// Report is an output.
type Report struct {
	Orders int           `json:"orders"`
	Took   time.Duration `json:"took"`
}

// Close has everything a marker can say.
//
//carillon:clock name=close-day description="Closes the \"day\"" cron="0 0 2 * * *" dialect=seconds zone=Asia/Shanghai input=`{"day":"2026-11-20"}` retries=3 retry-delay=10s timeout=5m blocking=discard_later routing=random misfire=once_now owner=shop@example.com owned-by=code when-removed=delete idempotent on-success=Closed1 on-failure=Fail
//carillon:clock name=close-hour cron="0 0 * * * *" input=`{"day":""}` routing=consistent_hash routing-key=/day require-labels="zone=eu, !spot" prefer-labels=cache send-retries=0 send-delay=1s retries=1 retry-backoff=1.5 max-retry-delay=1m dispatch-timeout=30m on-lost=fail labels="team=books, env=prod" alert-on-failure=true alert-no-executor=false alert-emails=ops@example.com alert-webhook=https://alerts.example.com/hook misfire=all misfire-threshold=1m misfire-window=2h misfire-max-runs=7 start-at=2026-01-01T00:00:00Z
func (o *Orders) Close(_ context.Context, in CloseDay) (Report, error) {
	if in.Day == "" {
		return Report{}, errors.New("no day")
	}
	return Report{Orders: len(in.Day)}, nil
}

// Closed1 is called after a close that succeeded.
func (o *Orders) Closed1(_ context.Context, r Report) { o.Closed = append(o.Closed, r) }

// Fail is called after a run that failed.
func (o *Orders) Fail(_ context.Context, err error) { o.Failed = append(o.Failed, err) }

// Finished is called after handlers without output. It is tried again.
func (o *Orders) Finished(context.Context) error {
	if o.Done++; o.Done == 1 {
		return errors.New("the first time it fails")
	}
	return nil
}

// Sweep has neither input nor output.
//
//carillon:clock name=sweep every=90s blocking=parallel parallelism=3 priority=-5 weight=2 max-result=64KiB kill-grace=30s stuck=restart_process on-success=Finished
//carillon:clock name=sweep-all broadcast on-gone=move after=collect fire-timeout=1h
//carillon:clock name=sweep-slices shards=8 before=prepare
func (o *Orders) Sweep(context.Context) error { return nil }

// Cancel has only an input, and no schedule: others start it.
//
//carillon:clock name=cancel-unpaid retries=2 retry-delay=1500ms timeout=1h on-failure=Fail
func (o *Orders) Cancel(_ context.Context, in struct {
	OrderID int64 `json:"orderId"`
}) error {
	if in.OrderID < 0 {
		panic("negative order")
	}
	return nil
}
