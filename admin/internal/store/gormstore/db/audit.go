package db

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// AuditRow is a row of audit_log. Hash is the mark of the writing node until the row has a
// place in the chain. The add-on that chains the rows sets Seq and replaces Hash.
type AuditRow struct {
	TenantID   int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	ID         int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	Actor      string `gorm:"column:actor"`
	UserID     int64  `gorm:"column:user_id"`
	KeyID      int64  `gorm:"column:key_id"`
	Operation  string `gorm:"column:operation"`
	Outcome    string `gorm:"column:outcome"`
	Code       string `gorm:"column:code"`
	Kind       string `gorm:"column:kind"`
	ObjectID   string `gorm:"column:object_id"`
	ObjectName string `gorm:"column:object_name"`
	BeforeText string `gorm:"column:before_text"`
	AfterText  string `gorm:"column:after_text"`
	Address    string `gorm:"column:address"`
	RequestID  string `gorm:"column:request_id"`
	Seq        int64  `gorm:"column:seq"`
	Hash       string `gorm:"column:hash"`
}

func (AuditRow) TableName() string { return "audit_log" }

// Entry is the row as a domain value.
func (r *AuditRow) Entry() domain.ChainedEntry {
	return domain.ChainedEntry{Seq: r.Seq, Hash: r.Hash, AuditEntry: domain.AuditEntry{
		ID: r.ID, Tenant: domain.TenantID(r.TenantID), Actor: r.Actor, User: domain.UserID(r.UserID), Key: r.KeyID,
		Operation: r.Operation, Outcome: r.Outcome, Code: domain.Code(r.Code), Address: r.Address, Request: r.RequestID,
		AuditObject: domain.AuditObject{Kind: r.Kind, ID: r.ObjectID, Name: r.ObjectName, Before: r.BeforeText, After: r.AfterText},
	}}
}

// Audited adds what is known of the object to the entry that this transaction stores, if it
// stores one.
func (t *Tx) Audited(o domain.AuditObject) {
	if pending := domain.AuditOf(t.Ctx); pending.IsEach() {
		t.audited = append(t.audited, pending.Of(o))
	} else {
		pending.Object(o)
	}
}

// AuditedElsewhere adds an entry to the log of another tenant than that of the transaction's
// entry: an account is a thing of the cluster, and its memberships are of tenants. A context
// without a pending entry records nothing.
func (t *Tx) AuditedElsewhere(tenant domain.TenantID, o domain.AuditObject) {
	pending := domain.AuditOf(t.Ctx)
	if pending == nil {
		return
	}
	if e := pending.Of(o); e.Tenant != tenant {
		e.Tenant = tenant
		t.audited = append(t.audited, e)
	}
}

// Facts are what the audit log says of an object, by the names of the API, without secrets.
// nil: the object is not there.
type Facts map[string]any

func (f Facts) text() string {
	if f == nil {
		return ""
	}
	raw, err := json.Marshal(f)
	if err != nil {
		panic("db: facts for the audit log: " + err.Error()) // numbers and texts only
	}
	return string(raw)
}

// AuditedChange is Audited with the facts before and after a change.
func (t *Tx) AuditedChange(o domain.AuditObject, before, after Facts) {
	o.Before, o.After = before.text(), after.text()
	t.Audited(o)
}

// AuditedRow is AuditedChange of a row. nil: the row is not there.
func AuditedRow[R any](t *Tx, before, after *R, object func(*R) domain.AuditObject, facts func(*R) Facts) {
	side := func(r *R) Facts {
		if r == nil {
			return nil
		}
		return facts(r)
	}
	one := after
	if one == nil {
		one = before
	}
	t.AuditedChange(object(one), side(before), side(after))
}

// AuditMark is the keyed hash that marks entries of the audit log. Its zero value marks none:
// the database has no audit log of changes. Safe for concurrent use.
type AuditMark struct {
	hash atomic.Pointer[func(message []byte) string]
}

// Set marks entries from now on.
func (m *AuditMark) Set(hash func(message []byte) string) { m.hash.Store(&hash) }

// IsSet reports whether the database has an audit log of changes.
func (m *AuditMark) IsSet() bool { return m.hash.Load() != nil }

// InsertAudit writes entries with their marks. A second one with the same id changes nothing.
func (t *Tx) InsertAudit(entries ...domain.AuditEntry) error {
	rows := domain.Collect(entries, t.DB.AuditMark.row)
	if err := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).Create(&rows).Error; err != nil {
		return fmt.Errorf("insert audit entries: %w", err)
	}
	return nil
}

func (m *AuditMark) row(entry *domain.AuditEntry) AuditRow {
	e, mark := entry.Bounded(), ""
	if hash := m.hash.Load(); hash != nil {
		mark = (*hash)(e.MarkMessage())
	}
	return AuditRow{
		TenantID: int64(e.Tenant), ID: e.ID, Actor: e.Actor, UserID: int64(e.User), KeyID: e.Key, Operation: e.Operation, Outcome: e.Outcome,
		Code: string(e.Code), Kind: e.Kind, ObjectID: e.AuditObject.ID, ObjectName: e.Name, BeforeText: e.Before, AfterText: e.After,
		Address: e.Address, RequestID: e.Request, Hash: mark,
	}
}

// writeAudit stores the pending entry of the transaction's context. stored, which may be nil,
// is to be called with the outcome of the commit.
func (t *Tx) writeAudit() (stored func(error), err error) {
	if err := t.writeAudited(); err != nil {
		return nil, err
	}
	pending := domain.AuditOf(t.Ctx)
	if pending.IsEach() {
		return nil, nil
	}
	entry, waits, err := pending.Waiting(t.DB.NewID)
	if err != nil || !waits {
		return nil, err
	}
	return func(err error) {
		if err == nil || errors.Is(err, errCommitUnknown) {
			pending.Stored(err == nil)
		}
	}, t.InsertAudit(entry)
}

// RecordEach adds entries, whose ids are set at the commit, to the transaction. They belong to
// an operation that has ended long before, such as the bulk operation of an item.
func (t *Tx) RecordEach(entries ...domain.AuditEntry) {
	if t.DB.AuditMark.IsSet() {
		t.audited = append(t.audited, entries...)
	}
}

// writeAudited stores the entries that are beside the pending one.
func (t *Tx) writeAudited() (err error) {
	if len(t.audited) == 0 {
		return nil
	}
	for i := range t.audited {
		if t.audited[i].ID, err = t.DB.NewID(); err != nil {
			return err
		}
	}
	return t.InsertAudit(t.audited...)
}
