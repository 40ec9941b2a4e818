package domain

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Outcomes of audited operations.
const (
	AuditDone    = "done"
	AuditRefused = "refused"
)

const (
	// MaxAuditText bounds each of the texts before and after, in bytes without the mark.
	MaxAuditText = 8 << 10
	// maxAuditName bounds the other texts of an entry, in characters.
	maxAuditName = 190
)

// AuditObject is the object of an audited operation.
type AuditObject struct {
	// Kind is the noun of the API in the singular, such as api-key.
	Kind, ID, Name string
	// Before and After are JSON without secrets. Empty: not recorded.
	Before, After string
}

// AuditEntry is one row of the audit log.
type AuditEntry struct {
	// ID has the time of the entry (IDTime).
	ID     int64
	Tenant TenantID // 0: the entry is about the cluster
	Actor  string
	User   UserID // 0: an API key, or unknown
	Key    int64  // 0: no API key
	// Operation is the id in the OpenAPI document.
	Operation string
	Outcome   string
	Code      Code // of a refusal
	AuditObject
	Address string
	Request string // id of the HTTP request
}

// Bounded is the entry as it is stored: valid UTF-8, and no longer than its columns.
func (e AuditEntry) Bounded() AuditEntry {
	for _, text := range []*string{&e.Actor, &e.Operation, &e.Kind, &e.AuditObject.ID, &e.Name, &e.Address, &e.Request} {
		*text = strings.ToValidUTF8(*text, "\uFFFD")
		if utf8.RuneCountInString(*text) > maxAuditName {
			*text = string([]rune(*text)[:maxAuditName-1]) + "…"
		}
	}
	e.Before, e.After = boundedAuditText(e.Before), boundedAuditText(e.After)
	return e
}

func boundedAuditText(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= MaxAuditText {
		return text
	}
	cut := MaxAuditText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… [%d of %d bytes]", text[:cut], cut, len(text))
}

// ChainedEntry is an entry with its place in the chain of its tenant.
type ChainedEntry struct {
	AuditEntry
	Seq  int64 // 1, 2, 3, …; 0: not chained yet
	Hash string
}

// AuditMessage is the input of a keyed hash. It has numbers of fixed width and texts behind
// their lengths, so that no two lists of values are the same bytes.
type AuditMessage []byte

// Text appends a text.
func (m *AuditMessage) Text(s string) {
	m.Number(int64(len(s)))
	*m = append(*m, s...)
}

// Number appends a number.
func (m *AuditMessage) Number(n int64) { *m = binary.BigEndian.AppendUint64(*m, uint64(n)) }

// Message is the entry at its place behind the hash before. The label keeps hashes of
// different purposes apart.
func (e *ChainedEntry) Message(label, before string) AuditMessage {
	m := AuditMessage(label)
	m.Text(before)
	for _, n := range []int64{int64(e.Tenant), e.Seq, e.AuditEntry.ID, int64(e.User), e.Key} {
		m.Number(n)
	}
	for _, text := range []string{
		e.Actor, e.Operation, e.Outcome, string(e.Code), e.Kind, e.AuditObject.ID, e.Name, e.Before, e.After, e.Address, e.Request,
	} {
		m.Text(text)
	}
	return m
}

// MarkMessage is the message of the mark that the writing node gives to an entry. The mark
// shows that a node with the key has written it. It covers no place in the chain.
func (e *AuditEntry) MarkMessage() AuditMessage {
	return (&ChainedEntry{AuditEntry: *e}).Message("carillon/audit/mark/1", "")
}

// At is the time of the entry.
func (e *AuditEntry) At() time.Time { return IDTime(e.ID) }

// PendingAudit is the entry of an operation that has not changed anything yet. The first
// write transaction with its context stores it. All methods are safe for concurrent use, and
// those of nil do nothing.
type PendingAudit struct {
	mu     sync.Mutex
	entry  AuditEntry // guarded by mu
	each   bool       // fixed after construction: each object has an entry of its own
	stored bool       // guarded by mu: a commit has stored it, or may have
	known  bool       // guarded by mu: no other transaction has to store it
}

type pendingAuditKey struct{}

// WithAudit returns a context whose first write transaction stores an entry. nil: none of its
// transactions does.
func WithAudit(ctx context.Context, p *PendingAudit) context.Context {
	return context.WithValue(ctx, pendingAuditKey{}, p)
}

// AuditOf returns the pending entry of a context. nil: there is none.
func AuditOf(ctx context.Context) *PendingAudit {
	p, _ := ctx.Value(pendingAuditKey{}).(*PendingAudit)
	return p
}

// NewPendingAudit returns one. Its entry has no id yet.
func NewPendingAudit(e AuditEntry) *PendingAudit { return &PendingAudit{entry: e} }

// Object adds what is known of the object. Empty fields keep their value. Objects of another
// kind than the one that the address names are passed over: deleting an executor deletes jobs.
func (p *PendingAudit) Object(o AuditObject) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	to := &p.entry.AuditObject
	if o.Kind != "" && o.Kind != to.Kind && to.ID != "" {
		return
	}
	for _, f := range []struct {
		to   *string
		from string
	}{{&to.Kind, o.Kind}, {&to.ID, o.ID}, {&to.Name, o.Name}, {&to.Before, o.Before}, {&to.After, o.After}} {
		if f.from != "" {
			*f.to = f.from
		}
	}
}

// Entry returns the entry as it is now.
func (p *PendingAudit) Entry() AuditEntry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entry
}

// Another returns an entry of the same request, for a further object. nil of nil.
func (p *PendingAudit) Another() *PendingAudit {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entry
	e.ID, e.AuditObject = 0, AuditObject{}
	return NewPendingAudit(e)
}

// Each returns entries of the same request for the objects of one transaction, each of which
// gets its own. nil of nil.
func (p *PendingAudit) Each() *PendingAudit {
	out := p.Another()
	if out != nil {
		out.each, out.stored, out.known = true, true, true
	}
	return out
}

// IsEach reports whether each object has an entry of its own (Of).
func (p *PendingAudit) IsEach() bool { return p != nil && p.each }

// Of is the entry of one object. It has no id yet.
func (p *PendingAudit) Of(o AuditObject) AuditEntry {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entry
	e.ID, e.AuditObject = 0, o
	return e
}

// Operation replaces the operation, if the request tells more than the address.
func (p *PendingAudit) Operation(id string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entry.Operation = id
}

// SignedIn says whose session begins or ends, and in which tenant.
func (p *PendingAudit) SignedIn(tenant TenantID, user UserID, name string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entry.Tenant, p.entry.User, p.entry.Actor = tenant, user, name
}

// Waiting returns the entry that a transaction has to store. newID is called once.
func (p *PendingAudit) Waiting(newID func() (int64, error)) (e AuditEntry, waits bool, err error) {
	if p == nil {
		return e, false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return e, false, nil
	}
	if p.entry.ID == 0 {
		if p.entry.ID, err = newID(); err != nil {
			return e, false, err
		}
	}
	return p.entry, true, nil
}

// Stored tells of a commit with the entry. known is false if its outcome is unknown. The
// transaction may be repeated then, and stores the entry under the same id.
func (p *PendingAudit) Stored(known bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stored, p.known = true, known
}

// Drop says that the operation has nothing to do.
func (p *PendingAudit) Drop() { p.Stored(true) }

// Missing reports whether no transaction has stored the entry.
func (p *PendingAudit) Missing() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stored
}
