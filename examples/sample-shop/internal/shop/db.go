package shop

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite", without cgo
)

// Shop is the shop's database.
type Shop struct {
	db  *sql.DB
	now func() time.Time
}

const schema = `
CREATE TABLE IF NOT EXISTS customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS products  (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price_cents INTEGER NOT NULL, stock INTEGER NOT NULL, supplier_stock INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS orders (
  id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers(id),
  state TEXT NOT NULL CHECK (state IN ('unpaid','paid','cancelled')),
  total_cents INTEGER NOT NULL, created_at INTEGER NOT NULL, changed_at INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS orders_by_state ON orders(state, created_at);
CREATE TABLE IF NOT EXISTS order_lines (
  order_id INTEGER NOT NULL REFERENCES orders(id), product_id INTEGER NOT NULL REFERENCES products(id),
  quantity INTEGER NOT NULL, price_cents INTEGER NOT NULL, PRIMARY KEY (order_id, product_id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL REFERENCES orders(id), cents INTEGER NOT NULL, paid_at INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS payments_by_order ON payments(order_id);
CREATE TABLE IF NOT EXISTS mismatches (order_id INTEGER PRIMARY KEY REFERENCES orders(id), total_cents INTEGER NOT NULL, lines_cents INTEGER NOT NULL, paid_cents INTEGER NOT NULL, found_at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS parcels (order_id INTEGER PRIMARY KEY REFERENCES orders(id), label TEXT NOT NULL, sent_at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS carillon_once (once_key VARCHAR(190) NOT NULL PRIMARY KEY, done_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP); -- once.Table
CREATE TABLE IF NOT EXISTS stock_levels (product_id INTEGER PRIMARY KEY, units INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS search_index (product_id INTEGER PRIMARY KEY, words TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS exchange_rates (currency TEXT PRIMARY KEY, at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS invoices (order_id INTEGER PRIMARY KEY, cents INTEGER NOT NULL, written_at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS mails (order_id INTEGER PRIMARY KEY, sent_at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS archive_runs (id INTEGER PRIMARY KEY, orders INTEGER NOT NULL, finished_at INTEGER NOT NULL);
`

// Open opens the shop's file below dir, and fills it with a few thousand
// orders when it is new.
func Open(ctx context.Context, dir string) (*Shop, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "shop.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	s := &Shop{db: db, now: time.Now}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("create the shop's tables: %w", err)
	}
	if err := s.seed(ctx); err != nil {
		return nil, fmt.Errorf("fill the shop: %w", err)
	}
	return s, nil
}

// Close closes the file.
func (s *Shop) Close() error { return s.db.Close() }

const (
	seedCustomers = 400
	seedProducts  = 60
	seedOrders    = 3000
	seedDays      = 30
	// Every so many orders one has a total or a payment that does not add up,
	// as happens in real books.
	seedMismatch = 97
)

// inTx runs f in a transaction.
func (s *Shop) inTx(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// seed fills an empty shop; the same numbers each time, counted back from now.
func (s *Shop) seed(ctx context.Context) error {
	var n int
	if err := s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM customers").Scan(&n); err != nil || n > 0 {
		return err
	}
	r := rand.New(rand.NewPCG(1, 2))
	return s.inTx(ctx, func(tx *sql.Tx) error {
		for i := range seedCustomers {
			if _, err := tx.ExecContext(ctx, "INSERT INTO customers (id, name) VALUES (?, ?)", i+1, customerName(r)); err != nil {
				return err
			}
		}
		for i := range seedProducts {
			if _, err := tx.ExecContext(ctx, "INSERT INTO products (id, name, price_cents, stock, supplier_stock) VALUES (?, ?, ?, ?, ?)",
				i+1, productName(i), 199+r.IntN(20_000), 50+r.IntN(500), 50+r.IntN(500)); err != nil {
				return err
			}
		}
		begin := s.now().Add(-seedDays * 24 * time.Hour)
		for i := range seedOrders {
			at := begin.Add(time.Duration(i) * seedDays * 24 * time.Hour / seedOrders)
			if err := s.seedOrder(ctx, tx, r, i+1, at); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Shop) seedOrder(ctx context.Context, tx *sql.Tx, r *rand.Rand, id int, at time.Time) error {
	total, err := s.insertOrder(ctx, tx, r, int64(id), at)
	if err != nil {
		return err
	}
	if id%11 == 0 {
		_, err := tx.ExecContext(ctx, "UPDATE orders SET state = 'cancelled' WHERE id = ?", id)
		return err
	}
	paid := total
	if id%seedMismatch == 0 {
		paid -= 100 // somebody paid a little less
	}
	return pay(ctx, tx, int64(id), paid, at.Add(time.Duration(r.IntN(600))*time.Second))
}

// insertOrder writes an unpaid order with one to four lines and returns its total.
func (s *Shop) insertOrder(ctx context.Context, tx *sql.Tx, r *rand.Rand, id int64, at time.Time) (total int64, err error) {
	type line struct {
		product, quantity int
		price             int64
	}
	var lines []line
	for _, p := range r.Perm(seedProducts)[:1+r.IntN(4)] {
		l := line{product: p + 1, quantity: 1 + r.IntN(3)}
		if err := tx.QueryRowContext(ctx, "SELECT price_cents FROM products WHERE id = ?", l.product).Scan(&l.price); err != nil {
			return 0, err
		}
		total += l.price * int64(l.quantity)
		lines = append(lines, l)
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, customer_id, state, total_cents, created_at, changed_at) VALUES (?, ?, 'unpaid', ?, ?, ?)",
		id, 1+r.IntN(seedCustomers), total, at.UnixMilli(), at.UnixMilli()); err != nil {
		return 0, err
	}
	for _, l := range lines {
		if _, err := tx.ExecContext(ctx, "INSERT INTO order_lines (order_id, product_id, quantity, price_cents) VALUES (?, ?, ?, ?)",
			id, l.product, l.quantity, l.price); err != nil {
			return 0, err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE products SET stock = max(0, stock - ?) WHERE id = ?", l.quantity, l.product); err != nil {
			return 0, err
		}
	}
	return total, nil
}

func pay(ctx context.Context, tx *sql.Tx, order, cents int64, at time.Time) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO payments (order_id, cents, paid_at) VALUES (?, ?, ?)", order, cents, at.UnixMilli()); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "UPDATE orders SET state = 'paid', changed_at = ? WHERE id = ? AND state = 'unpaid'", at.UnixMilli(), order)
	return err
}

func customerName(r *rand.Rand) string {
	first := []string{"Ada", "Bo", "Chen", "Dilara", "Emeka", "Freya", "Goro", "Hana", "Ivan", "Jing", "Kofi", "Lena", "Mei", "Noor", "Oskar", "Priya"}
	last := []string{"Abe", "Berg", "Costa", "Diaz", "Eze", "Fischer", "Gupta", "Huang", "Ito", "Jansen", "Kim", "Li", "Moreau", "Novak", "Okoye", "Wang"}
	return first[r.IntN(len(first))] + " " + last[r.IntN(len(last))]
}

func productName(i int) string {
	kinds := []string{"bell", "chime", "gong", "metronome", "tuning fork", "mallet"}
	sizes := []string{"tiny", "small", "medium", "large", "concert", "tower", "travel", "bronze", "silver", "practice"}
	return sizes[i/len(kinds)%len(sizes)] + " " + kinds[i%len(kinds)]
}
