package shop

import (
	"context"
	"errors"
	"time"
)

// Warehouse is the building in Shanghai.
//
//carillon:timer description="Warehouse in Shanghai"
type Warehouse struct {
	Shop *Shop
}

// errCarrierLimit is what the carrier answers to too many questions.
var errCarrierLimit = errors.New("the carrier's system answers 429: more than 60 questions a minute")

// StockLevels writes down how much there is of each product.
//
//carillon:clock name=stock-levels cron="*/15 * * * *" zone=Asia/Shanghai idempotent on-lost=retry retries=2 timeout=5m labels="team=warehouse" owner=stock@shop.example description="Write down the stock of each product"
func (w *Warehouse) StockLevels(ctx context.Context) (Done, error) {
	if err := partner(ctx, 3*time.Second); err != nil {
		return Done{}, err
	}
	return w.Shop.change(ctx, "INSERT INTO stock_levels (product_id, units, at) SELECT id, stock, ? FROM products WHERE true ON CONFLICT (product_id) DO UPDATE SET units = excluded.units, at = excluded.at", w.Shop.since(0))
}

// PickLists tells the pickers which orders are paid and not sent.
//
//carillon:clock name=pick-lists cron="0,30 8-20 * * MON-SAT" zone=Asia/Shanghai idempotent timeout=2m labels="team=warehouse" owner=stock@shop.example description="Lists of paid orders for the pickers"
func (w *Warehouse) PickLists(ctx context.Context) (Done, error) {
	if err := partner(ctx, 900*time.Millisecond); err != nil {
		return Done{}, err
	}
	return w.Shop.look(ctx, "SELECT COUNT(*) FROM orders WHERE state = 'paid' AND id NOT IN (SELECT order_id FROM parcels) AND created_at > ?", w.Shop.since(24*time.Hour))
}

// NightCount compares the stock with the sales.
//
//carillon:clock name=night-count cron="30 22 * * *" zone=Asia/Shanghai idempotent timeout=10m labels="team=warehouse" owner=stock@shop.example description="Compare stock and sales at night"
func (w *Warehouse) NightCount(ctx context.Context) (Done, error) {
	if err := partner(ctx, 40*time.Second); err != nil {
		return Done{}, err
	}
	return w.Shop.look(ctx, "SELECT COUNT(*) FROM products WHERE stock < (SELECT COALESCE(SUM(quantity), 0) FROM order_lines WHERE product_id = products.id)")
}

// SupplierOrders orders goods with a low stock.
//
//carillon:clock name=supplier-orders cron="0 9 * * MON-FRI" zone=Asia/Shanghai timeout=10m retries=1 retry-delay=1m labels="team=warehouse" owner=stock@shop.example description="Order low products from the supplier on workdays"
func (w *Warehouse) SupplierOrders(ctx context.Context) (Done, error) {
	if err := partner(ctx, 12*time.Second); err != nil {
		return Done{}, err
	}
	return w.Shop.change(ctx, "UPDATE products SET supplier_stock = supplier_stock + 40 WHERE supplier_stock < 40")
}

// CheckReturns looks for cancelled orders whose goods came back.
//
//carillon:clock name=returns-check cron="20 * * * *" zone=Asia/Shanghai idempotent timeout=2m labels="team=warehouse" owner=stock@shop.example description="Look for goods that came back"
func (w *Warehouse) CheckReturns(ctx context.Context) (Done, error) {
	if err := partner(ctx, 2*time.Second); err != nil {
		return Done{}, err
	}
	return w.Shop.look(ctx, "SELECT COUNT(*) FROM orders WHERE state = 'cancelled' AND changed_at > ?", w.Shop.since(time.Hour))
}

// TrackParcels asks the carrier where parcels are. The carrier often refuses.
//
//carillon:clock name=parcel-tracking cron="*/10 * * * *" zone=Asia/Shanghai idempotent timeout=2m labels="team=warehouse" owner=parcels@shop.example description="Ask the carrier where parcels are; its system often refuses"
func (w *Warehouse) TrackParcels(ctx context.Context) (Done, error) {
	if err := partner(ctx, 1500*time.Millisecond); err != nil {
		return Done{}, err
	}
	if moody(ctx, 8) {
		return Done{}, errCarrierLimit
	}
	return w.Shop.look(ctx, "SELECT COUNT(*) FROM parcels WHERE sent_at > ?", w.Shop.since(24*time.Hour))
}

// CleanLabels forgets the labels of old parcels.
//
//carillon:clock name=label-cleanup cron="40 3 * * *" zone=Asia/Shanghai idempotent timeout=5m labels="team=warehouse" owner=parcels@shop.example description="Forget the labels of old parcels"
func (w *Warehouse) CleanLabels(ctx context.Context) (Done, error) {
	if err := partner(ctx, 4*time.Second); err != nil {
		return Done{}, err
	}
	return w.Shop.change(ctx, "UPDATE parcels SET label = '' WHERE sent_at < ? AND label <> ''", w.Shop.since(30*24*time.Hour))
}

// SlowSellers lists products that nobody bought for a week.
//
//carillon:clock name=slow-sellers cron="0 7 * * MON" zone=Asia/Shanghai idempotent timeout=10m labels="team=warehouse, kind=report" owner=stock@shop.example description="Products without a sale in the last week"
func (w *Warehouse) SlowSellers(ctx context.Context) (Done, error) {
	if err := partner(ctx, 25*time.Second); err != nil {
		return Done{}, err
	}
	return w.Shop.look(ctx, "SELECT COUNT(*) FROM products WHERE id NOT IN (SELECT l.product_id FROM order_lines l JOIN orders o ON o.id = l.order_id WHERE o.created_at > ?)", w.Shop.since(7*24*time.Hour))
}
