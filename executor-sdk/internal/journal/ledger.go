package journal

import (
	"bytes"
	"slices"
)

type key struct{ execution, fence int64 }

// Entry is an attempt that something is still owed for.
type Entry struct {
	Execution int64
	Fence     int64
	// Boot is the process that accepted it.
	Boot string
	// Kind is the furthest it came: Accepted, Granted or Done. An attempt that was
	// accepted counts as granted where the record of that may be missing.
	Kind Kind
	// Result is the body of Done.
	Result []byte
	order  uint64 // of arrival
}

// ledger is what is owed: the sum of all records. It is the state that both
// reading a segment and appending to one lead to.
type ledger struct {
	boot    string   // whose records are being applied
	machine Machine  // on which it ran
	boots   []string // all seen, oldest first
	entries map[key]*Entry
	bytes   int // size of the entries as records
	arrived uint64
}

func newLedger() *ledger { return &ledger{entries: map[key]*Entry{}} }

// apply adds one record. Records may repeat: an entry only moves forward, and
// a later result replaces an earlier one. It keeps a copy of the body.
func (l *ledger) apply(r Record) {
	if r.Kind == kindBoot {
		l.boot, l.machine = string(r.Body), r.machine()
		if !slices.Contains(l.boots, l.boot) {
			l.boots = append(l.boots, l.boot)
		}
		return
	}
	k := key{r.Execution, r.Fence}
	e := l.entries[k]
	if r.Kind == Settled {
		if e != nil {
			l.bytes -= e.size()
			delete(l.entries, k)
		}
		return
	}
	if e == nil {
		l.arrived++
		e = &Entry{Execution: r.Execution, Fence: r.Fence, Boot: l.boot, order: l.arrived}
		l.entries[k] = e
	} else {
		l.bytes -= e.size()
	}
	e.Kind = max(e.Kind, r.Kind)
	if r.Kind == Done {
		e.Result = bytes.Clone(r.Body)
	}
	l.bytes += e.size()
}

// doubt is for when the end of the last process's records may be missing: what
// it had accepted may have been started.
func (l *ledger) doubt() {
	for _, e := range l.entries {
		if e.Boot == l.boot && e.Kind == Accepted {
			e.Kind = Granted
		}
	}
}

func (e *Entry) size() int { return frameSize + fixedSize + len(e.Result) }

// sorted returns the entries as they arrived.
func (l *ledger) sorted() []*Entry {
	all := make([]*Entry, 0, len(l.entries))
	for _, e := range l.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *Entry) int { return int(int64(a.order) - int64(b.order)) })
	return all
}

// snapshot writes the ledger as the beginning of a segment: boots that owe
// something with their entries, then boot itself, under which later records stand.
// Boots named in keep are written even when they owe nothing.
func (l *ledger) snapshot(boot string, machine Machine, keep []string) []byte {
	buf := append(make([]byte, 0, len(header)+l.bytes+256), header...)
	byBoot := map[string][]*Entry{}
	for _, e := range l.sorted() {
		byBoot[e.Boot] = append(byBoot[e.Boot], e)
	}
	for _, b := range l.boots {
		if b == boot || len(byBoot[b]) == 0 && !slices.Contains(keep, b) {
			continue
		}
		buf = appendRecord(buf, bootRecord(b, Machine{})) // what is in a snapshot is whole
		buf = appendEntries(buf, byBoot[b])
	}
	buf = appendRecord(buf, bootRecord(boot, machine))
	return appendEntries(buf, byBoot[boot])
}

func appendEntries(buf []byte, entries []*Entry) []byte {
	for _, e := range entries {
		buf = appendRecord(buf, Record{Kind: e.Kind, Execution: e.Execution, Fence: e.Fence, Body: e.Result})
	}
	return buf
}
