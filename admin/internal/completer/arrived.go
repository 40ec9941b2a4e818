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
	mu sync.Mutex
	// runs are those by id. A session may report any id, so each tenant's results of
	// one are counted apart. The sweep asks by the id alone: while another tenant's
	// result of it waits to be refused, it leaves the run alone, too.
	runs map[domain.ExecutionID][]arrivals // guarded by mu
}

// arrivals is how many results of a run a tenant has here: they may come twice.
type arrivals struct {
	tenant domain.TenantID
	count  int
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
	id := r.Report.ExecutionID
	list := a.runs[id]
	at := slices.IndexFunc(list, func(of arrivals) bool { return of.tenant == r.Tenant })
	switch {
	case at >= 0:
		list[at].count += n
	case n > 0:
		at, list = len(list), append(list, arrivals{r.Tenant, n})
	default:
		return // a flush that panicked is repeated
	}
	if list[at].count <= 0 {
		list = slices.Delete(list, at, at+1)
	}
	if len(list) == 0 {
		delete(a.runs, id)
	} else {
		a.runs[id] = list
	}
}

// without returns those of ids that are not here.
func (a *arrived) without(ids []domain.ExecutionID) []domain.ExecutionID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(ids, func(id domain.ExecutionID) bool { return len(a.runs[id]) > 0 })
}
