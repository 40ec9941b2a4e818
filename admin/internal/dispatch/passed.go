package dispatch

import (
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// passed is what is kept of a choice: who had no room, and whether the strategy
// had to decide between equals. It writes nothing and asks nobody
// (docs/adr/0037).
func passed(all []candidate, chosen domain.InstanceID, wished bool) domain.Passed {
	p := domain.NewPassed(len(all), func(i int) bool { return all[i].free <= 0 }, func(i int) domain.InstanceID { return all[i].id })
	switch {
	case wished:
		return p.AsWished()
	case tied(all, chosen):
		return p.AsTied()
	}
	return p
}

func tied(all []candidate, chosen domain.InstanceID) bool {
	return tiedWith(all, max(0, slices.IndexFunc(all, func(c candidate) bool { return c.id == chosen })))
}

// tiedWith reports whether another one with room is as good as the best.
func tiedWith(all []candidate, best int) bool {
	for i := range all {
		if i != best && all[i].free > 0 && all[i].tier == all[best].tier && all[i].rank == all[best].rank {
			return true
		}
	}
	return false
}
