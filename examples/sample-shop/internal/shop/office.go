package shop

import (
	"context"
	"errors"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Office is the back office in Berlin.
//
//carillon:timer description="Back office in Berlin"
type Office struct {
	Shop *Shop
}

var (
	errGreylisted = errors.New("smtp.mail.example: 451 4.7.1 try again later")
	// errHostKey is why no payout leaves the shop since the bank has a new host.
	errHostKey = errors.New("sftp.bank.example: the host key SHA256:uH1tQ8 is not the known one: ask the bank, then replace known_hosts")
)

// ReconcileOrders compares the orders of the day before with the payments.
//
//carillon:clock name=reconcile-orders cron="0 2 * * *" zone=Europe/Berlin idempotent on-lost=retry retries=2 retry-delay=1m timeout=15m labels="team=books" owner=books@shop.example description="Compare yesterday's orders with payments"
func (o *Office) ReconcileOrders(ctx context.Context) (Done, error) {
	if err := partner(ctx, 35*time.Second); err != nil {
		return Done{}, err
	}
	return o.Shop.look(ctx, "SELECT COUNT(*) FROM orders o WHERE o.state = 'paid' AND o.total_cents = (SELECT SUM(cents) FROM payments p WHERE p.order_id = o.id)")
}

// WriteInvoices writes an invoice for each order that was paid since the last time.
//
//carillon:clock name=invoices cron="10 * * * *" zone=Europe/Berlin idempotent retries=2 retry-delay=20s timeout=5m labels="team=books" owner=books@shop.example description="Write invoices for paid orders"
func (o *Office) WriteInvoices(ctx context.Context) (Done, error) {
	if err := partner(ctx, 6*time.Second); err != nil {
		return Done{}, err
	}
	return o.Shop.change(ctx, "INSERT INTO invoices (order_id, cents, written_at) SELECT id, total_cents, ? FROM orders WHERE state = 'paid' ON CONFLICT (order_id) DO NOTHING", o.Shop.since(0))
}

// PayoutFile brings payouts to the bank, which has a new host key.
//
//carillon:clock name=payout-file cron="0 */4 * * *" zone=Europe/Berlin timeout=5m labels="team=books" owner=books@shop.example description="Bring payouts to the bank; it fails until the bank's new host key is known"
func (o *Office) PayoutFile(ctx context.Context) (Done, error) {
	if err := partner(ctx, time.Second); err != nil {
		return Done{}, err
	}
	executor.Logger(ctx).Error("the bank's host key has changed", "host", "sftp.bank.example")
	return Done{}, errHostKey
}

// OrderMails tells customers of their parcels.
//
//carillon:clock name=order-mails cron="*/10 * * * *" zone=Europe/Berlin idempotent retries=2 retry-delay=15s timeout=2m labels="team=mails" owner=mails@shop.example description="Mails to customers about their orders"
func (o *Office) OrderMails(ctx context.Context) (Done, error) {
	if err := partner(ctx, 2*time.Second); err != nil {
		return Done{}, err
	}
	if executor.TaskFrom(ctx).Attempt == 1 && moody(ctx, 20) {
		return Done{}, errGreylisted
	}
	return o.Shop.change(ctx, "INSERT INTO mails (order_id, sent_at) SELECT order_id, ? FROM parcels WHERE true ON CONFLICT (order_id) DO NOTHING", o.Shop.since(0))
}

// Newsletter goes to all customers on Tuesdays.
//
//carillon:clock name=newsletter cron="0 10 * * TUE" zone=Europe/Berlin timeout=30m labels="team=mails" owner=mails@shop.example description="Newsletter on Tuesdays"
func (o *Office) Newsletter(ctx context.Context) (Done, error) {
	if err := partner(ctx, 55*time.Second); err != nil {
		return Done{}, err
	}
	return o.Shop.look(ctx, "SELECT COUNT(*) FROM customers")
}

// DeletePersons deletes the names of customers who asked for it.
//
//carillon:clock name=gdpr-deletes cron="15 3 * * *" zone=Europe/Berlin idempotent on-lost=retry retries=3 retry-delay=1m timeout=15m labels="team=privacy" owner=privacy@shop.example description="Delete personal data of customers who asked for it"
func (o *Office) DeletePersons(ctx context.Context) (Done, error) {
	if err := partner(ctx, 15*time.Second); err != nil {
		return Done{}, err
	}
	return o.Shop.change(ctx, "UPDATE customers SET name = 'deleted' WHERE name <> 'deleted' AND id % 97 = 0")
}

// WeeklySales adds up the week.
//
//carillon:clock name=weekly-sales cron="0 7 * * MON" zone=Europe/Berlin idempotent timeout=15m labels="team=books, kind=report" owner=books@shop.example description="Sales of the last week"
func (o *Office) WeeklySales(ctx context.Context) (Done, error) {
	if err := partner(ctx, 30*time.Second); err != nil {
		return Done{}, err
	}
	return o.Shop.look(ctx, "SELECT COALESCE(SUM(total_cents), 0) FROM orders WHERE state = 'paid' AND created_at > ?", o.Shop.since(7*24*time.Hour))
}

// AbandonedCarts looks for orders that nobody paid.
//
//carillon:clock name=abandoned-carts cron="25 */2 * * *" zone=Europe/Berlin idempotent timeout=2m labels="team=mails" owner=mails@shop.example description="Look for orders that nobody paid"
func (o *Office) AbandonedCarts(ctx context.Context) (Done, error) {
	if err := partner(ctx, 3*time.Second); err != nil {
		return Done{}, err
	}
	return o.Shop.look(ctx, "SELECT COUNT(*) FROM orders WHERE state = 'unpaid' AND created_at < ?", o.Shop.since(time.Hour))
}
