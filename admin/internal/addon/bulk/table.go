package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Table keeps operations, and the answers of their items that were skipped or have failed.
type Table struct{ *db.DB }

const columns = "id, tenant_id, action, request, state, total, after_item, items_read, done, skipped, failed, retry_of, turn, message, created_at, finished_at"

// row is an operation as it is scanned.
type row struct {
	o                   Operation
	request             string
	createdAt, finished int64
}

func (r *row) targets() []any {
	o := &r.o
	return []any{
		&o.ID, &o.Tenant, &o.Action, &r.request, &o.State, &o.Total, &o.Cursor, &o.Read, &o.Done, &o.Skipped, &o.Failed,
		&o.RetryOf, &o.Turn, &o.Message, &r.createdAt, &r.finished,
	}
}

func (r *row) operation() (Operation, error) {
	o := r.o
	if err := json.Unmarshal([]byte(r.request), &o.Order); err != nil {
		return Operation{}, fmt.Errorf("read the request of bulk operation %s: %w", o.ID, err)
	}
	o.CreatedAt, o.FinishedAt = db.Instant(r.createdAt), db.Instant(r.finished)
	return o, nil
}

// Create writes an operation, with those that follow it. They begin at once, or at their At.
// CodeQuotaExceeded: the tenant has too many.
func (tb Table) Create(ctx context.Context, o Operation, after ...Operation) (Operation, error) {
	err := tb.RunRepeatable(ctx, "create bulk operation", func(t *db.Tx) error {
		// The tenant's row keeps those apart that are created at once.
		tenants, err := db.SelectColumn[int64](t.Ctx, t.Conn, "SELECT id FROM tenants WHERE id = ?"+t.Dialect.ForUpdate(), int64(o.Tenant))
		if err != nil {
			return err
		}
		if len(tenants) == 0 {
			return db.NotFound("tenant", o.Tenant)
		}
		states, err := db.Pairs[int64, string](t.Ctx, t.Conn, "SELECT id, state FROM bulk_operations WHERE tenant_id = ?", int64(o.Tenant))
		if err != nil {
			return err
		}
		open := 0
		for id, state := range states {
			if id == int64(o.ID) {
				return nil // an earlier try has written it
			}
			if state == string(Running) {
				open++
			}
		}
		switch {
		case open >= maxOpen:
			return domain.Errorf(domain.CodeQuotaExceeded, "%d bulk operations of the tenant are under way, which is the most; wait until one is done, or cancel one", open)
		case len(states) >= maxKept:
			return domain.Errorf(domain.CodeQuotaExceeded, "the tenant has %d bulk operations, which is the most; old ones are deleted within minutes: try again later", len(states))
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		request, err := o.insert(t, now)
		if err != nil {
			return err
		}
		t.Audited(domain.AuditObject{ID: o.ID.String(), Name: string(o.Action), After: request})
		for i := range after {
			if _, err := after[i].insert(t, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Operation{}, err
	}
	return tb.Find(ctx, o.Tenant, o.ID)
}

// insert writes a new operation, and returns its request.
func (o *Operation) insert(t *db.Tx, now time.Time) (string, error) {
	request, err := json.Marshal(o.Order)
	if err != nil {
		return "", fmt.Errorf("write the request of a bulk operation: %w", err)
	}
	wake := now
	if o.State == Waiting {
		wake = o.At
	}
	_, err = t.Exec(t.Ctx, "INSERT INTO bulk_operations (id, tenant_id, action, request, state, total, retry_of, created_at, wake_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		int64(o.ID), int64(o.Tenant), string(o.Action), string(request), string(o.State), o.Total, int64(o.RetryOf), db.Millis(now), db.Millis(wake))
	return string(request), err
}

// Find returns an operation. CodeNotFound: the tenant has none with this id.
func (tb Table) Find(ctx context.Context, tenant domain.TenantID, id ID) (Operation, error) {
	list, err := tb.list(ctx, " WHERE id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err == nil && len(list) == 0 {
		err = db.NotFound("bulk operation", id)
	}
	if err != nil {
		return Operation{}, err
	}
	return list[0], nil
}

// List lists the operations of a tenant with ids below before, the newest first. 0: from the
// newest on.
func (tb Table) List(ctx context.Context, tenant domain.TenantID, before ID, limit int) ([]Operation, error) {
	if before == 0 {
		return tb.list(ctx, " WHERE tenant_id = ? ORDER BY id DESC LIMIT ?", int64(tenant), limit)
	}
	return tb.list(ctx, " WHERE tenant_id = ? AND id < ? ORDER BY id DESC LIMIT ?", int64(tenant), int64(before), limit)
}

func (tb Table) list(ctx context.Context, where string, args ...any) ([]Operation, error) {
	rows, err := db.LookSelect(ctx, tb.DB, "list bulk operations", (*row).targets, "SELECT "+columns+" FROM bulk_operations"+where, args...)
	if err != nil {
		return nil, err
	}
	return domain.TryCollect(rows, (*row).operation)
}

// Items lists answers of an operation's items with ids above after, by id. outcome "": all
// that are stored.
func (tb Table) Items(ctx context.Context, tenant domain.TenantID, id ID, outcome Outcome, after int64, limit int) ([]Item, error) {
	where, args := "", []any{int64(id), after, int64(tenant)}
	if outcome != "" {
		where, args = " AND outcome = ?", append(args, string(outcome))
	}
	return db.LookSelect(ctx, tb.DB, "list items of a bulk operation", func(it *Item) []any {
		return []any{&it.ID, &it.Name, &it.Outcome, &it.Code, &it.Message}
	}, "SELECT item_id, name, outcome, code, message FROM bulk_items WHERE operation_id = ? AND item_id > ? AND tenant_id = ?"+where+" ORDER BY item_id LIMIT ?", append(args, limit)...)
}

// Stop cancels an operation. What is done stays. CodeAlreadyFinished: it has ended.
func (tb Table) Stop(ctx context.Context, tenant domain.TenantID, id ID, message string) (Operation, error) {
	err := tb.RunRepeatable(ctx, "cancel bulk operation", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "UPDATE bulk_operations SET state = ?, message = ?, wake_at = NULL, finished_at = "+t.Dialect.ClockNow()+" WHERE id = ? AND tenant_id = ? AND wake_at IS NOT NULL",
			string(Cancelled), clip(message), int64(id), int64(tenant))
		return err
	})
	if err != nil {
		return Operation{}, err
	}
	o, err := tb.Find(ctx, tenant, id)
	if err == nil && (o.State != Cancelled || o.Message != clip(message)) {
		err = domain.Errorf(domain.CodeAlreadyFinished, "the bulk operation %s is %s already", id, o.State)
	}
	if err != nil {
		return Operation{}, err
	}
	return o, nil
}

// due are operations that no node works on, those that wait longest first.
func (tb Table) due(ctx context.Context, limit int) ([]ID, error) {
	return db.LookColumn[ID](ctx, tb.DB, "find bulk operations",
		"SELECT id FROM bulk_operations"+tb.Dialect.ByIndex("ix_bulk_operations_wake")+" WHERE wake_at <= "+tb.Dialect.ClockNow()+" ORDER BY wake_at LIMIT ?", limit)
}

// take gives an operation to this node for the time of a lease; nil: another node has it, or
// it has ended.
func (tb Table) take(ctx context.Context, id ID) (*Operation, error) {
	return db.Value(ctx, tb.RunRepeatable, "take bulk operation", func(t *db.Tx) (*Operation, error) {
		rows, err := db.Select(t.Ctx, t.Conn, (*row).targets, "SELECT "+columns+" FROM bulk_operations WHERE id = ? AND wake_at <= "+t.Dialect.ClockNow()+t.Dialect.ForUpdateSkip(), int64(id))
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		o, err := rows[0].operation()
		if err != nil {
			return nil, err
		}
		o.Turn++
		o.State = Running // it may have waited
		_, err = t.Exec(t.Ctx, "UPDATE bulk_operations SET state = ?, turn = ?, wake_at = "+t.Dialect.ClockNow()+" + ? WHERE id = ?", string(o.State), o.Turn, lease.Milliseconds(), int64(id))
		return &o, err
	})
}

// errLost says that the operation was cancelled, or that another node has it.
var errLost = errors.New("the bulk operation is not this node's any more")

// errStored says that the batch was stored by an earlier try.
var errStored = errors.New("the batch is stored")

// hold locks an operation that this node has taken, as it was before the batch.
func (o *Operation) hold(t *db.Tx) error {
	type mark struct{ turn, cursor, read int64 }
	rows, err := db.Select(t.Ctx, t.Conn, func(m *mark) []any { return []any{&m.turn, &m.cursor, &m.read} },
		"SELECT turn, after_item, items_read FROM bulk_operations WHERE id = ? AND wake_at IS NOT NULL"+t.Dialect.ForUpdate(), int64(o.ID))
	switch {
	case err != nil:
		return err
	case len(rows) == 0 || rows[0].turn != o.Turn:
		return errLost
	case rows[0].cursor != o.Cursor || rows[0].read != o.Read:
		return errStored
	}
	return nil
}

// save writes how far an operation is, with answers, and prolongs the lease.
func (o *Operation) save(t *db.Tx, stored []Item) error {
	for some := range slices.Chunk(stored, db.ListOnce) {
		args := make([]any, 0, 7*len(some))
		for _, it := range some {
			args = append(args, int64(o.ID), it.ID, int64(o.Tenant), clip(it.Name), string(it.Outcome), string(it.Code), clip(it.Message))
		}
		statement := "INSERT INTO bulk_items (operation_id, item_id, tenant_id, name, outcome, code, message) VALUES (?, ?, ?, ?, ?, ?, ?)"
		for range len(some) - 1 {
			statement += ", (?, ?, ?, ?, ?, ?, ?)"
		}
		if _, err := t.Exec(t.Ctx, statement, args...); err != nil {
			return fmt.Errorf("store answers: %w", err)
		}
	}
	finished, wake := "0", t.Dialect.ClockNow()+fmt.Sprintf(" + %d", lease.Milliseconds())
	if o.State != Running {
		finished, wake = t.Dialect.ClockNow(), "NULL"
	}
	_, err := t.Exec(t.Ctx, "UPDATE bulk_operations SET state = ?, after_item = ?, items_read = ?, done = ?, skipped = ?, failed = ?, message = ?, finished_at = "+finished+", wake_at = "+wake+" WHERE id = ? AND turn = ?",
		string(o.State), o.Cursor, o.Read, o.Done, o.Skipped, o.Failed, clip(o.Message), int64(o.ID), o.Turn)
	return err
}

// leave lets any node go on with an operation after a pause.
func (tb Table) leave(ctx context.Context, o *Operation, pause time.Duration) error {
	return tb.RunRepeatable(ctx, "leave bulk operation", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "UPDATE bulk_operations SET wake_at = "+t.Dialect.ClockNow()+" + ? WHERE id = ? AND turn = ? AND wake_at IS NOT NULL", pause.Milliseconds(), int64(o.ID), o.Turn)
		return err
	})
}

// old are ended operations that leave: those of more than 30 days ago, and of each tenant
// those behind the newest ones.
func (tb Table) old(ctx context.Context, limit int) ([]ID, error) {
	return db.LookColumn[ID](ctx, tb.DB, "find old bulk operations", fmt.Sprintf(`SELECT o.id FROM bulk_operations AS o WHERE o.wake_at IS NULL AND (o.created_at < %s - %d
		OR (SELECT COUNT(*) FROM bulk_operations AS n WHERE n.tenant_id = o.tenant_id AND n.id > o.id) >= %d) ORDER BY o.id LIMIT ?`, tb.Dialect.ClockNow(), keptFor.Milliseconds(), kept), limit)
}

// deleteAtOnce is how many answers one transaction deletes.
const deleteAtOnce = 1000

// remove deletes an ended operation, its answers first.
func (tb Table) remove(ctx context.Context, id ID) error {
	for {
		n, err := db.Value(ctx, tb.RunBulk, "delete old bulk operation", func(t *db.Tx) (int64, error) {
			n, err := t.Exec(t.Ctx, t.Dialect.DeleteBounded("bulk_items", "operation_id = ?"), int64(id), deleteAtOnce)
			if err == nil && n < deleteAtOnce {
				_, err = t.Exec(t.Ctx, "DELETE FROM bulk_operations WHERE id = ? AND wake_at IS NULL", int64(id))
			}
			return n, err
		})
		if err != nil || n < deleteAtOnce {
			return err
		}
	}
}

// maxText bounds texts in the tables, in characters.
const maxText = 500

func clip(text string) string {
	if runes := []rune(text); len(runes) > maxText {
		return string(runes[:maxText-1]) + "…"
	}
	return text
}
