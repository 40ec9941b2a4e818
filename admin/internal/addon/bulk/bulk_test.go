package bulk_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/bulk"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// numbers are those of the answers.
func numbers(o bulk.Operation) []int64 { return []int64{o.Done, o.Skipped, o.Failed} }

func (f *fixture) pauseAs(by string, id domain.JobID) {
	f.t.Helper()
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: id, State: domain.JobPaused, By: by, Note: "mine", Next: timing.Next})
	f.ok(err)
}

func TestPauseAndResumeLeaveOthersAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fixture) {
		ids := f.jobs(120)
		f.pauseAs("bob", ids[3])
		f.pauseAs("anna via mcp", ids[4])
		paused := f.work(f.operation(bulk.Order{Action: bulk.Pause, Note: "ledger is moved", Filter: bulk.Filter{Label: "team=pay"}}))
		require.Equal(t, bulk.Done, paused.State)
		require.Equal(t, []int64{118, 2, 0}, numbers(paused))
		require.Equal(t, domain.Pause{By: "bob", At: f.job(ids[3]).Pause.At, Note: "mine"}, f.job(ids[3]).Pause)
		require.Equal(t, "anna via bulk "+paused.ID.String(), f.job(ids[5]).Pause.By)
		require.Equal(t, "ledger is moved", f.job(ids[5]).Pause.Note)
		items := f.answers(paused)
		require.Len(t, items, 2)
		require.Equal(t, bulk.Item{ID: int64(ids[3]), Name: "job-003", Outcome: bulk.ItemSkipped, Code: "paused_already", Message: "it is paused already, by bob; that pause stays"}, items[0])

		byOperation := f.work(f.operation(bulk.Order{Action: bulk.Resume, Of: paused.ID, By: bulk.Person{Kind: "user", Name: "carl"}}))
		require.Equal(t, []int64{118, 0, 0}, numbers(byOperation), "pauses of others are no items")
		require.Equal(t, domain.JobEnabled, f.job(ids[5]).State)
		mine := f.work(f.operation(bulk.Order{Action: bulk.Resume, Filter: bulk.Filter{JobState: domain.JobPaused}}))
		require.Equal(t, []int64{1, 1, 0}, numbers(mine))
		require.Equal(t, "it stays paused, by bob", f.answers(mine)[0].Message)
		all := f.work(f.operation(bulk.Order{Action: bulk.Resume, All: true, Filter: bulk.Filter{Name: "JOB-00*"}}))
		require.Equal(t, []int64{1, 9, 0}, numbers(all))
		require.Equal(t, domain.JobEnabled, f.job(ids[3]).State)
	})
}

func TestLabelOwnerAndDelete(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fixture) {
		ids := f.jobs(30, func(i int, j *domain.Job) {
			if i == 7 {
				j.Declared = domain.Declared{By: f.executor, Name: "seven", Ownership: domain.OwnedByCode}
				j.Spec.CodeSays = domain.CodeSays{"labels.tier", "owner"}
			}
		})
		labelled := f.work(f.operation(bulk.Order{Action: bulk.Label, Labels: map[string]string{"tier": "gold"}, Remove: []string{"team"}, Filter: bulk.Filter{IDs: ids[:9]}}))
		require.Equal(t, []int64{8, 0, 1}, numbers(labelled), "%v", f.answers(labelled))
		require.Equal(t, domain.CodeOwnedByCode, f.answers(labelled)[0].Code)
		require.Equal(t, map[string]string{"tier": "gold"}, f.job(ids[0]).Spec.Labels)
		require.Equal(t, int64(2), f.job(ids[0]).Revision)
		again := f.work(f.operation(bulk.Order{Action: bulk.Label, Labels: map[string]string{"tier": "gold"}, Filter: bulk.Filter{Label: "tier"}}))
		require.Equal(t, []int64{0, 8, 0}, numbers(again))
		owned := f.work(f.operation(bulk.Order{Action: bulk.SetOwner, Owner: domain.Owner{Name: "pay", Email: "pay@example.com"}, Filter: bulk.Filter{Owner: "OLD"}}))
		require.Equal(t, []int64{29, 0, 1}, numbers(owned))
		require.Equal(t, "pay@example.com", f.job(ids[20]).Spec.Owner.Email)
		require.Equal(t, "anna via bulk "+owned.ID.String(), f.job(ids[20]).UpdatedBy)
		require.Len(t, f.recorded(labelled), 8, "a refused item has no entry")
		require.Empty(t, f.recorded(again), "nor has one that was skipped")
		require.Contains(t, f.recorded(owned), "anna update-job job "+ids[20].String()+" job-020")
		require.Len(t, f.recorded(owned), 29)
		deleted := f.work(f.operation(bulk.Order{Action: bulk.Delete}))
		require.Equal(t, []int64{29, 0, 1}, numbers(deleted))
		require.Contains(t, f.recorded(deleted), "anna delete-job job "+ids[20].String()+" job-020")
		_, err := f.s.FindJob(f.ctx, f.tenant, ids[0])
		require.True(t, domain.Is(err, domain.CodeNotFound))
		restorable, err := f.s.ListDeletedJobs(f.ctx, store.ListDeletedParams{Tenant: f.tenant, Limit: 100})
		f.ok(err)
		require.Len(t, restorable, 29)

		retried, err := f.table.Create(f.ctx, bulk.Operation{ID: bulk.ID(storetest.NewID()), Tenant: f.tenant, Order: deleted.Order, State: bulk.Running, RetryOf: deleted.ID, Total: 1})
		f.ok(err)
		require.Equal(t, []int64{0, 0, 1}, numbers(f.work(retried)), "of the failed one only")
	})
}

// A node stops in the middle of a batch, and another one goes on when the lease has ended.
func TestAnotherNodeGoesOn(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fixture) {
		ids := f.jobs(250)
		ctx, stop := context.WithCancel(f.ctx)
		first, changed := f.selection(), 0
		pause := first.Jobs.Pause
		first.Jobs.Pause = func(t *db.Tx, ids []domain.JobID, p store.SetJobStateParams) ([]domain.JobID, error) {
			left, err := pause(t, ids, p)
			if changed += len(ids); changed > 110 {
				stop()
			}
			return left, err
		}
		o := f.operation(bulk.Order{Action: bulk.Pause})
		_, err := bulk.NewWorker(first, f.s.Logger).Work(ctx)
		require.ErrorIs(t, err, context.Canceled)
		left, err := f.table.Find(f.ctx, f.tenant, o.ID)
		f.ok(err)
		require.Equal(t, bulk.Running, left.State)
		require.Equal(t, f.paused(ids), left.Done, "the answers are those of the jobs")
		require.Len(t, f.recorded(left), int(left.Done), "and so are the entries")
		require.Positive(t, left.Done)
		require.LessOrEqual(t, left.Done, int64(110))

		more, err := f.worker().Work(f.ctx)
		f.ok(err)
		require.False(t, more, "the lease goes on")
		f.endLease(o)
		done := f.work(o)
		require.Equal(t, []int64{250, 0, 0}, numbers(done))
		require.Equal(t, bulk.Done, done.State)
		require.Equal(t, left.Turn+1, done.Turn)
		require.Equal(t, int64(250), f.paused(ids))
		for _, id := range ids {
			require.Equal(t, domain.Never, f.job(id).NextFireAt)
			events, err := f.s.ListJobChanges(f.ctx, f.tenant, id, 10)
			f.ok(err)
			require.Len(t, events, 2, "created and paused, once")
		}
	})
}

func (f *fixture) endLease(o bulk.Operation) {
	f.t.Helper()
	f.ok(f.s.Run(f.ctx, "end lease", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "UPDATE bulk_operations SET wake_at = 1 WHERE id = ?", int64(o.ID))
		return err
	}))
}

func (f *fixture) paused(ids []domain.JobID) (n int64) {
	f.t.Helper()
	list, err := f.s.ListJobIDs(f.ctx, store.ListJobsParams{Tenant: f.tenant, State: domain.JobPaused, Limit: len(ids)}, 0, ids[len(ids)-1]+1)
	f.ok(err)
	return int64(len(list))
}

// A node that stops between the runs of a page has stored no answer for them. The next node
// asks again, and each job has one run.
func TestNoRunBeginsTwice(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fixture) {
		ids := f.jobs(120)
		ctx, stop := context.WithCancel(f.ctx)
		f.runs.fail = map[domain.JobID]error{ids[2]: domain.Errorf(domain.CodeExecutorDisabled, "the executor is disabled"), ids[60]: context.Canceled}
		f.runs.stop = func(acts int) {
			if acts == 61 {
				stop()
			}
		}
		o := f.operation(bulk.Order{Action: bulk.Run})
		_, err := f.worker().Work(ctx)
		require.ErrorIs(t, err, context.Canceled)
		left, err := f.table.Find(f.ctx, f.tenant, o.ID)
		f.ok(err)
		require.Equal(t, []int64{49, 0, 1}, numbers(left))
		delete(f.runs.fail, ids[60])
		f.runs.stop = nil
		f.endLease(o)
		require.Equal(t, []int64{119, 0, 1}, numbers(f.work(o)))
		require.Len(t, f.runs.made, 119)
		require.Equal(t, 61+70, f.runs.acts, "ten runs were asked for twice")
	})
}

func TestARunIsRetriedByOneOperation(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fixture) {
		ids := f.jobs(2)
		for i := range 130 {
			f.runs.list = append([]domain.Execution{{ID: domain.ExecutionID(storetest.NewID()), TenantID: f.tenant, JobID: ids[i%2], State: domain.Failed}}, f.runs.list...)
		}
		half := f.work(f.operation(bulk.Order{Action: bulk.Retry, Filter: bulk.Filter{Name: "job-000"}}))
		require.Equal(t, []int64{65, 0, 0}, numbers(half))
		all := f.work(f.operation(bulk.Order{Action: bulk.Retry}))
		require.Equal(t, []int64{65, 65, 0}, numbers(all))
		require.Equal(t, domain.Code("retried_already"), f.answers(all)[0].Code)
		require.Contains(t, f.answers(all)[0].Message, "bulk operation "+half.ID.String()+" has retried it")
	})
}

func TestACancelledOperationEnds(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fixture) {
		ids := f.jobs(250)
		o := f.operation(bulk.Order{Action: bulk.Pause})
		s, changed := f.selection(), 0
		s.Jobs.Changed = func() {
			if changed++; changed == 1 {
				_, err := f.table.Stop(f.ctx, f.tenant, o.ID, "cancelled by bob")
				f.ok(err)
			}
		}
		more, err := bulk.NewWorker(s, f.s.Logger).Work(f.ctx)
		f.ok(err)
		require.False(t, more)
		o, err = f.table.Find(f.ctx, f.tenant, o.ID)
		f.ok(err)
		require.Equal(t, bulk.Cancelled, o.State)
		require.Equal(t, f.paused(ids), o.Done)
		require.Less(t, o.Done, int64(250))
		_, err = f.table.Stop(f.ctx, f.tenant, o.ID, "cancelled by carl")
		require.True(t, domain.Is(err, domain.CodeAlreadyFinished), "%v", err)
		_, err = f.table.Find(f.ctx, f.tenant+1, o.ID)
		require.True(t, domain.Is(err, domain.CodeNotFound), "%v", err)
	})
}

func TestATenantHasFewOperations(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fixture) {
		f.jobs(3)
		var first bulk.Operation
		for i := range 10 {
			if o := f.operation(bulk.Order{Action: bulk.Pause}); i == 0 {
				first = o
			}
		}
		_, err := f.table.Create(f.ctx, bulk.Operation{ID: bulk.ID(storetest.NewID()), Tenant: f.tenant, State: bulk.Running, Order: bulk.Order{Action: bulk.Pause, By: person}})
		require.True(t, domain.Is(err, domain.CodeQuotaExceeded), "%v", err)
		f.work(first)
		for range 91 {
			f.work(f.operation(bulk.Order{Action: bulk.Pause}))
		}
		w := f.worker()
		f.ok(w.Tidy(f.ctx))
		_, err = f.table.Find(f.ctx, f.tenant, first.ID)
		require.True(t, domain.Is(err, domain.CodeNotFound), "%v", err)
		require.Empty(t, f.answers(first))
		kept, err := f.table.List(f.ctx, f.tenant, 0, 1000)
		f.ok(err)
		require.Len(t, kept, 100)
		f.ok(f.s.Run(f.ctx, "make old", func(t *db.Tx) error {
			_, err := t.Exec(t.Ctx, "UPDATE bulk_operations SET created_at = created_at - ? WHERE tenant_id = ?", int64(31*24*3600*1000), int64(f.tenant))
			return err
		}))
		f.ok(w.Tidy(f.ctx))
		kept, err = f.table.List(f.ctx, f.tenant, 0, 1000)
		f.ok(err)
		require.Empty(t, kept)
	})
}

// An operation that resumes jobs later waits for its time, and for the end of the pause. It leaves
// jobs alone that were paused anew meanwhile.
func TestAPauseEndsByItself(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fixture) {
		ids := f.jobs(3)
		then := bulk.Operation{ID: bulk.ID(storetest.NewID()), Tenant: f.tenant, State: bulk.Waiting, Order: bulk.Order{
			Action: bulk.Resume, At: time.Now().Add(time.Hour), By: person, Filter: bulk.Filter{JobState: domain.JobPaused},
		}}
		pause := bulk.Operation{ID: bulk.ID(storetest.NewID()), Tenant: f.tenant, State: bulk.Running, Order: bulk.Order{
			Action: bulk.Pause, Note: "audit", Until: then.At, Then: then.ID, By: person,
		}}
		then.Of = pause.ID
		made, err := f.table.Create(f.ctx, pause, then)
		f.ok(err)
		require.Equal(t, []int64{3, 0, 0}, numbers(f.work(made)))
		require.Contains(t, f.job(ids[0]).Pause.Note, "by bulk operation "+then.ID.String()+": audit")
		waiting, err := f.table.Find(f.ctx, f.tenant, then.ID)
		f.ok(err)
		require.Equal(t, bulk.Waiting, waiting.State)
		require.Equal(t, domain.JobPaused, f.job(ids[0]).State)

		f.resumeAs("bob", ids[1])
		f.pauseAs("bob", ids[1])
		f.wake(then.ID)
		done := f.work(waiting)
		require.Equal(t, bulk.Done, done.State)
		require.Equal(t, []int64{2, 0, 0}, numbers(done))
		require.Equal(t, domain.JobEnabled, f.job(ids[0]).State)
		require.Equal(t, []any{domain.JobPaused, "bob"}, []any{f.job(ids[1]).State, f.job(ids[1]).Pause.By})

		late := bulk.Operation{ID: bulk.ID(storetest.NewID()), Tenant: f.tenant, State: bulk.Running, Order: bulk.Order{Action: bulk.Pause, By: person}}
		then = bulk.Operation{ID: bulk.ID(storetest.NewID()), Tenant: f.tenant, State: bulk.Waiting, Order: bulk.Order{Action: bulk.Resume, At: time.Now().Add(-time.Hour), Of: late.ID, By: person}}
		_, err = f.table.Create(f.ctx, late, then)
		f.ok(err)
		f.sleep(late.ID)
		_, err = f.worker().Work(f.ctx)
		f.ok(err)
		held, err := f.table.Find(f.ctx, f.tenant, then.ID)
		f.ok(err)
		require.Equal(t, bulk.Running, held.State, "its pause is not over")
		require.Zero(t, held.Answered())
	})
}

func (f *fixture) resumeAs(by string, id domain.JobID) {
	f.t.Helper()
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: id, State: domain.JobEnabled, By: by, Next: timing.Next})
	f.ok(err)
}

// wake lets the time of an operation come, and sleep puts it off.
func (f *fixture) wake(id bulk.ID)  { f.wakeAt(id, "1") }
func (f *fixture) sleep(id bulk.ID) { f.wakeAt(id, "wake_at + 3600000") }

func (f *fixture) wakeAt(id bulk.ID, at string) {
	f.t.Helper()
	f.ok(f.table.RunRepeatable(f.ctx, "move", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "UPDATE bulk_operations SET wake_at = "+at+" WHERE id = ?", int64(id))
		return err
	}))
}
