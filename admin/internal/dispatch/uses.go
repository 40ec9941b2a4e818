package dispatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// uses is what this node knows of the instances that jobs' runs went to. The
// truth is in the rows of these runs (docs/adr/0021): they are read when a job
// is seen here for the first time, and again where another node may have sent
// runs of the job since. Between two readings the node counts its own.
type uses struct {
	mu sync.Mutex
	// turns hold the last instance of round robin's jobs, windows the last ones
	// of the jobs that are routed by use.
	turns   aging[lastUse] // guarded by mu
	windows aging[*window] // guarded by mu
}

type lastUse struct {
	instance domain.InstanceID // 0 = none
	readAt   time.Time
}

// window holds the last domain.RoutingWindow instances of a job, newest first.
// The slice is never changed in place: readers hold it.
type window struct {
	recent []domain.InstanceID
	readAt time.Time
}

// aging keeps what was used lately: at least the last maxTurns jobs. What falls
// out is read again.
type aging[V any] struct{ young, old map[domain.JobID]V }

const maxTurns = 100_000

func (a *aging[V]) get(job domain.JobID) (v V, ok bool) {
	if v, ok = a.young[job]; ok {
		return v, true
	}
	if v, ok = a.old[job]; ok {
		a.put(job, v)
	}
	return v, ok
}

func (a *aging[V]) put(job domain.JobID, v V) {
	if a.young == nil || len(a.young) >= maxTurns {
		a.young, a.old = map[domain.JobID]V{}, a.young
	}
	a.young[job] = v
}

const (
	// readFor is how long a reading is good for where others may send too.
	readFor = time.Second
	// maxTurnsRead and maxWindowsRead bound the jobs of one batch whose rows are
	// read, which then takes 1 to 2 ms on MariaDB. When that many take turns here
	// for the first time it is a flood, which is not held up: none of them is
	// read, and their turns begin at random. Of windows the rest has its turn in
	// later batches.
	maxTurnsRead   = 16
	maxWindowsRead = 8
	// turnRows is how many rows are looked at for the last instance of a job:
	// the newest ones may have got none.
	turnRows = 8
	// readAhead is how far this node's clock may be behind: the run before this
	// one must count.
	readAhead = 100 * time.Millisecond
)

// byUse reports whether the strategy goes by the job's last runs.
func byUse(r domain.Routing) bool {
	return r == domain.RouteLeastFrequentlyUsed || r == domain.RouteLeastRecentlyUsed
}

// stale reports whether the rows of the job have to be read before a choice for
// the run. A job's scheduled runs are sent by the node that holds its partition,
// which counts them itself; any node sends those that somebody asked for.
func (u *uses) stale(e *domain.Execution, r domain.Routing, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if byUse(r) {
		w, known := u.windows.get(e.JobID)
		return !known || now.Sub(w.readAt) >= readFor
	}
	last, known := u.turns.get(e.JobID)
	return !known || !planned(e.Cause) && now.Sub(last.readAt) >= readFor
}

func planned(c domain.Cause) bool { return c == domain.CauseSchedule || c == domain.CauseMisfire }

// learn takes what was read of jobs, those without any run too.
func (u *uses) learn(jobs []store.RecentJob, found map[domain.JobID][]domain.InstanceID, windows bool, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, j := range jobs {
		recent := found[j.Job]
		if windows {
			u.windows.put(j.Job, &window{recent, now})
			continue
		}
		last := lastUse{readAt: now}
		if len(recent) > 0 {
			last.instance = recent[0]
		} else if known, ok := u.turns.get(j.Job); ok {
			last.instance = known.instance
		}
		u.turns.put(j.Job, last)
	}
}

// of returns what a choice for the job goes by.
func (u *uses) of(job domain.JobID, r domain.Routing) (last domain.InstanceID, recent []domain.InstanceID) {
	switch {
	case byUse(r):
		u.mu.Lock()
		defer u.mu.Unlock()
		if w, ok := u.windows.get(job); ok {
			recent = w.recent
		}
	case turnwise(r):
		u.mu.Lock()
		defer u.mu.Unlock()
		known, _ := u.turns.get(job)
		last = known.instance
	}
	return last, recent
}

// turnwise reports whether the strategy goes on from the job's last instance.
func turnwise(r domain.Routing) bool {
	return r == domain.RouteRoundRobin || r == domain.RouteLeastLoaded
}

// took counts a choice.
func (u *uses) took(job domain.JobID, r domain.Routing, id domain.InstanceID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case turnwise(r):
		known, _ := u.turns.get(job)
		known.instance = id
		u.turns.put(job, known)
	case byUse(r):
		w, ok := u.windows.get(job)
		if !ok {
			w = &window{}
		}
		recent := make([]domain.InstanceID, 0, min(len(w.recent)+1, domain.RoutingWindow))
		recent = append(append(recent, id), w.recent[:min(len(w.recent), domain.RoutingWindow-1)]...)
		u.windows.put(job, &window{recent, w.readAt})
	}
}

// undo takes a choice back that came to nothing: the run was not offered. The
// turn is that of last again, if nobody took one since.
func (u *uses) undo(job domain.JobID, r domain.Routing, id, last domain.InstanceID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case turnwise(r):
		if known, ok := u.turns.get(job); ok && known.instance == id {
			known.instance = last
			u.turns.put(job, known)
		}
	case byUse(r):
		if w, ok := u.windows.get(job); ok {
			if at := slices.Index(w.recent, id); at >= 0 {
				u.windows.put(job, &window{slices.Delete(slices.Clone(w.recent), at, at+1), w.readAt})
			}
		}
	}
}

// recall reads the rows of the batch's jobs whose uses are stale. Without an
// answer the choices go by what is known.
func (ch *chooser) recall(ctx context.Context, due []domain.Execution, specs []*domain.JobSpec) {
	now := ch.now()
	var turns, windows []store.RecentJob
	for i, spec := range specs {
		if spec == nil || !byUse(spec.Routing) && spec.Routing != domain.RouteRoundRobin || !ch.uses.stale(&due[i], spec.Routing, now) {
			continue
		}
		list, most := &turns, maxTurnsRead
		if byUse(spec.Routing) {
			list, most = &windows, maxWindowsRead
		}
		if j := (store.RecentJob{Tenant: due[i].TenantID, Job: due[i].JobID}); len(*list) < most && !slices.Contains(*list, j) {
			*list = append(*list, j)
		}
	}
	if len(turns) < maxTurnsRead {
		ch.read(ctx, turns, turnRows, now)
	}
	ch.read(ctx, windows, domain.RoutingWindow, now)
}

func (ch *chooser) read(ctx context.Context, jobs []store.RecentJob, rows int, now time.Time) {
	if len(jobs) == 0 {
		return
	}
	found, err := ch.store.RecentInstances(ctx, store.RecentInstancesParams{Jobs: jobs, Until: now.Add(readAhead), Limit: rows})
	if err != nil {
		ch.failures.failed(ch.log, err, len(jobs))
		return
	}
	ch.failures.recovered(ch.log)
	ch.uses.learn(jobs, found, rows == domain.RoutingWindow, now)
}
