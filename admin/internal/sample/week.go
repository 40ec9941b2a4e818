// Package sample answers: which runs would the sample shop have left in a week?
//
// The demo imports them at its first start, so that pages have something to show. Fire times are
// those of the jobs' own schedules and zones, and so a week with a clock change has one. All else
// is made up, and the same for the same jobs and the same end. Each run says that it is a sample.
package sample

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

const (
	// Mark stands as the requester of the runs, for pages and the API.
	Mark = "sample data"
	// Length is how far back the runs go.
	Length = 7 * 24 * time.Hour

	version = "0.9.4" // of the application
	// maxFires bounds the runs of a job.
	maxFires = 6000
	// ahead is how long before its fire time a run is planned.
	ahead = 2 * time.Second
	// silence is how long after its death an instance is declared lost.
	silence = 25 * time.Second
	// spread is the standard deviation of the logarithm of durations.
	spread = 0.35
)

// History is what Week makes: runs in the order in which they were planned.
type History struct {
	Instances []domain.Instance
	Runs      []store.ImportedRun
}

// Week makes the runs that ended in the week before an instant, of jobs that have a story.
func Week(jobs []store.JobView, until time.Time) History {
	w := &week{from: until.Add(-Length), until: until, processes: map[domain.ExecutorID][]process{}}
	jobs = slices.SortedFunc(slices.Values(jobs), func(a, b store.JobView) int { return cmp.Compare(a.Spec.Name, b.Spec.Name) })
	source := domain.NewIDSource(domain.ImportNode, func() time.Time { return w.from })
	for i := range jobs {
		w.start(&jobs[i], source)
	}
	w.die(jobs)
	for i := range jobs {
		if s, ok := storyOf(jobs[i].Spec.Name); ok {
			w.job(&jobs[i], s)
		}
	}
	slices.SortStableFunc(w.out.Runs, func(a, b store.ImportedRun) int { return a.PlannedAt.Compare(b.PlannedAt) })
	var at time.Time
	ids := domain.NewIDSource(domain.ImportNode, func() time.Time { return at })
	for i := range w.out.Runs {
		at = w.out.Runs[i].PlannedAt
		w.out.Runs[i].ID = domain.ExecutionID(ids.Next())
	}
	return w.out
}

type week struct {
	from, until time.Time
	processes   map[domain.ExecutorID][]process
	out         History
}

// process is an instance; gone is when it died, or the end of the week.
type process struct {
	id   domain.InstanceID
	gone time.Time
}

// start makes two instances of a job's executor, once.
func (w *week) start(j *store.JobView, ids *domain.IDSource) {
	if w.processes[j.Executor] != nil {
		return
	}
	for _, n := range []string{"-1", "-2"} {
		id := domain.InstanceID(ids.Next())
		w.processes[j.Executor] = append(w.processes[j.Executor], process{id, w.until})
		w.out.Instances = append(w.out.Instances, domain.Instance{
			ID: id, Executor: j.Executor, BootID: "sample-" + id.String(), Name: j.ExecutorName + n, Host: "sample" + n, AppVersion: version,
			Labels: map[string]string{"sample": "true"}, Slots: 16,
			StartedAt: w.from, ConnectedAt: w.from, LastSeenAt: w.until, GoneAt: w.until, GoneReason: Mark + ": it ends here",
		})
	}
}

// die lets an instance die while it runs dyingJob.
func (w *week) die(jobs []store.JobView) {
	i := slices.IndexFunc(jobs, func(j store.JobView) bool { return j.Spec.Name == dyingJob })
	if i < 0 {
		return
	}
	fires := timing.FiresBetween(&jobs[i].Spec, w.until.Add(-death), w.until, 1)
	if len(fires) == 0 {
		return
	}
	p := &w.processes[jobs[i].Executor][1]
	p.gone = fires[0].Add(time.Second)
	for n := range w.out.Instances {
		if one := &w.out.Instances[n]; one.ID == p.id {
			one.LastSeenAt, one.GoneAt, one.GoneReason = p.gone, p.gone.Add(silence), domain.LeaseRanOut
		}
	}
}

// job makes the runs of one job. They do not overlap.
func (w *week) job(j *store.JobView, s story) {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(s.name))
	r := rand.New(rand.NewPCG(seed.Sum64(), 7))
	var free time.Time // when the run before has ended
	for _, fire := range timing.FiresBetween(&j.Spec, w.from, w.until, maxFires) {
		run := w.run(j, s, r, fire, free)
		if free = run.FinishedAt; free.Before(w.until) {
			w.out.Runs = append(w.out.Runs, run)
		}
	}
}

// run makes the attempts of one run.
func (w *week) run(j *store.JobView, s story, r *rand.Rand, fire, free time.Time) store.ImportedRun {
	e := domain.Execution{
		TenantID: j.TenantID, JobID: j.ID, Executor: j.Executor, Cause: domain.CauseImport, RequestedBy: Mark, Note: Mark,
		FireAt: fire, PlannedAt: fire.Add(-ahead), NotBefore: fire, MaxAttempts: max(1, j.Spec.Retry.MaxAttempts),
	}
	var earlier []domain.Attempt
	at := fire
	if free.After(at) {
		at = free
	}
	for {
		e.Attempt++
		e.Fence = int64(e.Attempt)
		w.attempt(&e, j, s, r, at)
		if e.State == domain.Succeeded || e.Attempt >= e.MaxAttempts {
			return store.ImportedRun{Execution: e, Earlier: earlier}
		}
		earlier = append(earlier, e.CurrentAttempt())
		at = e.FinishedAt.Add(max(j.Spec.Retry.Delay, 10*time.Millisecond))
	}
}

// attempt makes the next attempt of a run.
func (w *week) attempt(e *domain.Execution, j *store.JobView, s story, r *rand.Rand, at time.Time) {
	p := w.pick(j, r, at)
	took := w.took(s, r, e.FireAt)
	offered := at.Add(logNormal(r, 8*time.Millisecond))
	e.Instance, e.State, e.Reason, e.ErrorKind, e.Error, e.Message, e.Took = p.id, domain.Succeeded, "", "", "", "", took
	e.OfferedAt, e.GrantedAt, e.StartedAt = offered, offered.Add(2*time.Millisecond), offered.Add(4*time.Millisecond)
	e.FinishedAt = e.StartedAt.Add(took + 3*time.Millisecond)
	if timeout := j.Spec.Timeout; timeout > 0 && took > timeout {
		e.State, e.Reason, e.Took, e.FinishedAt = domain.TimedOut, domain.ReasonTimeout, timeout, e.StartedAt.Add(timeout)
	}
	broken := s.broken > 0 && e.FireAt.After(w.until.Add(-s.broken))
	switch {
	case p.gone.Before(w.until) && e.StartedAt.Before(p.gone) && e.FinishedAt.After(p.gone):
		e.State, e.Reason, e.Took, e.FinishedAt = domain.Lost, domain.ReasonLeaseExpired, 0, p.gone.Add(silence)
		e.Message = "its instance went silent and its lease ran out"
		if e.LostAttempts < domain.FreeLosses && (j.Spec.OnLost == domain.OnLostRetry) {
			e.MaxAttempts++
			e.LostAttempts++
		} else {
			e.MaxAttempts = e.Attempt
		}
	case broken || r.Float64() < s.fails:
		e.State, e.Reason, e.ErrorKind, e.Error = domain.Failed, domain.ReasonHandlerFailed, "error", s.err
	}
}

// pick chooses an instance that lives. The run during which one dies is on that one.
func (w *week) pick(j *store.JobView, r *rand.Rand, at time.Time) process {
	list := w.processes[j.Executor]
	if second := list[1]; j.Spec.Name == dyingJob && at.Before(second.gone) && second.gone.Sub(at) < 2*time.Second {
		return second
	} else if at.After(second.gone) {
		return list[0]
	}
	return list[r.IntN(len(list))]
}

// took is how long a handler runs. It becomes slower in even steps, if at all.
func (w *week) took(s story, r *rand.Rand, fire time.Time) time.Duration {
	typical := float64(s.typical)
	if s.slower > 1 {
		typical *= 1 + (s.slower-1)*float64(fire.Sub(w.from))/float64(Length)
	}
	return logNormal(r, time.Duration(typical)).Round(time.Microsecond)
}

// logNormal is a duration around a median.
func logNormal(r *rand.Rand, median time.Duration) time.Duration {
	return time.Duration(float64(median) * math.Exp(spread*r.NormFloat64()))
}
