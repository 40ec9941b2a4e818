package ledger

import (
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/verify"
)

// family is what the rows of a fire with shards say, the parent's and those of
// its parts, in whatever order they come.
type family struct {
	parent    *store.LedgerEntry // nil until it has come
	shards    []int32            // the indexes that have rows
	living    int
	succeeded int
}

// noteFamily collects. Only families cost memory.
func (a *account) noteFamily(e *store.LedgerEntry) {
	id := e.Parent
	if e.Stage != domain.StageNone {
		id = e.ID
	}
	if id == 0 {
		return
	}
	f := a.families[id]
	if f == nil {
		f = &family{}
		a.families[id] = f
	}
	if e.Stage != domain.StageNone {
		parent := *e // the entry is good until the next one
		f.parent = &parent
		return
	}
	if !e.State.Terminal() {
		f.living++
	}
	if e.Part == domain.PartShard {
		f.shards = append(f.shards, int32(e.Shard))
		if e.State == domain.Succeeded {
			f.succeeded++
		}
	}
}

// judgeFamilies: each shard has one row, and the parent says what they say. Parts
// whose parent was not read belong to one that is too old.
func (a *account) judgeFamilies() {
	for _, f := range a.families {
		if f.parent != nil {
			a.judgeFamily(f)
		}
	}
}

func (a *account) judgeFamily(f *family) {
	p := f.parent
	slices.Sort(f.shards)
	for i, shard := range f.shards[min(1, len(f.shards)):] {
		if f.shards[i] == shard {
			a.find(verify.Double, p.JobID, p.ID, p.FireAt, "two rows of shard %d", shard)
		}
	}
	cut := p.Stage == domain.StageShards || p.Stage == domain.StageAfter
	if cut && !p.Picked {
		for shard := range p.Shards {
			if _, there := slices.BinarySearch(f.shards, int32(shard)); !there {
				a.find(verify.Missed, p.JobID, p.ID, p.FireAt, "no row of shard %d of %d", shard, p.Shards)
			}
		}
	}
	switch {
	case p.State.Terminal() && f.living > 0:
		a.find(verify.FalseResult, p.JobID, p.ID, p.FireAt, "the run has ended, and %d of its parts have not", f.living)
	case p.State == domain.Succeeded && f.succeeded < len(f.shards):
		a.find(verify.FalseResult, p.JobID, p.ID, p.FireAt, "succeeded, and %d of its %d shards did not", len(f.shards)-f.succeeded, len(f.shards))
	case p.State == domain.Failed && p.Reason == domain.ReasonShards && f.succeeded == len(f.shards):
		a.find(verify.FalseResult, p.JobID, p.ID, p.FireAt, "failed because of its shards, and all of them succeeded")
	}
}

// judgeParentSlot is judgeSlot for a parent, which holds the slot from its start.
func (a *account) judgeParentSlot(e *store.LedgerEntry, line *jobLine) {
	if line.single && line.granted != 0 && e.StartedAt >= line.granted && e.StartedAt < line.finished {
		a.find(verify.Overlap, e.JobID, e.ID, e.StartedAt, "cut into shards while the run before it held the job's only slot")
	}
	if e.StartedAt >= line.granted {
		line.granted, line.finished = e.StartedAt, e.FinishedAt
	}
}
