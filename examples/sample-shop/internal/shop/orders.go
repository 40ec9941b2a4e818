package shop

import (
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

//go:generate go tool carillon-generate

// Orders keeps the shop's books.
//
//carillon:timer proxy=../../shopclient description="Order bookkeeping of the sample shop"
type Orders struct {
	Shop *Shop
	// Reports is the folder that revenue reports are written to.
	Reports string
}

// Reconciled says what ReconcileTotals found.
type Reconciled struct {
	Orders     int   `json:"orders" doc:"Paid orders that were checked"`
	Mismatches int   `json:"mismatches" doc:"Orders whose total, lines and payments differ"`
	Cents      int64 `json:"cents" doc:"Sum of the differences, in cents"`
}

// ReconcileTotals compares each paid order's total with its lines and its
// payments, and writes down those that do not add up.
//
//carillon:clock name=reconcile-totals cron="*/2 * * * *" zone=Europe/Berlin idempotent owner=books@shop.example description="Compare order totals with lines and payments"
func (o *Orders) ReconcileTotals(ctx context.Context) (Reconciled, error) {
	var out Reconciled
	err := o.Shop.inTx(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `
			SELECT o.id, o.total_cents,
			  (SELECT COALESCE(SUM(quantity * price_cents), 0) FROM order_lines l WHERE l.order_id = o.id),
			  (SELECT COALESCE(SUM(cents), 0) FROM payments p WHERE p.order_id = o.id)
			FROM orders o WHERE o.state = 'paid'`)
		if err != nil {
			return err
		}
		defer rows.Close()
		type mismatch struct{ id, total, lines, paid int64 }
		var found []mismatch
		for rows.Next() {
			var m mismatch
			if err := rows.Scan(&m.id, &m.total, &m.lines, &m.paid); err != nil {
				return err
			}
			out.Orders++
			if m.total != m.lines || m.total != m.paid {
				found = append(found, m)
				out.Cents += m.paid - m.total
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		out.Mismatches = len(found)
		for _, m := range found {
			_, err := tx.ExecContext(ctx, `INSERT INTO mismatches (order_id, total_cents, lines_cents, paid_cents, found_at) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (order_id) DO UPDATE SET total_cents = excluded.total_cents, lines_cents = excluded.lines_cents, paid_cents = excluded.paid_cents`,
				m.id, m.total, m.lines, m.paid, o.Shop.now().UnixMilli())
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return out, fmt.Errorf("reconcile: %w", err)
	}
	executor.Logger(ctx).Info("books compared", "orders", out.Orders, "mismatches", out.Mismatches)
	return out, nil
}

// CancelUnpaidInput names one order.
type CancelUnpaidInput struct {
	OrderID int64 `json:"orderId" required:"true" doc:"The order to cancel if nobody has paid it"`
}

// Cancelled says what became of the order.
type Cancelled struct {
	OrderID   int64  `json:"orderId"`
	Cancelled bool   `json:"cancelled"`
	Why       string `json:"why"`
}

// CancelUnpaid cancels an order that is still unpaid and puts its goods back.
// It has no schedule: each new order sets a timer.
//
//carillon:clock name=cancel-unpaid idempotent retries=3 retry-delay=2s blocking=parallel owner=orders@shop.example description="Cancel one order that nobody paid in time"
func (o *Orders) CancelUnpaid(ctx context.Context, in CancelUnpaidInput) (Cancelled, error) {
	out := Cancelled{OrderID: in.OrderID}
	err := o.Shop.inTx(ctx, func(tx *sql.Tx) error {
		var state string
		err := tx.QueryRowContext(ctx, "SELECT state FROM orders WHERE id = ?", in.OrderID).Scan(&state)
		if errors.Is(err, sql.ErrNoRows) {
			return executor.Permanent(fmt.Errorf("there is no order %d", in.OrderID))
		}
		if err != nil {
			return err
		}
		if state != "unpaid" {
			out.Why = "it is " + state
			return nil
		}
		if _, err := tx.ExecContext(ctx, `UPDATE products SET stock = stock + (SELECT quantity FROM order_lines l WHERE l.order_id = ? AND l.product_id = products.id)
			WHERE id IN (SELECT product_id FROM order_lines WHERE order_id = ?)`, in.OrderID, in.OrderID); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE orders SET state = 'cancelled', changed_at = ? WHERE id = ?", o.Shop.now().UnixMilli(), in.OrderID)
		out.Cancelled, out.Why = true, "nobody paid in time"
		return err
	})
	if err != nil {
		return out, fmt.Errorf("cancel order %d: %w", in.OrderID, err)
	}
	executor.Logger(ctx).Info("unpaid order looked at", "order", in.OrderID, "cancelled", out.Cancelled, "why", out.Why)
	return out, nil
}

// RevenueReport tells where the report is and what it says.
type RevenueReport struct {
	Day   string `json:"day"`
	File  string `json:"file"`
	Rows  int    `json:"rows"`
	Cents int64  `json:"cents"`
}

// DailyRevenueReport writes the revenue by product of the day before the fire
// time as a CSV file. Running it again for the same day writes the same file.
//
//carillon:clock name=daily-revenue-report owned-by=code cron="0 5 0 * * *" dialect=seconds zone=Asia/Shanghai idempotent retries=3 retry-delay=30s retry-backoff=2 max-retry-delay=2m on-lost=retry misfire=once_now labels="team=books, kind=report" alert-no-executor=true owner=books@shop.example on-failure=ReportFailed description="Revenue by product of the last day, as CSV"
//carillon:clock name=revenue-report-noon owned-by=propose cron="0 0 12 * * MON-FRI" dialect=seconds zone=Asia/Shanghai idempotent retries=3 retry-delay=30s timeout=10m owner=books@shop.example on-failure=ReportFailed description="The same report on workdays at noon; only proposed, so that somebody decides about it"
//carillon:clock name=revenue-report-preview cron="30 * * * * *" dialect=seconds zone=Asia/Shanghai idempotent owner=books@shop.example on-success=ReportWritten on-failure=ReportFailed description="The same report, every minute, so that the demo shows it"
func (o *Orders) DailyRevenueReport(ctx context.Context) (RevenueReport, error) {
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		return RevenueReport{}, err
	}
	fire := executor.TaskFrom(ctx).FireTime.In(zone)
	end := time.Date(fire.Year(), fire.Month(), fire.Day(), 0, 0, 0, 0, zone)
	return o.writeReport(ctx, end.AddDate(0, 0, -1), end)
}

func (o *Orders) writeReport(ctx context.Context, from, to time.Time) (RevenueReport, error) {
	out := RevenueReport{Day: from.Format(time.DateOnly)}
	out.File = filepath.Join(o.Reports, "revenue-"+out.Day+".csv")
	rows, err := o.Shop.db.QueryContext(ctx, `
		SELECT p.name, SUM(l.quantity), SUM(l.quantity * l.price_cents)
		FROM orders o JOIN order_lines l ON l.order_id = o.id JOIN products p ON p.id = l.product_id
		WHERE o.state = 'paid' AND o.created_at >= ? AND o.created_at < ?
		GROUP BY p.id ORDER BY p.name`, from.UnixMilli(), to.UnixMilli())
	if err != nil {
		return out, fmt.Errorf("read revenue: %w", err)
	}
	defer rows.Close()
	table := [][]string{{"product", "quantity", "revenue"}}
	for rows.Next() {
		var name string
		var quantity, cents int64
		if err := rows.Scan(&name, &quantity, &cents); err != nil {
			return out, err
		}
		table = append(table, []string{name, strconv.FormatInt(quantity, 10), fmt.Sprintf("%d.%02d", cents/100, cents%100)})
		out.Rows++
		out.Cents += cents
	}
	if err := rows.Err(); err != nil {
		return out, err
	}
	if err := writeCSV(out.File, table); err != nil {
		return out, fmt.Errorf("write report: %w", err)
	}
	executor.Logger(ctx).Info("revenue report written", "day", out.Day, "file", out.File, "products", out.Rows, "cents", out.Cents)
	return out, nil
}

// writeCSV writes the whole file or nothing.
func writeCSV(path string, table [][]string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone after the rename
	if err := csv.NewWriter(tmp).WriteAll(table); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// ReportWritten follows each report: it would be the place to mail it.
func (o *Orders) ReportWritten(ctx context.Context, report RevenueReport) error {
	executor.Logger(ctx).Info("report handed to the books", "file", report.File, "rows", report.Rows)
	return nil
}

// ReportFailed is told when a report could not be written for good.
func (o *Orders) ReportFailed(ctx context.Context, cause error) {
	slog.ErrorContext(ctx, "the books have no revenue report", "err", cause)
}
