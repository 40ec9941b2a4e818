package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Shelves counts what lies in the warehouse, in slices beside each other.
//
//carillon:timer description="Shelves of the sample shop"
type Shelves struct {
	Shop *Shop
}

// Counted says what one shard has counted.
type Counted struct {
	Products int `json:"products"`
	Units    int `json:"units"`
}

// CountShelves counts the products that are its shard's: each product is
// counted by exactly one of the four, whichever instances they run on.
//
//carillon:clock name=count-shelves cron="15 */5 * * * *" dialect=seconds zone=Asia/Shanghai shards=4 before=open-count after=shelf-report fire-timeout=1m idempotent description="Count the shelves in four slices and add them up"
func (s *Shelves) CountShelves(ctx context.Context) (Counted, error) {
	mine := executor.TaskFrom(ctx).Shard()
	var out Counted
	rows, err := s.Shop.db.QueryContext(ctx, "SELECT id, stock FROM products")
	if err != nil {
		return out, fmt.Errorf("count shelves: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id uint64
		var stock int
		if err := rows.Scan(&id, &stock); err != nil {
			return out, fmt.Errorf("count shelves: %w", err)
		}
		if mine.Mine(id) {
			out.Products++
			out.Units += stock
		}
	}
	executor.Logger(ctx).Info("shelves counted", "shard", mine.Index, "of", mine.Total, "products", out.Products)
	return out, rows.Err()
}

// OpenCount has to succeed before the shelves are counted.
//
//carillon:clock name=open-count description="Looks whether there is anything to count; runs before the slices of count-shelves"
func (s *Shelves) OpenCount(ctx context.Context) error {
	var products int
	if err := s.Shop.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM products").Scan(&products); err != nil {
		return fmt.Errorf("open count: %w", err)
	}
	if products == 0 {
		return executor.Permanent(errors.New("there are no products to count"))
	}
	executor.Logger(ctx).Debug("the count begins", "products", products)
	return nil
}

// ShelfReport adds up what the shards of CountShelves have counted.
//
//carillon:clock name=shelf-report description="Adds up the slices of count-shelves; runs after them"
func (s *Shelves) ShelfReport(ctx context.Context, in executor.ShardResults) (Counted, error) {
	var sum Counted
	for _, shard := range in.Shards {
		var part Counted
		if shard.State != "succeeded" {
			continue
		}
		if err := json.Unmarshal(shard.Output, &part); err != nil {
			return sum, executor.Permanent(fmt.Errorf("shard %d: %w", shard.Index, err))
		}
		sum.Products += part.Products
		sum.Units += part.Units
	}
	executor.Logger(ctx).Info("shelves added up", "shards", in.Succeeded, "of", in.Total, "units", sum.Units)
	return sum, nil
}

// ReloadPrices runs once on every instance of the shop.
//
//carillon:clock name=reload-prices every=10m broadcast description="Every instance drops the prices that it remembers"
func (s *Shelves) ReloadPrices(ctx context.Context) error {
	task := executor.TaskFrom(ctx)
	executor.Logger(ctx).Info("prices forgotten", "instance", task.Shard().Index, "of", task.Shard().Total)
	return nil
}
