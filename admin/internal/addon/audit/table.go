package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Table is the audit log in a database, with its chains.
type Table struct {
	DB     *db.DB
	Hasher Hasher
	// Forged is called with the ids of rows that Chain has set aside, because no node has
	// written them. May be nil.
	Forged func(tenant domain.TenantID, ids []int64)
}

// NewTable returns the log of a database. Each entry that the database stores from now on has
// a mark of the hasher.
func NewTable(database *db.DB, hasher Hasher) Table {
	database.AuditMark.Set(hasher.AuditHash)
	return Table{DB: database, Hasher: hasher}
}

// asideSeq is the number of a row that has no genuine mark. It is in no chain.
const asideSeq = -1

const selectFrom = "SELECT tenant_id, id, actor, user_id, key_id, operation, outcome, code, kind, object_id, object_name, before_text, after_text, address, request_id, seq, hash FROM audit_log"

func into(r *db.AuditRow) []any {
	return []any{
		&r.TenantID, &r.ID, &r.Actor, &r.UserID, &r.KeyID, &r.Operation, &r.Outcome, &r.Code, &r.Kind, &r.ObjectID, &r.ObjectName,
		&r.BeforeText, &r.AfterText, &r.Address, &r.RequestID, &r.Seq, &r.Hash,
	}
}

// entries reads entries. by says which index to use.
func entries(ctx context.Context, q db.Querier, by, where string, args ...any) ([]domain.ChainedEntry, error) {
	rows, err := db.Select(ctx, q, into, selectFrom+by+" WHERE "+where, args...)
	return domain.Collect(rows, (*db.AuditRow).Entry), err
}

// Record stores an entry in a transaction of its own.
func (l Table) Record(ctx context.Context, e domain.AuditEntry) (err error) {
	if e.ID, err = l.DB.NewID(); err != nil {
		return err
	}
	return l.DB.RunRepeatable(ctx, "record refusal", func(t *db.Tx) error { return t.InsertAudit(e) })
}

// Filter chooses entries of a tenant. Empty fields choose all.
type Filter struct {
	Tenant                         domain.TenantID
	Actor, Operation, Kind, Object string
	Outcome                        string
	From, To                       time.Time // From is included, To is not
	Below                          int64     // only ids below it; 0: all
	Limit                          int
}

// List returns entries, the newest first. more: there are others behind them. A page ends
// with the entry with which its texts reach domain.MaxPageBytes.
func (l Table) List(ctx context.Context, f Filter) (list []domain.ChainedEntry, more bool, err error) {
	where, args := []string{"tenant_id = ?"}, []any{int64(f.Tenant)}
	and := func(is bool, condition string, values ...any) {
		if is {
			where, args = append(where, condition), append(args, values...)
		}
	}
	and(f.Actor != "", "actor = ?", f.Actor)
	and(f.Operation != "", "operation = ?", f.Operation)
	and(f.Outcome != "", "outcome = ?", f.Outcome)
	and(f.Kind != "", "kind = ?", f.Kind)
	and(f.Object != "", "(object_id = ? OR object_name = ?)", f.Object, f.Object)
	and(!f.From.IsZero(), "id >= ?", domain.IDFloor(f.From))
	and(!f.To.IsZero(), "id < ?", domain.IDFloor(f.To))
	and(f.Below != 0, "id < ?", f.Below)
	rows, err := db.LookSelect(ctx, l.DB, "list audit entries", into, selectFrom+" WHERE "+strings.Join(where, " AND ")+" ORDER BY id DESC LIMIT ?", append(args, f.Limit+1)...)
	n := domain.FirstWithin(rows, domain.MaxPageBytes, func(r *db.AuditRow) int64 { return int64(len(r.BeforeText) + len(r.AfterText)) })
	n = min(n, f.Limit)
	return domain.Collect(rows[:n], (*db.AuditRow).Entry), n < len(rows), err
}

const (
	// chainOnce is how many rows one transaction chains, and chainRound one round.
	chainOnce  = 100
	chainRound = 2000
	// deleteOnce is how many old rows one transaction deletes.
	deleteOnce = 1000
)

// Chain gives rows that have no place yet one in the chain of their tenant. It returns the new
// heads. A chain whose ends are not genuine is left as it is, and named in the error.
func (l Table) Chain(ctx context.Context) (map[domain.TenantID]Head, error) {
	type loose struct {
		tenant domain.TenantID
		id     int64
	}
	rows, err := db.LookSelect(ctx, l.DB, "find unchained audit entries", func(r *loose) []any { return []any{&r.tenant, &r.id} },
		"SELECT tenant_id, id FROM audit_log"+l.DB.Dialect.ByIndex("ix_audit_log_unchained")+" WHERE seq = 0 LIMIT ?", chainRound)
	if err != nil {
		return nil, err
	}
	ids := map[domain.TenantID][]int64{}
	for _, r := range rows {
		ids[r.tenant] = append(ids[r.tenant], r.id)
	}
	heads, errs := map[domain.TenantID]Head{}, []error(nil)
	for tenant, list := range ids {
		for part := range slices.Chunk(list, chainOnce) {
			done, err := l.chainSome(ctx, tenant, part)
			if err != nil {
				errs = append(errs, err)
				break
			}
			heads[tenant] = done.head
			if l.Forged != nil && len(done.forged) > 0 {
				l.Forged(tenant, done.forged)
			}
		}
	}
	return heads, errors.Join(errs...)
}

// chained is the result of one step. forged are ids of rows that were set aside.
type chained struct {
	head   Head
	forged []int64
}

func (l Table) chainSome(ctx context.Context, tenant domain.TenantID, ids []int64) (chained, error) {
	return db.Value(ctx, l.DB.RunRepeatable, "chain audit entries", func(t *db.Tx) (chained, error) {
		c, err := l.lock(t, tenant)
		if err != nil {
			return chained{}, err
		}
		rows, err := entries(t.Ctx, t.Conn, t.Dialect.ByPrimary(), "tenant_id = ? AND id IN ("+db.IDList(ids)+") AND seq = 0 ORDER BY id"+t.Dialect.ForUpdate(), int64(tenant))
		if err != nil || len(rows) == 0 {
			return chained{head: c.head}, err
		}
		var genuine, forged []int64
		var seqs, hashes strings.Builder
		for i := range rows {
			e := &rows[i]
			if !marked(l.Hasher, e) {
				forged = append(forged, e.AuditEntry.ID)
				continue
			}
			genuine = append(genuine, e.AuditEntry.ID)
			e.Seq = c.head.Seq + 1
			e.Hash = hashOf(l.Hasher, c.head.Hash, e)
			c.head = Head{e.Seq, e.AuditEntry.ID, e.Hash}
			fmt.Fprintf(&seqs, " WHEN %d THEN %d", e.AuditEntry.ID, e.Seq)
			fmt.Fprintf(&hashes, " WHEN %d THEN '%s'", e.AuditEntry.ID, e.Hash)
		}
		if len(forged) > 0 {
			if _, err := t.Exec(t.Ctx, "UPDATE audit_log SET seq = ? WHERE tenant_id = ? AND id IN ("+db.IDList(forged)+")", asideSeq, int64(tenant)); err != nil {
				return chained{}, err
			}
		}
		if len(genuine) == 0 {
			return chained{c.head, forged}, nil
		}
		_, err = t.Exec(t.Ctx, "UPDATE audit_log SET seq = CASE id"+seqs.String()+" END, hash = CASE id"+hashes.String()+" END WHERE tenant_id = ? AND id IN ("+db.IDList(genuine)+")", int64(tenant))
		if err != nil {
			return chained{}, err
		}
		return chained{c.head, forged}, l.save(t, &c)
	})
}

// lock locks the ends of a tenant's chain. Only chaining and retention wait for each other here.
func (l Table) lock(t *db.Tx, tenant domain.TenantID) (chain, error) {
	c, found, err := l.ends(t.Ctx, t.Conn, tenant, t.Dialect.ForUpdate())
	if err != nil {
		return c, err
	}
	if !found {
		if _, err := t.Exec(t.Ctx, "INSERT INTO audit_chains (tenant_id, head_seq, head_id, head_hash, base_seq, base_hash, seal) VALUES (?, 0, 0, '', 0, '', '')", int64(tenant)); db.IsDuplicate(err) {
			return c, db.ErrStale // another node was quicker: the repetition finds its row
		} else if err != nil {
			return c, err
		}
		var last int64
		err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error { return rows.Scan(&last) }, "SELECT COALESCE(MAX(seq), 0) FROM audit_log WHERE tenant_id = ?", int64(tenant))
		if err == nil && last > 0 {
			err = errNotGenuine(tenant)
		}
		return c, err
	}
	if !c.genuine(l.Hasher) {
		return c, errNotGenuine(tenant)
	}
	return c, nil
}

func errNotGenuine(tenant domain.TenantID) error {
	return domain.Errorf(domain.CodeConflict, "the ends of the audit chain of tenant %s were changed or deleted in the database: run carillon audit verify", tenant)
}

func (l Table) ends(ctx context.Context, q db.Querier, tenant domain.TenantID, lock string) (c chain, found bool, err error) {
	c.tenant = tenant
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(&c.head.Seq, &c.head.ID, &c.head.Hash, &c.base.Seq, &c.base.Hash, &c.seal)
	}, "SELECT head_seq, head_id, head_hash, base_seq, base_hash, seal FROM audit_chains WHERE tenant_id = ?"+lock, int64(tenant))
	return c, found, err
}

func (l Table) save(t *db.Tx, c *chain) error {
	return t.MustFind("audit chain", c.tenant, "UPDATE audit_chains SET head_seq = ?, head_id = ?, head_hash = ?, base_seq = ?, base_hash = ?, seal = ? WHERE tenant_id = ?",
		c.head.Seq, c.head.ID, c.head.Hash, c.base.Seq, c.base.Hash, c.sealOf(l.Hasher), int64(c.tenant))
}

// Heads returns the heads of all chains.
func (l Table) Heads(ctx context.Context) (map[domain.TenantID]Head, error) {
	type row struct {
		tenant domain.TenantID
		head   Head
	}
	rows, err := db.LookSelect(ctx, l.DB, "list audit chains", func(r *row) []any { return []any{&r.tenant, &r.head.Seq, &r.head.ID, &r.head.Hash} },
		"SELECT tenant_id, head_seq, head_id, head_hash FROM audit_chains")
	out := map[domain.TenantID]Head{}
	for _, r := range rows {
		out[r.tenant] = r.head
	}
	return out, err
}

// DeleteBefore deletes rows from the beginning of a tenant's chain that are older than an
// instant. The chain keeps the hash of the last one as its base. It deletes nothing behind a
// gap, so that the gap stays visible.
func (l Table) DeleteBefore(ctx context.Context, tenant domain.TenantID, before time.Time) (deleted int64, err error) {
	return db.Value(ctx, l.DB.RunRepeatable, "delete old audit entries", func(t *db.Tx) (int64, error) {
		c, err := l.lock(t, tenant)
		if err != nil {
			return 0, err
		}
		rows, err := entries(t.Ctx, t.Conn, t.Dialect.ByIndex("ix_audit_log_seq"), "tenant_id = ? AND seq > ? ORDER BY seq LIMIT ?", int64(tenant), c.base.Seq, deleteOnce)
		if err != nil {
			return 0, err
		}
		first := c.base.Seq
		for i := range rows {
			if e := &rows[i]; e.Seq != c.base.Seq+1 || !e.At().Before(before) {
				break
			}
			c.base = Head{Seq: rows[i].Seq, Hash: rows[i].Hash}
		}
		if c.base.Seq == first {
			return 0, nil
		}
		n, err := t.Exec(t.Ctx, "DELETE FROM audit_log WHERE tenant_id = ? AND seq > ? AND seq <= ?", int64(tenant), first, c.base.Seq)
		if err != nil {
			return 0, err
		}
		return n, l.save(t, &c)
	})
}

// Verification is the result of one page of a walk along a chain.
type Verification struct {
	// Last is the last row of the page. Done: it is the last row of the log, too.
	Last    Head
	Done    bool
	Checked int
	Faults  []Fault
	// The rest is set when the walk is done.
	Unchained int64
	Head      Head
}

// Verify walks along the chain of a tenant, from the row behind after, limit rows at most.
// known is a head that was kept outside of the database. Its Seq is 0 if there is none.
func (l Table) Verify(ctx context.Context, tenant domain.TenantID, after int64, known Head, limit int) (v Verification, err error) {
	err = l.DB.InSnapshot(ctx, func(q db.Querier) error {
		v = Verification{}
		c, _, err := l.ends(ctx, q, tenant, "")
		if err != nil {
			return err
		}
		bySeq := l.DB.Dialect.ByIndex("ix_audit_log_seq")
		w := walk{hasher: l.Hasher, before: c.base}
		if after > c.base.Seq {
			if err := l.resume(ctx, q, tenant, after, &w); err != nil {
				return err
			}
		}
		rows, err := entries(ctx, q, bySeq, "tenant_id = ? AND seq > ? ORDER BY seq, id LIMIT ?", int64(tenant), w.before.Seq, limit)
		if err != nil {
			return err
		}
		for i := range rows {
			w.row(&rows[i])
			if rows[i].Seq == known.Seq && rows[i].Hash != known.Hash {
				w.fault(FaultCut, known.Seq, rows[i].AuditEntry.ID, "entry %d is not the one whose head was kept: the log was put back to an earlier state", known.Seq)
			}
		}
		v.Last, v.Checked, v.Done = w.before, len(rows), len(rows) < limit
		if v.Done {
			w.end(&c)
			if err := aside(ctx, q, &c, &w, limit); err != nil {
				return err
			}
			v.Head = c.head
			if known.Seq > max(c.head.Seq, w.before.Seq) {
				w.fault(FaultCut, w.before.Seq, w.before.ID, "the log ends at entry %d, and the kept head is entry %d: the end was cut off", w.before.Seq, known.Seq)
			}
			if known.Seq != 0 && known.Seq == c.base.Seq && known.Hash != c.base.Hash {
				w.fault(FaultCut, known.Seq, 0, "entry %d is not the one whose head was kept: the log was put back to an earlier state", known.Seq)
			}
			err = db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&v.Unchained) }, "SELECT COUNT(*) FROM audit_log WHERE tenant_id = ? AND seq = 0", int64(tenant))
			if err != nil {
				return err
			}
		}
		v.Faults = w.faults
		return err
	})
	return v, err
}

// resume makes the row at a place the one before. The row may be gone since.
func (l Table) resume(ctx context.Context, q db.Querier, tenant domain.TenantID, seq int64, w *walk) error {
	rows, err := entries(ctx, q, l.DB.Dialect.ByIndex("ix_audit_log_seq"), "tenant_id = ? AND seq = ? ORDER BY id", int64(tenant), seq)
	w.before = Head{Seq: seq}
	for i := range rows {
		if w.before.ID != 0 {
			w.twice(&rows[i])
		}
		w.before = Head{seq, rows[i].ID, rows[i].Hash}
	}
	return err
}

// aside reports rows that are in no chain: those without a genuine mark, limit at most, and
// those with a number before its beginning.
func aside(ctx context.Context, q db.Querier, c *chain, w *walk, limit int) error {
	for _, seq := range []int64{asideSeq, 0} {
		rows, err := entries(ctx, q, "", "tenant_id = ? AND seq = ? ORDER BY id LIMIT ?", int64(c.tenant), seq, limit)
		if err != nil {
			return err
		}
		for i := range rows {
			if seq == asideSeq || !marked(w.hasher, &rows[i]) {
				w.forged(&rows[i])
			}
		}
	}
	var odd int64
	err := db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&odd) },
		"SELECT COUNT(*) FROM audit_log WHERE tenant_id = ? AND seq NOT IN (?, 0) AND seq <= ?", int64(c.tenant), asideSeq, c.base.Seq)
	if err == nil && odd > 0 {
		w.fault(FaultEdited, 0, 0, "%s a number before the beginning of the chain", spelling.Count(odd, "entry has", "entries have"))
	}
	return err
}
