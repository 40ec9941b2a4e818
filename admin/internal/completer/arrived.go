package completer

import (
	"slices"
	"sync"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// arrived are the runs whose results are here and not written yet. Under
// overload they wait for longer than the instant at which a sweep looks at the
// run; what that writes would only be in the way of the result.
type arrived struct {
	mu   sync.Mutex
	runs map[domain.ExecutionID]int // guarded by mu: how many results, which may come twice
}

func (a *arrived) enter(results []Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs == nil {
		a.runs = map[domain.ExecutionID]int{}
	}
	for i := range results {
		a.runs[results[i].Report.ExecutionID]++
	}
}

func (a *arrived) leave(results []Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range results {
		id := results[i].Report.ExecutionID
		if a.runs[id]--; a.runs[id] <= 0 { // below: a flush that panicked is repeated
			delete(a.runs, id)
		}
	}
}

// without returns those of ids that are not here.
func (a *arrived) without(ids []domain.ExecutionID) []domain.ExecutionID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(ids, func(id domain.ExecutionID) bool { return a.runs[id] > 0 })
}
