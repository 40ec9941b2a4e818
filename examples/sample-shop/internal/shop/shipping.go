package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/once"
)

// Shipping sends parcels. The checkout, which knows nothing of
// this package, asks for them through package shopclient.
//
//carillon:timer description="Parcels of the sample shop" proxy=../../shopclient
type Shipping struct {
	Shop    *Shop
	Carrier *Carrier
}

// ShipInput names one order.
type ShipInput struct {
	OrderID int64 `json:"orderId" required:"true" doc:"The order to send, as soon as it is paid"`
}

// Parcel is what was sent.
type Parcel struct {
	OrderID int64  `json:"orderId"`
	Label   string `json:"label" doc:"The carrier's number"`
}

// payPatience is how long a parcel waits before it asks again whether its
// order is paid.
const payPatience = 5 * time.Second

// Ship sends the parcel of an order: it waits for the payment, buys a label
// (once, however often the rest is tried), and books the parcel out (once, even
// if two processes believe that it is their turn).
//
//carillon:clock name=ship-order blocking=parallel max-result=1KiB owner=parcels@shop.example description="Send one order when it is paid; called by the checkout"
func (s *Shipping) Ship(ctx context.Context, in ShipInput) (Parcel, error) {
	out := Parcel{OrderID: in.OrderID}
	if err := s.ready(ctx, in.OrderID); err != nil {
		return out, err
	}
	executor.Progress(ctx, 30, "buying a label")
	label, err := executor.Step(ctx, "label", func(ctx context.Context) (string, error) {
		return s.Carrier.BuyLabel(executor.TaskFrom(ctx))
	})
	if err != nil {
		return out, err
	}
	out.Label = label
	executor.Progress(ctx, 60, "waiting for the van")
	if executor.TaskFrom(ctx).Attempt == 1 && in.OrderID%5 == 0 {
		return out, executor.RetryAfter(errors.New("the van is full, the next one comes in 3 s"), 3*time.Second)
	}
	if err := executor.Guard(ctx); err != nil {
		return out, err // another process has taken over
	}
	err = s.Shop.inTx(ctx, func(tx *sql.Tx) error {
		_, err := once.Do(ctx, tx, once.Key(ctx, "parcel"), func() error {
			_, err := tx.ExecContext(ctx, "INSERT INTO parcels (order_id, label, sent_at) VALUES (?, ?, ?)", in.OrderID, label, s.Shop.now().UnixMilli())
			return err
		})
		return err
	})
	if err != nil {
		return out, fmt.Errorf("ship order %d: %w", in.OrderID, err)
	}
	executor.Progress(ctx, 100, "sent")
	executor.Logger(ctx).Info("parcel sent", "order", in.OrderID, "label", label)
	return out, nil
}

// ready says what to do with an order that cannot be sent now, or nil.
func (s *Shipping) ready(ctx context.Context, order int64) error {
	var state string
	err := s.Shop.db.QueryRowContext(ctx, "SELECT state FROM orders WHERE id = ?", order).Scan(&state)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return executor.Permanent(fmt.Errorf("there is no order %d", order))
	case err != nil:
		return err
	case state == "unpaid":
		return executor.Snooze(payPatience) // neither a failure nor an attempt
	case state == "cancelled":
		return executor.Cancelled(fmt.Errorf("order %d was cancelled", order))
	}
	return nil
}

// QuoteInput asks what a parcel costs.
type QuoteInput struct {
	OrderID int64 `json:"orderId" required:"true"`
}

// Quote is the answer.
type Quote struct {
	Cents int64 `json:"cents" doc:"What the customer pays for the parcel"`
}

// Quote says what the parcel of an order costs. The checkout waits for it.
//
//carillon:clock name=quote-parcel blocking=parallel idempotent max-result=1KiB description="What the parcel of an order costs; called by the checkout, which waits"
func (s *Shipping) Quote(ctx context.Context, in QuoteInput) (Quote, error) {
	var total int64
	err := s.Shop.db.QueryRowContext(ctx, "SELECT total_cents FROM orders WHERE id = ?", in.OrderID).Scan(&total)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Quote{}, executor.Permanent(fmt.Errorf("there is no order %d", in.OrderID))
	case err != nil:
		return Quote{}, fmt.Errorf("quote parcel: %w", err)
	case total >= freeFrom:
		return Quote{}, nil
	}
	return Quote{Cents: parcelCents}, nil
}

// What parcels cost, and from which total on they cost nothing, in cents.
const (
	parcelCents = 490
	freeFrom    = 10_000
)
