package dispatch

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// TestFewRunsAreOneBatchAtEachStep: they are offered together, whatever their
// partitions, and granted together, although their instances do not answer at
// the same time. Who answers too late is not waited for.
func TestFewRunsAreOneBatchAtEachStep(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var batches []int
		r.store.cost = func(rows int) time.Duration {
			batches = append(batches, rows) // nothing runs beside anything else here
			return time.Millisecond
		}
		for _, after := range []time.Duration{time.Millisecond, 2 * time.Millisecond, answerWait + 5*time.Millisecond} {
			r.join(4, func(i *instance) {
				i.onOffers = func(offers []store.OfferResult) {
					time.AfterFunc(after, func() {
						var answers []Answer
						for _, o := range offers {
							answers = append(answers, Answer{Tenant: r.Tenant, From: i, ID: o.Execution.ID, Fence: o.Execution.Fence, Accepted: true})
						}
						r.d.Answered(answers...)
					})
				}
			})
		}
		var runs []domain.Execution
		for left := [offerWorkers]int{6, 6}; len(runs) < 12; {
			job := r.Job(nil)
			if half := domain.PartitionOf(job.ID) % offerWorkers; left[half] > 0 {
				left[half]--
				runs = append(runs, r.Run(job, time.Now()))
			}
		}
		r.d.fire(runs)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []int{12, 8, 4}, batches)
	})
}

// TestRunsOfAJobGoToOneWorker while any of them wait or are being offered; many
// runs go to all workers, few to the one that has less to do.
func TestRunsOfAJobGoToOneWorker(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	source := rand.New(rand.NewPCG(seed, 0))
	q := newDueRuns(new(runtable.Table))
	type batch struct {
		worker int
		runs   []*domain.Execution
		over   func() // nil while it waits
	}
	var there []batch
	next, together, separate := domain.ExecutionID(0), 0, 0
	for range 5_000 {
		if len(there) > 0 && source.IntN(5) > 0 {
			at := source.IntN(len(there))
			if b := &there[at]; b.over == nil {
				b.over = q.begin(b.runs).end
			} else {
				b.over()
				there = append(there[:at], there[at+1:]...)
			}
			continue
		}
		due := make([]*domain.Execution, 1+source.IntN(40))
		for i := range due {
			next++
			job := domain.JobID(1 + source.IntN(200))
			due[i] = &domain.Execution{ID: next, JobID: job, Partition: int(job) % domain.Partitions}
		}
		before := q.load
		parts := q.enter(due, nil)
		total := 0
		for worker, runs := range parts {
			total += len(runs)
			if len(runs) == 0 {
				continue
			}
			there = append(there, batch{worker: worker, runs: runs})
			require.Equal(t, before[worker]+len(runs), q.load[worker])
		}
		require.Len(t, due, total)
		if len(there) <= offerWorkers && before == [offerWorkers]int{} {
			if len(there) == 1 {
				together++
			} else {
				separate++
			}
		}
		workers := map[domain.JobID]int{}
		for _, b := range there {
			for _, e := range b.runs {
				if had, ok := workers[e.JobID]; ok {
					require.Equal(t, had, b.worker)
				}
				workers[e.JobID] = b.worker
			}
		}
	}
	require.NotZero(t, together)
	require.Zero(t, separate, "at most 40 at once are few")
	for _, b := range there {
		if b.over == nil {
			b.over = q.begin(b.runs).end
		}
		b.over()
	}
	require.Empty(t, q.jobs)
	require.Equal(t, [offerWorkers]int{}, q.load)
	many := make([]*domain.Execution, offerFew+1)
	for i := range many {
		many[i] = &domain.Execution{ID: domain.ExecutionID(i + 1), JobID: domain.JobID(i + 1), Partition: i % domain.Partitions}
	}
	for _, part := range q.enter(many, nil) {
		require.NotEmpty(t, part)
	}
}
