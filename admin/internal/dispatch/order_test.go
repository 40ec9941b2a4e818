package dispatch

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// TestSerialRunsKeepTheirOrderUnderLoad fires many runs of many jobs, wildly
// mixed, at instances that are mostly full and now and then refuse. Each job's
// runs have to start one after another, in the order of their fire times.
func TestSerialRunsKeepTheirOrderUnderLoad(t *testing.T) {
	const jobs, each = 8, 12
	inBubble(t, func(t *testing.T, r *rig) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		source := rand.New(rand.NewPCG(seed, 0))
		var mu, dice sync.Mutex
		random := func(n int) int { dice.Lock(); defer dice.Unlock(); return source.IntN(n) }
		started := map[domain.JobID][]domain.ExecutionID{}
		running := map[domain.JobID]int{}
		refused := map[domain.ExecutionID]bool{}

		start := func(to *instance, e domain.Execution) {
			mu.Lock()
			started[e.JobID] = append(started[e.JobID], e.ID)
			running[e.JobID]++
			most, work := running[e.JobID], time.Duration(random(20))*time.Millisecond
			mu.Unlock()
			if most > 1 {
				t.Errorf("%d runs of job %s at once", most, e.JobID)
			}
			time.AfterFunc(work, func() {
				mu.Lock()
				running[e.JobID]--
				mu.Unlock()
				r.finish(to, e)
			})
		}
		answer := func(to *instance, o store.OfferResult) {
			a := Answer{Tenant: r.Tenant, From: to, ID: o.Execution.ID, Fence: o.Execution.Fence, Accepted: true}
			mu.Lock()
			again := refused[a.ID]
			refused[a.ID] = true
			mu.Unlock()
			if !again && random(10) == 0 {
				a.Accepted, a.Code = false, "busy"
				to.Release(a.ID, a.Fence)
			}
			r.d.Answered(a)
			if !a.Accepted {
				r.d.SlotsFreed(r.Executor, 0, to.Free())
			}
		}
		for n := range 3 {
			r.join(2, func(i *instance) {
				i.idempotent = n == 0
				i.onOffers = func(offers []store.OfferResult) {
					for _, o := range offers {
						if i.idempotent {
							start(i, o.Execution)
						} else {
							answer(i, o)
						}
					}
				}
				i.onGrants = func(grants []Grant) {
					for _, g := range grants {
						require.True(t, g.Granted)
						start(i, r.Find(g.ID))
					}
				}
			})
		}

		want := map[domain.JobID][]domain.ExecutionID{}
		var all [][]domain.Execution
		base := time.Now().Truncate(time.Millisecond).Add(-time.Minute)
		for range jobs {
			job := r.Job(func(s *domain.JobSpec) { s.Blocking, s.Routing = domain.BlockSerial, domain.RouteRandom })
			var runs []domain.Execution
			for i := range each {
				run := r.Run(job, base.Add(time.Duration(i)*time.Millisecond))
				runs = append(runs, run)
				want[job.ID] = append(want[job.ID], run.ID)
			}
			all = append(all, runs)
		}
		for len(all) > 0 { // some of one job, some of another, as time goes by
			at := random(len(all))
			n := min(1+random(4), len(all[at]))
			r.d.fire(all[at][:n])
			if all[at] = all[at][n:]; len(all[at]) == 0 {
				all = append(all[:at], all[at+1:]...)
			}
			if random(3) == 0 {
				time.Sleep(time.Duration(random(5)) * time.Millisecond)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for job, runs := range want {
			require.Equal(t, runs, started[job])
		}
	})
}
