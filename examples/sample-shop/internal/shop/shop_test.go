package shop

import (
	"context"
	"encoding/csv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// filled is the file of a shop that was filled once, for all tests.
var filled = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "shop-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := Open(context.Background(), dir)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil { // writes the log back into the file
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "shop.db"))
})

func open(t *testing.T) *Shop {
	t.Helper()
	file, err := filled()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "shop.db"), file, 0o600))
	s, err := Open(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func (s *Shop) number(t *testing.T, query string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, s.db.QueryRowContext(t.Context(), query, args...).Scan(&n))
	return n
}

func TestAShopIsFilledOnceAndKept(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		s, err := Open(t.Context(), dir)
		require.NoError(t, err)
		require.Equal(t, seedOrders, s.number(t, "SELECT COUNT(*) FROM orders"))
		require.NoError(t, s.Close())
	}
}

func TestReconcileFindsWhatDoesNotAddUp(t *testing.T) {
	s := open(t)
	o := &Orders{Shop: s}
	want := 0
	for id := seedMismatch; id <= seedOrders; id += seedMismatch {
		if id%11 != 0 { // those are cancelled
			want++
		}
	}
	got, err := o.ReconcileTotals(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got.Mismatches)
	require.Equal(t, int64(-100*want), got.Cents)
	require.Equal(t, s.number(t, "SELECT COUNT(*) FROM orders WHERE state = 'paid'"), got.Orders)

	again, err := o.ReconcileTotals(t.Context())
	require.NoError(t, err)
	require.Equal(t, got, again)
	require.Equal(t, want, s.number(t, "SELECT COUNT(*) FROM mismatches"), "found twice, written once")
}

func TestUnpaidOrdersAreCancelledOnceAndGoodsComeBack(t *testing.T) {
	s := open(t)
	o := &Orders{Shop: s}
	before := s.number(t, "SELECT SUM(stock) FROM products")
	id, err := s.PlaceOrder(t.Context(), rand.New(rand.NewPCG(5, 5)))
	require.NoError(t, err)
	require.Less(t, s.number(t, "SELECT SUM(stock) FROM products"), before)

	got, err := o.CancelUnpaid(t.Context(), CancelUnpaidInput{OrderID: id})
	require.NoError(t, err)
	require.True(t, got.Cancelled)
	require.Equal(t, before, s.number(t, "SELECT SUM(stock) FROM products"))

	got, err = o.CancelUnpaid(t.Context(), CancelUnpaidInput{OrderID: id})
	require.NoError(t, err)
	require.False(t, got.Cancelled)
	require.Equal(t, "it is cancelled", got.Why)
	require.Equal(t, before, s.number(t, "SELECT SUM(stock) FROM products"))

	_, err = o.CancelUnpaid(t.Context(), CancelUnpaidInput{OrderID: 1 << 40})
	require.ErrorContains(t, err, "there is no order")
}

func TestTheReportHoldsOneDayAndIsWrittenWhole(t *testing.T) {
	s := open(t)
	o := &Orders{Shop: s, Reports: filepath.Join(t.TempDir(), "reports")}
	to := time.Now().Add(-48 * time.Hour)
	from := to.AddDate(0, 0, -1)
	got, err := o.writeReport(t.Context(), from, to)
	require.NoError(t, err)
	require.Positive(t, got.Rows)
	require.Equal(t, int64(s.number(t, `SELECT SUM(total_cents) FROM orders WHERE state = 'paid' AND created_at >= ? AND created_at < ?`,
		from.UnixMilli(), to.UnixMilli())), got.Cents)

	file, err := os.Open(got.File)
	require.NoError(t, err)
	defer file.Close()
	table, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Len(t, table, got.Rows+1)
	left, err := os.ReadDir(o.Reports)
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file is left")
}

func TestStockIsRefilledFromTheSupplier(t *testing.T) {
	s := open(t)
	_, err := s.db.ExecContext(t.Context(), "UPDATE products SET stock = 3 WHERE id IN (1, 2)")
	require.NoError(t, err)
	low := s.number(t, "SELECT COUNT(*) FROM products WHERE stock < 40")
	got, err := (&Stock{Shop: s}).refill(t.Context())
	require.NoError(t, err)
	require.Equal(t, low, got.Products)
	require.Equal(t, 0, s.number(t, "SELECT COUNT(*) FROM products WHERE stock < 40"))
	require.GreaterOrEqual(t, low, 2)
}

func TestTheExportStopsWhenItIsCancelled(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.DeadlineExceeded)
	_, err := (&Stock{Shop: s}).ExportArchive(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, s.number(t, "SELECT COUNT(*) FROM archive_runs"))
}
