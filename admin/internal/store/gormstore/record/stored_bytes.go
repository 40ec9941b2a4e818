package record

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// byteSlots is over how many rows the stored bytes of a tenant are spread.
const byteSlots = 16

// CountStored returns how many timers of a tenant are pending, and how many bytes it
// stores with them and beside them.
func CountStored(ctx context.Context, q db.Querier, tenant domain.TenantID) (timers, bytes int64, err error) {
	err = db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&timers, &bytes) },
		"SELECT COALESCE(SUM(c.pending), 0), COALESCE(SUM(c.bytes), 0) + (SELECT COALESCE(SUM(s.bytes), 0) FROM stored_bytes AS s WHERE s.tenant_id = ?)"+
			" FROM timer_counts AS c WHERE c.tenant_id = ?", int64(tenant), int64(tenant))
	return timers, max(bytes, 0), err
}

// AllowBytes refuses documents beyond the quota and its reserve, which timers cannot
// use. So a tenant full of timers can still edit and deploy. There is no lock.
// Transactions at the same moment may together go over the quota.
func AllowBytes(t *db.Tx, tenant domain.TenantID, by int64) error {
	quotas, err := ReadQuotas(t.Ctx, t.Conn, tenant)
	if err != nil {
		return fmt.Errorf("read quotas: %w", err)
	}
	q := OfDocuments(quotas[domain.QuotaStoredBytes])
	if q.Max == 0 {
		return nil
	}
	if _, q.Used, err = CountStored(t.Ctx, t.Conn, tenant); err != nil {
		return fmt.Errorf("count stored bytes: %w", err)
	}
	return q.Check(by)
}

// OfDocuments adds the reserve of documents to a quota of stored bytes.
func OfDocuments(q domain.Quota) domain.Quota {
	q.Max += q.Max / domain.DocumentReserve
	return q
}

// StoreBytes counts rows that were written, or deleted if by is negative. It comes
// late in a transaction, because the slot is locked until the commit.
func StoreBytes(t *db.Tx, tenant domain.TenantID, by int64) error {
	if by == 0 {
		return nil
	}
	_, err := t.Exec(t.Ctx, "INSERT INTO stored_bytes (tenant_id, slot, bytes) VALUES (?, ?, ?)"+
		t.Dialect.OnDuplicate("tenant_id, slot")+" bytes = stored_bytes.bytes + "+t.Dialect.Inserted("bytes"), int64(tenant), rand.N(byteSlots), by)
	if err != nil {
		return fmt.Errorf("count stored bytes: %w", err)
	}
	return nil
}

// StoredBytes is by how much the stored bytes of tenants change.
type StoredBytes map[domain.TenantID]int64

// Save goes in the order of the tenants, so that transactions do not wait for each
// other in a circle.
func (b StoredBytes) Save(t *db.Tx) error {
	for _, tenant := range slices.Sorted(maps.Keys(b)) {
		if err := StoreBytes(t, tenant, b[tenant]); err != nil {
			return err
		}
	}
	return nil
}

// RecountSoon asks for a count of the bytes with the next round, for the tenants of
// rows that are about to be deleted with their history.
func RecountSoon(t *db.Tx, table, ids string) error {
	return recountSoon(t, "tenant_id IN (SELECT o.tenant_id FROM "+table+" AS o WHERE o.id IN ("+ids+"))")
}

// RecountTenantSoon is RecountSoon for one tenant.
func RecountTenantSoon(t *db.Tx, tenant int64) error {
	return recountSoon(t, fmt.Sprintf("tenant_id = %d", tenant))
}

// recountSoon keeps the instant in another form, which a count under way notices.
func recountSoon(t *db.Tx, tenants string) error {
	if _, err := t.Exec(t.Ctx, "UPDATE stored_bytes SET counted_at = -counted_at WHERE slot = 0 AND counted_at > 0 AND "+tenants); err != nil {
		return fmt.Errorf("have stored bytes counted: %w", err)
	}
	return nil
}
