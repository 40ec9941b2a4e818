package audit

import (
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Hasher makes keyed hashes. The key is not in the database.
type Hasher interface{ AuditHash(message []byte) string }

// hashOf is the hash of a chained entry behind the entry with the hash before.
func hashOf(h Hasher, before string, e *domain.ChainedEntry) string {
	return h.AuditHash(e.Message("carillon/audit/entry/1", before))
}

// marked reports whether a node has written an entry that has no place yet.
func marked(h Hasher, e *domain.ChainedEntry) bool { return e.Hash == h.AuditHash(e.MarkMessage()) }

// Head is the last entry of a tenant's chain.
type Head struct {
	Seq  int64  `json:"seq"`
	ID   int64  `json:"id"`
	Hash string `json:"hash"`
}

// chain are the ends of a tenant's chain. Base is the last entry that retention has deleted.
type chain struct {
	tenant domain.TenantID
	head   Head
	base   Head // without ID
	seal   string
}

// sealOf is the keyed hash of the ends. A row of audit_chains that somebody else has written
// does not have it.
func (c *chain) sealOf(h Hasher) string {
	m := domain.AuditMessage("carillon/audit/chain/1")
	for _, n := range []int64{int64(c.tenant), c.head.Seq, c.head.ID, c.base.Seq} {
		m.Number(n)
	}
	m.Text(c.head.Hash)
	m.Text(c.base.Hash)
	return h.AuditHash(m)
}

// genuine reports whether the product has written the ends. A chain without entries has no seal.
func (c *chain) genuine(h Hasher) bool {
	return c.head.Seq == 0 && c.base.Seq == 0 && c.seal == "" || c.seal == c.sealOf(h)
}

// Kinds of faults.
const (
	FaultMissing = "missing" // rows between two others, or before the first one, are gone
	FaultEdited  = "edited"  // a row is not what it was when it was chained, or not where
	FaultCut     = "cut"     // rows at the end are gone
	FaultHead    = "head"    // the row with the ends of the chain is forged or gone
	FaultForged  = "forged"  // a row that no node has written
	FaultOrder   = "order"   // a row is much older than the one before it
)

// orderBound is how much older an entry may be than the one before it. A transaction takes
// 10 s at most, and the clocks of nodes are warned of at half a second.
const orderBound = 10 * time.Minute

// Fault is something that the product has not done to the log.
type Fault struct {
	Kind    string
	Seq, ID int64 // of the row where it shows; 0: there is none
	Message string
}

// walk holds rows against each other. Its state is the row before.
type walk struct {
	hasher Hasher
	before Head
	faults []Fault
}

func (w *walk) fault(kind string, seq, id int64, format string, args ...any) {
	w.faults = append(w.faults, Fault{kind, seq, id, fmt.Sprintf(format, args...)})
}

func (w *walk) twice(e *domain.ChainedEntry) {
	w.fault(FaultEdited, e.Seq, e.ID, "entry %d (id %d) is there twice", e.Seq, e.ID)
}

// forged takes a row that has no genuine mark.
func (w *walk) forged(e *domain.ChainedEntry) {
	id := e.AuditEntry.ID
	w.fault(FaultForged, 0, id, "the entry with id %d (%s of %s) was not written by a node: it was put in or changed in the database", id, e.Operation, e.Actor)
}

// row takes the next row in the order of the chain.
func (w *walk) row(e *domain.ChainedEntry) {
	id := e.AuditEntry.ID
	if w.before.ID != 0 {
		if older := domain.IDTime(w.before.ID).Sub(e.At()); older > orderBound {
			w.fault(FaultOrder, e.Seq, id, "entry %d (id %d) is %s older than the entry before it: a clock was set back, or a deleted entry was put in again", e.Seq, id, older.Round(time.Second))
		}
	}
	switch {
	case e.Seq == w.before.Seq+1:
		if e.Hash != hashOf(w.hasher, w.before.Hash, e) {
			w.fault(FaultEdited, e.Seq, id, "entry %d (id %d, %s of %s) was changed or moved after it was chained", e.Seq, id, e.Operation, e.Actor)
		}
	case e.Seq <= w.before.Seq:
		w.twice(e)
	case e.Seq == w.before.Seq+2:
		w.fault(FaultMissing, e.Seq, id, "entry %d was deleted", e.Seq-1)
	default:
		w.fault(FaultMissing, e.Seq, id, "entries %d to %d were deleted", w.before.Seq+1, e.Seq-1)
	}
	w.before = Head{e.Seq, id, e.Hash}
}

// end compares the last row with the ends of the chain.
func (w *walk) end(c *chain) {
	switch last := w.before; {
	case !c.genuine(w.hasher):
		w.fault(FaultHead, 0, 0, "the row of the chain's ends in audit_chains was changed or deleted")
	case last.Seq < c.head.Seq:
		w.fault(FaultCut, last.Seq, last.ID, "the log ends at entry %d, and had entries up to %d", last.Seq, c.head.Seq)
	case last.Seq > c.head.Seq || last.Hash != c.head.Hash:
		w.fault(FaultHead, last.Seq, last.ID, "the log ends at entry %d, which is not the end %d that audit_chains has: one of them was put back", last.Seq, c.head.Seq)
	}
}
