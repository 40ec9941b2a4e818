package completer

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// progressStore is a store.Progress that can be broken.
type progressStore struct {
	store.Progress
	mu     sync.Mutex
	broken bool                     // guarded by mu
	saved  [][]store.ProgressReport // guarded by mu
}

func (m *progressStore) fails() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken {
		return errDatabase
	}
	return nil
}

func (m *progressStore) breaks(b bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = b
}

func (m *progressStore) TakeSteps(ctx context.Context, list []store.StepRequest) ([]store.StepAnswer, error) {
	if err := m.fails(); err != nil {
		return nil, err
	}
	return m.Progress.TakeSteps(ctx, list)
}

func (m *progressStore) SaveProgress(ctx context.Context, list []store.ProgressReport) error {
	if err := m.fails(); err != nil {
		return err
	}
	m.mu.Lock()
	m.saved = append(m.saved, list)
	m.mu.Unlock()
	return m.Progress.SaveProgress(ctx, list)
}

// asker takes answers.
type asker struct {
	mu         sync.Mutex
	acks       []StepAck
	unanswered int // guarded by mu
}

func (a *asker) SendStepAcks(acks []StepAck) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.acks = append(a.acks, acks...)
}

func (a *asker) Unanswered(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unanswered += n
}

func (a *asker) got() []StepAck {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.acks
	a.acks = nil
	return out
}

func (r *rig) ask(from *asker, request int64, e domain.Execution, name string, output []byte) {
	r.c.Asked(Step{StepRequest: store.StepRequest{
		Tenant: r.Tenant, Executor: r.Executor, ID: e.ID, Fence: e.Fence, Name: name, Store: output != nil, Output: output,
	}, Request: request, From: from})
}

func TestStepsAreAnsweredAfterTheirCommit(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		e := r.running(r.Job(nil))
		one, two := &asker{}, &asker{}
		r.ask(one, 7, e, "charge", []byte(`1`))
		synctest.Wait()
		require.Equal(t, []StepAck{{e.ID, e.Fence, 7, store.StepAnswer{Code: store.StepStored}}}, one.got())
		r.ask(two, 1, e, "charge", nil)
		r.ask(one, 8, e, "other", nil)
		synctest.Wait()
		require.Equal(t, []StepAck{{e.ID, e.Fence, 1, store.StepAnswer{Code: store.StepFound, Output: []byte(`1`)}}}, two.got())
		require.Equal(t, []StepAck{{e.ID, e.Fence, 8, store.StepAnswer{Code: store.StepNone}}}, one.got())

		r.progressStore.breaks(true)
		r.ask(one, 9, e, "charge", nil)
		synctest.Wait()
		require.Empty(t, one.got(), "no answer: the executor asks again")
		require.Equal(t, 1, one.unanswered, "and may ask for as much as before")
		r.progressStore.breaks(false)
		r.ask(one, 9, e, "charge", nil)
		synctest.Wait()
		require.Len(t, one.got(), 1)
	})
}

// What another tenant says of a run keeps nobody from telling of it, and nobody
// fills the memory that all have.
func TestProgressAndStartsAreEachTenantsOwn(t *testing.T) {
	var c Completer
	const id = 7
	for seq := range int64(100) {
		c.Progressed(store.ProgressReport{Tenant: 2, Progress: domain.Progress{ExecutionID: id, Fence: 1 << 60, Seq: seq}})
	}
	c.Progressed(store.ProgressReport{Tenant: 1, Progress: domain.Progress{ExecutionID: id, Fence: 1, Seq: 1}})
	require.Len(t, c.progress.newest, 2)
	for i := range domain.ExecutionID(2 * maxProgress) {
		c.Progressed(store.ProgressReport{Tenant: 2, Progress: domain.Progress{ExecutionID: i, Fence: 1}})
	}
	require.Len(t, c.progress.newest, maxProgress+1)
	c.Progressed(store.ProgressReport{Tenant: 3, Progress: domain.Progress{ExecutionID: id}})
	require.Len(t, c.progress.newest, maxProgress+2)

	for i := range domain.ExecutionID(2 * maxStarts) {
		c.Started(store.Start{Tenant: 2, ID: i, Fence: 1})
	}
	c.Started(store.Start{Tenant: 1, ID: id, Fence: 1})
	require.Len(t, c.starts.young, maxStarts+1)
	c.starts.forget(startKey{2, id, 1})
	require.Contains(t, c.starts.young, startKey{1, id, 1})
}

func TestOnlyTheNewestProgressIsWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		job := r.Job(nil)
		e, other := r.running(job), r.running(job)
		report := func(e domain.Execution, fence, seq int64, permille int) store.ProgressReport {
			return store.ProgressReport{Tenant: r.Tenant, Executor: r.Executor, Progress: domain.Progress{
				ExecutionID: e.ID, Fence: fence, Seq: seq, Permille: permille,
			}}
		}
		for seq := range int64(1000) {
			r.c.Progressed(report(e, 1, seq+1, int(seq)))
		}
		r.c.Progressed(report(e, 1, 3, 1), report(other, 1, 1, 5))
		time.Sleep(progressEvery)
		synctest.Wait()
		require.Len(t, r.progressStore.saved, 1)
		require.Equal(t, []store.ProgressReport{report(e, 1, 1000, 999), report(other, 1, 1, 5)}, r.progressStore.saved[0])
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, r.progressStore.saved, 1, "nothing new, nothing written")

		r.progressStore.breaks(true)
		r.c.Progressed(report(e, 1, 2000, 1000))
		time.Sleep(time.Second)
		r.progressStore.breaks(false)
		r.c.Progressed(report(e, 2, 1, 10))
		time.Sleep(time.Second)
		p, err := r.S.FindProgress(t.Context(), r.Tenant, e.ID)
		require.NoError(t, err)
		require.Equal(t, 10, p.Permille)
	})
}
