package timers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/proxy"
	"github.com/carillon-sched/carillon/executor-sdk/timers"
)

func Example() {
	client, err := proxy.New(proxy.Config{URL: "https://carillon.internal", Key: "ck_…"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	cancelOrder := timers.New[CancelOrder](client, "shop", "cancel-order")
	_, err = cancelOrder.After(ctx, 30*time.Minute, CancelOrder{Order: 77}, timers.Key("order-77"))
	if err != nil {
		fmt.Println(err)
		return
	}

	_, err = cancelOrder.Reschedule(ctx, "order-77", timers.After(time.Hour))
	if errors.Is(err, timers.ErrStarted) || errors.Is(err, timers.ErrEnded) {
		fmt.Println("too late")
	}
	timer, err := cancelOrder.Cancel(ctx, "order-77") // it is paid
	if err == nil {
		fmt.Println(timer.State)
	}
}

func ExampleHandler_Many() {
	var client *proxy.Client
	ctx := context.Background()
	setAll := func() error {
		cancelOrder := timers.New[CancelOrder](client, "shop", "cancel-order")
		newYear := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		if _, err := cancelOrder.At(ctx, newYear, CancelOrder{Order: 78}, timers.Key("order-78")); err != nil {
			return err
		}
		answers, err := cancelOrder.Many(ctx, []timers.Item[CancelOrder]{
			{Key: "order-79", When: timers.After(30 * time.Minute), Input: CancelOrder{Order: 79}},
			{Key: "order-80", When: timers.At(newYear), Input: CancelOrder{Order: 80}},
		})
		for _, a := range answers {
			fmt.Println(a.Key, a.Outcome, a.FireAt, a.Err)
		}
		return err
	}
	_ = setAll
}

func ExampleTx() {
	var client *proxy.Client
	var db *sql.DB
	ctx := context.Background()
	place := func() error {
		cancelOrder := timers.New[CancelOrder](client, "shop", "cancel-order")

		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES (77)"); err != nil {
			return err
		}
		_, err = cancelOrder.After(ctx, 30*time.Minute, CancelOrder{Order: 77}, timers.Key("order-77"), timers.Tx(tx, timers.PostgreSQL))
		if err != nil {
			return err
		}
		return tx.Commit()
	}
	pay := func(tx *sql.Tx) (err error) { // in the transaction that notes the payment
		cancelOrder := timers.New[CancelOrder](client, "shop", "cancel-order")
		_, err = cancelOrder.Cancel(ctx, "order-77", timers.Tx(tx, timers.PostgreSQL))
		return err
	}
	send := func() error { // in one process or several, until ctx ends
		outbox, err := timers.NewOutbox(timers.OutboxConfig{Client: client, DB: db, Dialect: timers.PostgreSQL})
		if err != nil {
			return err
		}
		if err := outbox.Create(ctx); err != nil { // or the SQL of timers.Schema, in a migration
			return err
		}
		return outbox.Run(ctx)
	}
	_, _, _ = place, pay, send
}
