package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Stock keeps the warehouse.
//
//carillon:timer description="Warehouse of the sample shop"
type Stock struct {
	Shop *Shop
}

// Synced says what SyncInventory changed.
type Synced struct {
	Products int `json:"products"`
	Ordered  int `json:"ordered" doc:"Units ordered from the supplier"`
}

// errSupplierBusy is what the supplier answers at odd times.
var errSupplierBusy = errors.New("the supplier's system answers 503: try again later")

// SyncInventory refills what runs low from the supplier's stock. The supplier
// is moody: it refuses the first attempt of every third fire time, so that a run
// can be seen failing and being retried.
//
//carillon:clock name=sync-inventory cron="*/5 * * * *" zone=Asia/Shanghai retries=2 retry-delay=3s timeout=30s owner=stock@shop.example description="Refill low stock; the supplier fails now and then and is asked again"
func (s *Stock) SyncInventory(ctx context.Context) (Synced, error) {
	log := executor.Logger(ctx)
	task := executor.TaskFrom(ctx)
	if task.FireTime.Minute()/5%3 == 0 && task.Attempt == 1 {
		log.Warn("the supplier refused", "attempt", task.Attempt)
		return Synced{}, errSupplierBusy
	}
	out, err := s.refill(ctx)
	if err != nil {
		return out, fmt.Errorf("sync inventory: %w", err)
	}
	log.Info("stock refilled", "products", out.Products, "units", out.Ordered)
	return out, nil
}

// refill orders whatever is low from the supplier.
func (s *Stock) refill(ctx context.Context) (Synced, error) {
	var out Synced
	err := s.Shop.inTx(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, "SELECT id, stock FROM products WHERE stock < 40 AND supplier_stock > 0")
		if err != nil {
			return err
		}
		defer rows.Close()
		low := map[int64]int{}
		for rows.Next() {
			var id int64
			var stock int
			if err := rows.Scan(&id, &stock); err != nil {
				return err
			}
			low[id] = stock
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for id, stock := range low {
			want := 100 - stock
			if _, err := tx.ExecContext(ctx, "UPDATE products SET stock = stock + ?, supplier_stock = supplier_stock + 20 - ? WHERE id = ?", want, min(want, 20), id); err != nil {
				return err
			}
			out.Products++
			out.Ordered += want
		}
		return nil
	})
	return out, err
}

// Archived says how far ExportArchive came.
type Archived struct {
	Orders int `json:"orders"`
}

// archiveStep is how long one page of the archive takes; the archive machine
// is slow.
const archiveStep = 400 * time.Millisecond

// ExportArchive walks through all old orders, page by page, for about a
// minute. Cancel it to see a run stop: it looks at its context at every page.
//
//carillon:clock name=export-archive cron="0 */5 * * * *" dialect=seconds zone=Asia/Shanghai blocking=discard_later timeout=4m weight=4 prefer-labels=role=warehouse kill-grace=5s stuck=keep_slot owner=stock@shop.example description="Slow export of old orders; obeys a cancel"
func (s *Stock) ExportArchive(ctx context.Context) (Archived, error) {
	const page = 20
	log := executor.Logger(ctx)
	var out Archived
	var last, total int64
	if err := s.Shop.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders WHERE state <> 'unpaid'").Scan(&total); err != nil {
		return out, fmt.Errorf("export archive: %w", err)
	}
	for {
		n, next, err := s.exportPage(ctx, last, page)
		if err != nil {
			return out, fmt.Errorf("export archive: %w", err)
		}
		if n == 0 {
			break
		}
		out.Orders += n
		executor.Progress(ctx, 100*float64(out.Orders)/float64(total), fmt.Sprintf("%d of %d orders", out.Orders, total))
		last = next
		if out.Orders%(page*10) == 0 {
			log.Info("exported", "orders", out.Orders)
		}
		select {
		case <-ctx.Done():
			log.Warn("stopped", "orders", out.Orders, "cause", context.Cause(ctx))
			return out, context.Cause(ctx)
		case <-time.After(archiveStep):
		}
	}
	_, err := s.Shop.db.ExecContext(ctx, "INSERT INTO archive_runs (orders, finished_at) VALUES (?, ?)", out.Orders, s.Shop.now().UnixMilli())
	return out, err
}

// exportPage reads one page of orders after last.
func (s *Stock) exportPage(ctx context.Context, last int64, size int) (n int, next int64, err error) {
	rows, err := s.Shop.db.QueryContext(ctx, "SELECT id FROM orders WHERE id > ? AND state <> 'unpaid' ORDER BY id LIMIT ?", last, size)
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&next); err != nil {
			return 0, 0, err
		}
		n++
	}
	return n, next, rows.Err()
}
