package completer

import (
	"slices"
	"sync"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// arrived are the runs whose results are here and not written yet. Under
// overload they wait for longer than the instant at which a sweep looks at the
// run; what that writes would only be in the way of the result.
type arrived struct {
	mu sync.Mutex
	// runs are those by id. A session may report any id, so the results of each
	// executor are counted apart, and the sweep compares it with the run's.
	runs map[domain.ExecutionID][]arrivals // guarded by mu
}

// arrivals is how many results of a run an executor has here: they may come twice.
type arrivals struct {
	of    store.ReportedRun
	count int
}

func (a *arrived) enter(results []Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs == nil {
		a.runs = map[domain.ExecutionID][]arrivals{}
	}
	for i := range results {
		a.addLocked(&results[i], 1)
	}
}

func (a *arrived) leave(results []Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range results {
		a.addLocked(&results[i], -1)
	}
}

func (a *arrived) addLocked(r *Result, n int) {
	of := store.ReportedRun{Tenant: r.Tenant, Executor: r.Executor, ID: r.Report.ExecutionID}
	list := a.runs[of.ID]
	at := slices.IndexFunc(list, func(a arrivals) bool { return a.of == of })
	switch {
	case at >= 0:
		list[at].count += n
	case n > 0:
		at, list = len(list), append(list, arrivals{of, n})
	default:
		return // a flush that panicked is repeated
	}
	if list[at].count <= 0 {
		list = slices.Delete(list, at, at+1)
	}
	if len(list) == 0 {
		delete(a.runs, of.ID)
	} else {
		a.runs[of.ID] = list
	}
}

// among returns those of ids that are here, by who reported them.
func (a *arrived) among(ids []domain.ExecutionID) (out []store.ReportedRun) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		for _, one := range a.runs[id] {
			out = append(out, one.of)
		}
	}
	return out
}
