package shop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/executortest"
)

// Each job of the departments does its work, but for the payouts: the bank has a new host key.
func TestDepartmentsDoTheirWork(t *testing.T) {
	_, err := filled()
	require.NoError(t, err)
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		s := open(t)
		RegisterWarehouse(admin.Executor(), &Warehouse{Shop: s})
		RegisterCatalogue(admin.Executor(), &Catalogue{Shop: s})
		RegisterOffice(admin.Executor(), &Office{Shop: s})
		for _, name := range []string{
			"stock-levels", "pick-lists", "night-count", "supplier-orders", "returns-check", "label-cleanup", "slow-sellers",
			"product-feed-us", "search-index", "search-rebuild", "exchange-rates", "sitemap", "image-cleanup",
			"reconcile-orders", "invoices", "newsletter", "gdpr-deletes", "weekly-sales", "abandoned-carts",
		} {
			require.Equal(t, executortest.Succeeded, admin.Call(name, nil).State(), name)
		}
		payouts := admin.Call("payout-file", nil)
		require.Equal(t, executortest.Failed, payouts.State())
		require.Contains(t, payouts.Err(), "host key")
		require.Equal(t, s.number(t, "SELECT COUNT(*) FROM products"), s.number(t, "SELECT COUNT(*) FROM search_index"))
		require.Equal(t, s.number(t, "SELECT COUNT(*) FROM orders WHERE state = 'paid'"), s.number(t, "SELECT COUNT(*) FROM invoices"))
		require.Equal(t, 3, s.number(t, "SELECT COUNT(*) FROM exchange_rates"))
	})
}

// A partner has its bad moments at the same fire times again, and of jobs every ten minutes as well.
func TestPartnersAreMoodyNowAndThen(t *testing.T) {
	_, err := filled()
	require.NoError(t, err)
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		s := open(t)
		RegisterWarehouse(admin.Executor(), &Warehouse{Shop: s})
		failed := 0
		for range 200 {
			if admin.Call("parcel-tracking", nil).State() == executortest.Failed {
				failed++
			}
			admin.Sleep(10 * time.Minute)
		}
		require.InDelta(t, 200/8, failed, 15)
	})
}
