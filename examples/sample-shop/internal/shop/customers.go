package shop

import (
	"context"
	"database/sql"
	"log/slog"
	"math/rand/v2"
	"time"
)

// CustomerPace is the mean time between two new orders.
const CustomerPace = time.Minute

// payEvery is the mean time after which customers with an open order think of it again.
const payEvery = 4 * time.Second

// payWithin is how long a customer who pays takes at most.
const payWithin = 45 * time.Second

// Customers lets customers order and, mostly, pay, until ctx ends. ordered is
// called for each new order; it arranges that the order is cancelled when
// nobody pays.
func (s *Shop) Customers(ctx context.Context, ordered func(ctx context.Context, order int64) error) error {
	r := rand.New(rand.NewPCG(uint64(s.now().UnixNano()), 7))
	for first := true; ; first = false {
		wait := time.Duration(float64(payEvery) * (0.3 + 1.4*r.Float64()))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		if err := s.payOpenOrders(ctx, r); err != nil && ctx.Err() == nil {
			slog.Warn("customers could not pay", "err", err)
		}
		if !first && r.Int64N(int64(CustomerPace/payEvery)) > 0 {
			continue
		}
		order, err := s.PlaceOrder(ctx, r)
		if err == nil {
			err = ordered(ctx, order)
		}
		if err != nil && ctx.Err() == nil {
			slog.Warn("an order could not be placed", "err", err)
		}
	}
}

// PlaceOrder writes a new unpaid order and returns its number.
func (s *Shop) PlaceOrder(ctx context.Context, r *rand.Rand) (int64, error) {
	var id int64
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, "SELECT COALESCE(MAX(id), 0) + 1 FROM orders").Scan(&id); err != nil {
			return err
		}
		_, err := s.insertOrder(ctx, tx, r, id, s.now())
		return err
	})
	return id, err
}

// payOpenOrders lets two of three customers with a fresh unpaid order pay it.
func (s *Shop) payOpenOrders(ctx context.Context, r *rand.Rand) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT id, total_cents FROM orders WHERE state = 'unpaid' AND created_at > ?", s.now().Add(-payWithin).UnixMilli())
		if err != nil {
			return err
		}
		defer rows.Close()
		open := map[int64]int64{}
		for rows.Next() {
			var id, total int64
			if err := rows.Scan(&id, &total); err != nil {
				return err
			}
			if id%3 != 0 && r.IntN(4) == 0 { // every third never pays
				open[id] = total
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for id, total := range open {
			if err := pay(ctx, tx, id, total, s.now()); err != nil {
				return err
			}
		}
		return nil
	})
}
