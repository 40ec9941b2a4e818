package runner

import (
	"cmp"
	"slices"

	"github.com/carillon-sched/carillon/proto"
)

// attempts are all that a process knows of, until nothing is owed for them.
type attempts map[Key]*attempt

// pick returns the attempts that meet the condition, in an order that does not
// depend on chance.
func (all attempts) pick(condition func(*attempt) bool) []*attempt {
	var out []*attempt
	for _, a := range all {
		if condition(a) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b *attempt) int {
		return cmp.Or(cmp.Compare(a.key.Execution, b.key.Execution), cmp.Compare(a.key.Fence, b.key.Fence))
	})
	return out
}

// count is how many meet the condition.
func (all attempts) count(condition func(*attempt) bool) (n int) {
	for _, a := range all {
		if condition(a) {
			n++
		}
	}
	return n
}

// active is the number of attempts that run or may still start.
func (all attempts) active() int {
	return all.count(func(a *attempt) bool { return a.phase != ended && !a.abandoned })
}

// owed is the number of attempts that an admin node still has to hear about.
// Handlers that were given up, and whose end is all that is missing, do not count.
func (all attempts) owed() int {
	return all.count(func(a *attempt) bool { return !a.abandoned || a.phase == ended || a.result != nil || a.writes > 0 })
}

// unsettled is the number of attempts with a result, in the journal or on its
// way there, that no admin node has acknowledged.
func (all attempts) unsettled() int {
	return all.count(func(a *attempt) bool { return a.result != nil || a.phase == ended && !a.told })
}

// MaxSlots bounds Limits.Slots, so that an inventory with all attempts that
// have not ended fits into a registration.
const MaxSlots = 4096

// inventory lists the attempts of the process with this boot for a registration, except
// those that were not promised yet. What does not fit are attempts that have ended:
// their results are sent all the same, like those of earlier processes. complete
// says that everything fits.
func (all attempts) inventory(boot string) (items []*proto.InventoryItem, complete bool) {
	list := all.pick(func(a *attempt) bool { return a.boot == boot && a.phase != accepting })
	slices.SortStableFunc(list, func(a, b *attempt) int { return cmp.Compare(a.phase, b.phase) })
	for _, a := range list[:min(len(list), MaxSlots)] {
		items = append(items, a.item())
	}
	return items, len(list) <= MaxSlots
}

// inherited lists what the registration owes for earlier boots; complete says
// that nothing is left out.
func (all attempts) inherited(boot string) (items []*proto.InventoryItem, complete bool) {
	list := all.pick(func(a *attempt) bool { return a.boot != boot })
	if len(list) > proto.MaxOwed {
		return nil, false
	}
	for _, a := range list {
		item := a.item()
		item.BootId = ""
		items = append(items, item)
	}
	return items, true
}

func (a *attempt) item() *proto.InventoryItem {
	item := &proto.InventoryItem{ExecutionId: a.key.Execution, Fence: a.key.Fence, BootId: a.boot}
	switch a.phase {
	case accepted:
		item.Phase = proto.AttemptPhase_ATTEMPT_PHASE_ACCEPTED
	case granting:
		item.Phase = proto.AttemptPhase_ATTEMPT_PHASE_GRANTED
	case running:
		item.Phase = proto.AttemptPhase_ATTEMPT_PHASE_RUNNING
	case ended:
		item.Phase = proto.AttemptPhase_ATTEMPT_PHASE_DONE
	}
	return item
}
