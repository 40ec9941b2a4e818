package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

const (
	// lease is for how long a node has an operation for itself after each batch.
	lease = 15 * time.Second
	// turn bounds how long one operation keeps the others waiting.
	turn = 2 * time.Second
	// putOff is for how long one that failed is left alone.
	putOff = 10 * time.Second
	// look is how often a node looks for operations that others have left.
	look = time.Second
	// tidy is how often old operations are deleted.
	tidy = 10 * time.Minute
	// jobsAtOnce bounds a transaction on MySQL. On SQLite all other writers wait during one.
	jobsAtOnce, jobsAtOnceSQLite = 100, 20
	// runsAtOnce is how many runs are read at once. Each is repeated or cancelled on its own.
	runsAtOnce = 50
	// dueAtOnce is how many operations take turns.
	dueAtOnce = 20
)

// Worker works on the operations of all tenants. It is safe for concurrent use.
type Worker struct {
	// fixed after construction
	Selection
	log  *slog.Logger
	wake chan struct{} // there is a new operation
}

// NewWorker starts nothing.
func NewWorker(s Selection, log *slog.Logger) *Worker { return &Worker{s, log, make(chan struct{}, 1)} }

// Nudge lets the worker look now.
func (w *Worker) Nudge() {
	select {
	case w.wake <- struct{}{}:
	default: // it will look already
	}
}

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) error {
	tick, old := time.NewTicker(look), time.NewTicker(tidy)
	defer tick.Stop()
	defer old.Stop()
	failing := false
	for {
		more, err := w.Work(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !failing {
			w.log.Warn("bulk operations wait", "err", err)
		}
		failing = err != nil
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case <-tick.C:
		case <-old.C:
			if err := w.Tidy(ctx); err != nil && ctx.Err() == nil {
				w.log.Warn("old bulk operations stay", "err", err)
			}
		}
	}
}

// Work gives each operation that waits one turn. more: at least one is not done.
func (w *Worker) Work(ctx context.Context) (more bool, err error) {
	ids, err := w.Table.due(ctx, dueAtOnce)
	for _, id := range ids {
		if ctx.Err() != nil {
			return more, errors.Join(err, ctx.Err())
		}
		open, failed := w.work(ctx, id)
		more, err = more || open, errors.Join(err, failed)
	}
	return more, err
}

// work gives an operation its turn.
func (w *Worker) work(ctx context.Context, id ID) (more bool, err error) {
	o, err := w.Table.take(ctx, id)
	if err != nil || o == nil {
		return false, err
	}
	if paused, err := w.paused(ctx, o); err != nil || !paused {
		return false, errors.Join(err, w.Table.leave(ctx, o, look))
	}
	for until := time.Now().Add(turn); o.State == Running && time.Now().Before(until); {
		if err = w.step(ctx, o); err != nil {
			break
		}
	}
	pause := time.Duration(0)
	switch {
	case errors.Is(err, errLost):
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err() // another node takes it when the lease has ended
	case err != nil:
		pause = putOff
		err = fmt.Errorf("bulk operation %s: %w", id, err)
	case o.State != Running:
		w.log.Info("bulk operation ended", "tenant_id", o.Tenant, "bulk_id", o.ID, "action", string(o.Action), "state", string(o.State), "done", o.Done, "skipped", o.Skipped, "failed", o.Failed)
		return false, nil
	}
	return err == nil, errors.Join(err, w.Table.leave(ctx, o, pause))
}

// paused reports whether the pause that an operation ends is over itself. A pause of many jobs
// may begin late.
func (w *Worker) paused(ctx context.Context, o *Operation) (bool, error) {
	if o.Of == 0 {
		return true, nil
	}
	of, err := w.Table.Find(ctx, o.Tenant, o.Of)
	if domain.Is(err, domain.CodeNotFound) {
		return true, nil // deleted since
	}
	return of.State != Running, err
}

// step works on the next page of an operation.
func (w *Worker) step(ctx context.Context, o *Operation) error {
	limit := jobsAtOnce
	switch {
	case o.Action.OnRuns() || o.Action == Run:
		limit = runsAtOnce
	case w.Table.Dialect.Name() == "sqlite":
		limit = jobsAtOnceSQLite
	}
	p, err := w.next(ctx, o, limit)
	if err != nil {
		return err
	}
	after := *o
	after.Cursor, after.Read = p.cursor, o.Read+p.read
	switch {
	case o.Answered()+int64(len(p.items)) > MaxItems:
		p.items, after.State, after.Message = p.items[:MaxItems-o.Answered()], Done, fmt.Sprintf("it ended at %d items, which is the most", MaxItems)
	case p.last:
		after.State = Done
	}
	if o.Action.OnRuns() || o.Action == Run {
		err = w.stepOneByOne(ctx, o, &after, p.items)
	} else {
		err = w.stepTogether(ctx, o, &after, p.items)
	}
	if errors.Is(err, errStored) {
		err = nil
	}
	if err == nil {
		*o = after
	}
	return err
}

// stepTogether changes jobs in the transaction that stores their answers.
func (w *Worker) stepTogether(ctx context.Context, o, after *Operation, items []Item) error {
	out, err := db.Value(ctx, w.Table.RunBulk, "change jobs of a bulk operation", func(t *db.Tx) (Operation, error) {
		now := *after
		if err := t.Guard(); err != nil {
			return now, err
		}
		if err := o.hold(t); err != nil {
			return now, err
		}
		jobs, err := w.Jobs.Lock(t, o.Tenant, domain.Collect(items, func(it *Item) domain.JobID { return domain.JobID(it.ID) }))
		if err != nil {
			return now, err
		}
		answers, err := w.changeJobs(t, o, jobs, items)
		if err != nil {
			return now, err
		}
		o.audit(t, answers)
		return now, now.save(t, now.count(answers))
	})
	if err != nil {
		return err
	}
	*after = out
	if len(items) > 0 {
		w.Jobs.Changed()
	}
	return nil
}

// changeJobs changes locked jobs, or says why not. Pauses are written together.
func (w *Worker) changeJobs(t *db.Tx, o *Operation, jobs map[domain.JobID]store.LockedJob, items []Item) ([]Item, error) {
	answers, changes := make([]Item, len(items)), make([]change, len(items))
	var pauses []domain.JobID
	for i, it := range items {
		job, found := jobs[domain.JobID(it.ID)]
		if !found {
			answers[i] = skipped(skipGone, "it is not there any more")
		} else if changes[i], answers[i] = decide(o, &job.Job); o.Action == Pause && changes[i].state != nil {
			pauses = append(pauses, job.ID)
		}
		answers[i].ID, answers[i].Name = it.ID, job.Spec.Name
	}
	left, err := w.Jobs.Pause(t, pauses, store.SetJobStateParams{Tenant: o.Tenant, Note: o.note(), By: o.actor()})
	if err != nil {
		return nil, err
	}
	for i := range answers {
		job := jobs[domain.JobID(answers[i].ID)]
		if answers[i].Outcome != "" {
			continue
		}
		answers[i].Outcome = ItemDone
		if o.Action == Pause && !slices.Contains(left, job.ID) {
			continue
		}
		if err := w.apply(t, &job, changes[i]); err != nil {
			it, again := refusal(err)
			if again {
				return nil, err
			}
			it.ID, it.Name = answers[i].ID, answers[i].Name
			answers[i] = it
		}
	}
	return answers, nil
}

// apply changes a locked job. A pause is refused before it has written anything.
func (w *Worker) apply(t *db.Tx, job *store.LockedJob, c change) error {
	if c.state == nil {
		c.update.Next, c.update.Plan = w.Jobs.Next, w.Jobs.Plan
		return savepoint(t, func() error { return job.Update(*c.update) })
	}
	c.state.Next, c.state.Plan = w.Jobs.Next, w.Jobs.Plan
	if c.state.State == domain.JobPaused {
		return job.SetState(*c.state)
	}
	return savepoint(t, func() error { return job.SetState(*c.state) })
}

// savepoint undoes what fn wrote when it fails. The transaction goes on.
func savepoint(t *db.Tx, fn func() error) error {
	if _, err := t.Exec(t.Ctx, "SAVEPOINT item"); err != nil {
		return err
	}
	err := fn()
	end := "RELEASE SAVEPOINT item"
	if _, again := refusal(err); err != nil && again {
		return err // the whole transaction goes
	} else if err != nil {
		end = "ROLLBACK TO SAVEPOINT item"
	}
	if _, failed := t.Exec(t.Ctx, end); failed != nil {
		return failed
	}
	return err
}

// stepOneByOne begins, repeats or cancels runs, and stores the answers then. A node may stop
// in between. Its successor finds a run that was begun by its key, and a cancel by the name of
// its author.
func (w *Worker) stepOneByOne(ctx context.Context, o, after *Operation, items []Item) error {
	answers := make([]Item, len(items))
	for i, it := range items {
		answer, err := w.act(ctx, o, it.ID)
		if err != nil {
			var again bool
			if answer, again = refusal(err); again {
				return err
			}
		}
		answer.ID, answer.Name = it.ID, it.Name
		answers[i] = answer
	}
	out, err := db.Value(ctx, w.Table.RunRepeatable, "store answers of a bulk operation", func(t *db.Tx) (Operation, error) {
		now := *after
		if err := o.hold(t); err != nil {
			return now, err
		}
		o.audit(t, answers)
		return now, now.save(t, now.count(append([]Item(nil), answers...)))
	})
	if err != nil {
		return err
	}
	*after = out
	return nil
}

// audited are the operations on one item.
var audited = map[Action]string{
	Pause: "pause-job", Resume: "resume-job", Run: "run-job", Delete: "delete-job", Label: "update-job", SetOwner: "update-job",
	Retry: "retry-run", Cancel: "cancel-run",
}

// audit adds an entry for each item that was changed to the transaction.
func (o *Operation) audit(t *db.Tx, answers []Item) {
	kind := "job"
	if o.Action.OnRuns() {
		kind = "run"
	}
	after, err := json.Marshal(struct {
		Action Action `json:"action"`
		Bulk   string `json:"bulk"`
		Note   string `json:"note,omitempty"`
	}{o.Action, o.ID.String(), o.note()})
	if err != nil {
		panic("bulk: " + err.Error()) // texts only
	}
	actor := o.By.identity(o.Tenant).Actor()
	for _, it := range answers {
		if it.Outcome == ItemDone {
			t.RecordEach(domain.AuditEntry{
				Tenant: o.Tenant, Actor: actor, Operation: audited[o.Action], Outcome: domain.AuditDone,
				AuditObject: domain.AuditObject{Kind: kind, ID: domain.JobID(it.ID).String(), Name: it.Name, After: string(after)},
			})
		}
	}
}

// act does the action with one item.
func (w *Worker) act(ctx context.Context, o *Operation, id int64) (Item, error) {
	asked := addon.Asked{ID: o.identity(), By: o.ID.String(), Note: o.Note, During: o.During}
	switch o.Action {
	case Cancel:
		return Item{Outcome: ItemDone}, w.Runs.Cancel(ctx, asked.ID, domain.ExecutionID(id), o.Note)
	case Run:
		asked.Key = "bulk-" + o.ID.String()
		_, _, err := w.Runs.Begin(ctx, asked, domain.JobID(id))
		return Item{Outcome: ItemDone}, err
	}
	asked.Key = "bulk-retry-" + domain.ExecutionID(id).String() // one retry by all operations
	run, by, err := w.Runs.Retry(ctx, asked, domain.ExecutionID(id))
	if err == nil && by != o.ID.String() {
		return skipped(skipRetried, fmt.Sprintf("bulk operation %s has retried it as run %s", by, run)), nil
	}
	return Item{Outcome: ItemDone}, err
}

// tidyAtOnce is how many old operations are deleted in one go.
const tidyAtOnce = 100

// Tidy deletes old operations.
func (w *Worker) Tidy(ctx context.Context) error {
	ids, err := w.Table.old(ctx, tidyAtOnce)
	for _, id := range ids {
		err = errors.Join(err, w.Table.remove(ctx, id))
	}
	return err
}
