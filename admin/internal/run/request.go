package run

import (
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Kind is the purpose of a transaction. It says which rows are locked
// besides them, and how the transaction ends (Conclude).
type Kind int

// The kinds from Offers on lock slots. The kinds from Ends on load the heads of the
// queues and wake them.
const (
	// Touch neither takes nor frees a place: grants, starts, offers taken back.
	Touch Kind = iota
	// Admit wakes runs that wait under limits. The caller has locked these limits.
	Admit
	// Offers starts runs.
	Offers
	// Waits records why runs wait.
	Waits
	// Spreads makes the parts of runs.
	Spreads
	// Ends ends runs.
	Ends
	// Sweeps looks at runs, and ends some.
	Sweeps
	// Successors wakes runs for slots that earlier transactions freed.
	Successors
)

// SkipsLocked reports whether rows are left out that another transaction has locked.
func (k Kind) SkipsLocked() bool { return k == Admit || k == Sweeps }

// Wakes reports whether the heads of queues are loaded, so that Conclude can wake them.
func (k Kind) Wakes() bool { return k >= Ends }

func (k Kind) covers() bool { return k == Offers || k == Waits || k == Spreads }

// Request says what a transaction does with which executions.
type Request struct {
	Kind Kind
	IDs  []domain.ExecutionID
	// Lingering are those of IDs that may occupy an instance again after they gave up
	// their places under limits.
	Lingering []domain.ExecutionID
	// Parents are those of IDs with parts that move.
	Parents []domain.ExecutionID
}

// Fact is the part of an execution that never changes. It is known without a lock.
type Fact struct {
	ID       domain.ExecutionID
	Tenant   domain.TenantID
	Job      domain.JobID
	Revision int64
	Executor domain.ExecutorID
	FireAt   int64              // Unix ms
	Parent   domain.ExecutionID // of a part; 0 = none
	Spec     *domain.JobSpec    // of the job
}

// FactOf is the fact of an execution.
func FactOf(e *domain.Execution, spec *domain.JobSpec) Fact {
	return Fact{e.ID, e.TenantID, e.JobID, e.Revision, e.Executor, millis(e.FireAt), e.Parent, spec}
}

// Known is what a node knows of limits and maintenance.
type Known struct {
	Limits   map[domain.LimitKey]bool
	Stopping bool // runs may have to wait for the end of maintenance
}

// Needs are the rows that a request locks, in this order, before its executions.
type Needs struct {
	// Triggers are those of fixed delays.
	Triggers []domain.JobID
	Slots    map[domain.JobID]*SlotNeed
	// ReadSlots forbids slots of the cache, because an execution may enter a queue.
	ReadSlots bool
	// Limits are those of the executions, with their places.
	Limits map[domain.LimitKey][]Place
}

// SlotNeed is a slot that a request locks.
type SlotNeed struct {
	Limit  int  // how many runs may hold it
	Runs   int  // of the request
	Covers bool // its runs cover earlier ones: holders and waiters are loaded too
}

// coverQueue is how much of the queue of a job that covers is loaded. It has one
// waiter at most, apart from those from before the job covered.
const coverQueue = 100

// Depth is how many places of the queue are loaded.
func (n *SlotNeed) Depth() int {
	if n.Covers {
		return max(n.Limit, coverQueue) + 1
	}
	return n.Limit + 1
}

// ParentsOf lists the runs with parts that may move. They are loaded too.
func (q *Request) ParentsOf(facts []Fact) []domain.ExecutionID {
	parents := slices.Clone(q.Parents)
	if q.Kind.Wakes() {
		for _, f := range facts {
			if f.Parent != 0 {
				parents = append(parents, f.Parent)
			}
		}
	}
	slices.Sort(parents)
	return slices.Compact(parents)
}

// Needs decides which rows are locked. facts are those of the executions and of their parents.
func (q *Request) Needs(facts []Fact, known Known) Needs {
	n := Needs{Slots: map[domain.JobID]*SlotNeed{}, Limits: map[domain.LimitKey][]Place{}}
	starts := q.Kind == Offers || q.Kind == Waits
	for _, f := range facts {
		if starts || slices.Contains(q.Lingering, f.ID) {
			for _, k := range LimitsOn(known.Limits, f.Tenant, f.Executor) {
				n.Limits[k] = append(n.Limits[k], f.place())
			}
		}
		if q.Kind < Offers {
			continue
		}
		if f.Spec.Schedule.Kind == domain.ScheduleFixedDelay {
			n.Triggers = append(n.Triggers, f.Job)
		}
		if limit := f.Spec.SlotLimit(); limit > 0 && f.Parent == 0 {
			s := n.Slots[f.Job]
			if s == nil {
				s = &SlotNeed{}
				n.Slots[f.Job] = s
			}
			s.Limit, s.Runs = max(s.Limit, limit), s.Runs+1
			s.Covers = s.Covers || q.Kind.covers() && f.Spec.Blocking == domain.BlockCover
		}
	}
	slices.Sort(n.Triggers)
	n.Triggers = slices.Compact(n.Triggers)
	// A run that waits under a limit or for the end of maintenance waits for the slot too.
	n.ReadSlots = q.Kind == Waits || q.Kind == Successors || q.Kind.covers() && known.Stopping || starts && len(n.Limits) > 0
	return n
}

func (f *Fact) place() Place {
	return PlaceOf(&domain.Execution{ID: f.ID, FireAt: time.UnixMilli(f.FireAt), Priority: f.Spec.Priority})
}

// LimitsOn returns the limits that bound an executor's runs. Its own limit is the first.
func LimitsOn(known map[domain.LimitKey]bool, tenant domain.TenantID, executor domain.ExecutorID) (keys []domain.LimitKey) {
	for _, k := range []domain.LimitKey{{Tenant: tenant, Executor: executor}, {Tenant: tenant}} {
		if known[k] {
			keys = append(keys, k)
		}
	}
	return keys
}

// FinishRequest is the request of Finish.
func FinishRequest(reports []store.AttemptReport) Request {
	q := Request{Kind: Ends}
	for i := range reports {
		r := &reports[i].Report
		q.IDs = append(q.IDs, r.ExecutionID)
		if r.StillRunning {
			q.Lingering = append(q.Lingering, r.ExecutionID)
		}
	}
	return q
}

// CancelRequest is the request of CancelParts.
func CancelRequest(parents []domain.Execution, parts []domain.ExecutionID) Request {
	ids := domain.Collect(parents, func(e *domain.Execution) domain.ExecutionID { return e.ID })
	return Request{Kind: Ends, IDs: append(slices.Clone(ids), parts...), Parents: ids}
}
