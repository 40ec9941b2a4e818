package timer

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

const (
	// timersScanned bounds the rows that one page reads, whatever its filters leave.
	timersScanned = 2000
	// timersFiltered is how many of them are read at once.
	timersFiltered = 250
)

// ListTimers goes, for pending ones, through the unique key of each job in turn,
// or through its labels; for those with a run through the phases of the tenant, or
// for ended ones of one job through its runs by fire time.
func (s *Timers) ListTimers(ctx context.Context, p store.ListTimersParams) (page store.TimerPage, err error) {
	l := &timerList{p: p, limit: record.PageSize(p.Limit)}
	err = s.Look(ctx, "list timers", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		l.views, l.cursors, l.next, l.read, l.bytes = nil, nil, nil, 0, 0
		jobs := p.Jobs
		if len(jobs) == 0 {
			if jobs, err = s.timerJobs(ctx, q, p.Tenant); err != nil {
				return err
			}
		}
		jobs = slices.Sorted(slices.Values(jobs))
		switch {
		case p.State == store.TimersPending:
			err = s.listPending(ctx, q, l, jobs)
		case len(jobs) == 1 && p.State == store.TimersEnded: // those under way are few among a job's runs
			err = s.listRunsOfJob(ctx, q, l, jobs[0])
		default:
			err = s.listRuns(ctx, q, l, jobs)
		}
		if err == nil {
			err = s.fill(ctx, q, l)
		}
		if err != nil {
			return err
		}
		views := make([]*store.TimerView, len(l.views))
		for i := range l.views {
			views[i] = &l.views[i]
		}
		return s.nameTimers(ctx, q, views)
	})
	return store.TimerPage{Timers: l.views, Next: l.next}, err
}

// timerList is a page while it is read.
type timerList struct {
	p     store.ListTimersParams
	limit int
	read  int   // rows
	bytes int64 // of the inputs of views
	views []store.TimerView
	// cursors are where the page goes on behind each of the views.
	cursors []store.TimerCursor
	next    *store.TimerCursor // where a page that is full ends
}

// room is how many rows may still be read at once; 0: the page ends.
func (l *timerList) room() int {
	if len(l.views) >= l.limit {
		return 0
	}
	if l.filtered() {
		return max(min(timersScanned-l.read, timersFiltered), 0)
	}
	return l.limit - len(l.views)
}

// filtered reports whether rows that are read may be left out of the list.
func (l *timerList) filtered() bool {
	p := &l.p
	if p.State == store.TimersPending {
		return !p.From.IsZero() || !p.To.IsZero() || p.Label != "" && p.KeyPrefix != ""
	}
	return !p.From.IsZero() || !p.To.IsZero() || p.Label != "" || p.KeyPrefix != "" || len(p.Jobs) > 1
}

// take adds a timer with an input of so many bytes if the filters leave it; full: the page
// ends behind it.
func (l *timerList) take(v store.TimerView, size int64, at store.TimerCursor) (full bool) {
	l.read++
	if strings.HasPrefix(v.Key, l.p.KeyPrefix) && !(v.FireAt.Before(l.p.From) || !l.p.To.IsZero() && !v.FireAt.Before(l.p.To)) {
		l.views, l.cursors = append(l.views, v), append(l.cursors, at)
		l.bytes += size
	}
	l.next = &at
	return len(l.views) >= l.limit || l.read >= timersScanned || l.bytes >= domain.MaxPageBytes
}

// fill reads what a page shows of its pending timers, and the inputs of its runs. A page
// whose inputs reach domain.MaxPageBytes ends there.
func (s *Timers) fill(ctx context.Context, q db.Querier, l *timerList) error {
	if len(l.views) == 0 {
		return nil
	}
	if l.p.State == store.TimersPending {
		return fillPending(ctx, q, l)
	}
	return fillRuns(ctx, q, l)
}

// fillPending leaves out timers that are pending no more.
func fillPending(ctx context.Context, q db.Querier, l *timerList) error {
	ids := domain.Collect(l.views, func(v *store.TimerView) int64 { return int64(v.ID) })
	found := make(map[domain.TimerID]domain.Timer, len(ids))
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		r := &record.TimerRow{}
		err := rows.Scan(record.TimerTable.Targets(r)...)
		found[domain.TimerID(r.ID)] = r.Timer()
		return err
	}, "SELECT "+record.TimerColumns+" FROM timers WHERE id IN ("+db.IDList(ids)+") AND tenant_id = ?", int64(l.p.Tenant))
	if err != nil {
		return fmt.Errorf("read pending timers: %w", err)
	}
	left := l.views[:0]
	for _, v := range l.views {
		if timer, is := found[v.ID]; is {
			v.Timer = timer
			left = append(left, v)
		}
	}
	l.views = left
	return nil
}

func fillRuns(ctx context.Context, q db.Querier, l *timerList) error {
	where := func() string {
		ids := domain.Collect(l.views, func(v *store.TimerView) int64 { return int64(v.Run.ID) })
		return " FROM executions WHERE id IN (" + db.IDList(ids) + ") AND tenant_id = ? AND input IS NOT NULL"
	}
	sizes, err := db.Pairs[int64, int64](ctx, q, "SELECT id, OCTET_LENGTH(input)"+where(), int64(l.p.Tenant))
	if err != nil || len(sizes) == 0 {
		return err
	}
	total := int64(0)
	for i := range l.views {
		if total += sizes[int64(l.views[i].Run.ID)]; total >= domain.MaxPageBytes && i+1 < len(l.views) {
			l.views, l.next = l.views[:i+1], &l.cursors[i]
			break
		}
	}
	inputs, err := db.Pairs[int64, []byte](ctx, q, "SELECT id, input"+where(), int64(l.p.Tenant))
	for i := range l.views {
		v := &l.views[i]
		v.Input = inputs[int64(v.Run.ID)]
		v.Run.Input = v.Input
	}
	return err
}

// timerJobs are the jobs of kind timer of a tenant, deleted ones too.
func (s *Timers) timerJobs(ctx context.Context, q db.Querier, tenant domain.TenantID) (jobs []domain.JobID, err error) {
	return db.SelectColumn[domain.JobID](ctx, q,
		"SELECT id FROM jobs"+s.Dialect.ByIndex("ix_jobs_kind")+" WHERE tenant_id = ? AND kind = ?", int64(tenant), int64(domain.JobTimer))
}

func (s *Timers) listPending(ctx context.Context, q db.Querier, l *timerList, jobs []domain.JobID) error {
	for _, job := range jobs {
		after := store.TimerCursor{Job: job}
		if job < l.p.After.Job {
			continue
		}
		if job == l.p.After.Job {
			after = l.p.After
		}
		for room := l.room(); room > 0; room = l.room() {
			rows, err := s.pendingOf(ctx, q, l.p, after, room)
			if err != nil {
				return err
			}
			for _, r := range rows {
				after = store.TimerCursor{Job: job, Key: r.timer.Key}
				if l.p.Label != "" {
					after = store.TimerCursor{Job: job, Run: domain.ExecutionID(r.timer.ID)}
				}
				if l.take(store.TimerView{Timer: r.timer}, r.size, after) {
					return nil
				}
			}
			if len(rows) < room {
				break
			}
		}
	}
	l.next = nil
	return nil
}

// pendingTimer is what a list reads of a timer before it knows whether it shows it.
type pendingTimer struct {
	timer domain.Timer
	size  int64 // of its input
}

// pendingColumns stand before the input in a row. SQLite reads all pages of an input for a
// column behind it.
const pendingColumns = "%[1]sid, %[1]stenant_id, %[1]sjob_id, %[1]sfire_at, %[1]stimer_key, COALESCE(OCTET_LENGTH(%[1]sinput), 0)"

// pendingOf reads the next pending timers of one job: by key, or those of a label
// by id.
func (s *Timers) pendingOf(ctx context.Context, q db.Querier, p store.ListTimersParams, after store.TimerCursor, limit int) (out []pendingTimer, err error) {
	statement := "SELECT " + fmt.Sprintf(pendingColumns, "") + " FROM timers" + s.Dialect.ByIndex("uq_timers_key") + " WHERE job_id = ?"
	args := []any{int64(after.Job)}
	// One lower bound: of two SQLite takes the first, and reads all keys behind it.
	if after.Key != "" && after.Key >= p.KeyPrefix {
		statement, args = statement+" AND timer_key > ?", append(args, after.Key)
	} else {
		statement, args = statement+" AND timer_key >= ?", append(args, p.KeyPrefix)
	}
	order := "timer_key"
	if end := db.PrefixEnd(p.KeyPrefix); end != "" {
		statement, args = statement+" AND timer_key < ?", append(args, end)
	}
	if p.Label != "" {
		statement = "SELECT " + fmt.Sprintf(pendingColumns, "t.") + " FROM timer_labels AS l JOIN timers AS t ON t.id = l.timer_id" +
			" WHERE l.tenant_id = ? AND l.job_id = ? AND l.label = ? AND l.timer_id > ?"
		args = []any{int64(p.Tenant), int64(after.Job), p.Label, int64(after.Run)}
		order = "l.timer_id"
	}
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		var r pendingTimer
		var at int64
		err := rows.Scan(&r.timer.ID, &r.timer.TenantID, &r.timer.JobID, &at, &r.timer.Key, &r.size)
		if r.timer.FireAt = db.Instant(at); r.timer.TenantID == p.Tenant {
			out = append(out, r)
		}
		return err
	}, statement+fmt.Sprintf(" ORDER BY %s LIMIT %d", order, limit), args...)
	if err != nil {
		return nil, fmt.Errorf("read pending timers: %w", err)
	}
	return out, nil
}

// phasesOfTimers are the phases of timers' runs that a list is about.
func phasesOfTimers(state store.TimersState) (phases []int64) {
	for _, st := range domain.States {
		if st.Terminal() == (state == store.TimersEnded) {
			phases = append(phases, record.PhasesOf([]domain.State{st})...)
		}
	}
	slices.Sort(phases)
	phases = slices.Compact(phases)
	for i := range phases {
		phases[i] += record.PhaseTimer
	}
	return phases
}

// listRuns goes through the phases of all timers' runs of the tenant, newest first.
func (s *Timers) listRuns(ctx context.Context, q db.Querier, l *timerList, jobs []domain.JobID) error {
	wanted := map[domain.JobID]bool{}
	for _, job := range jobs {
		wanted[job] = true
	}
	before := l.p.After.Run
	for room := l.room(); room > 0; room = l.room() {
		f := &record.ExecutionFilter{}
		f.Add("tenant_id = ?", int64(l.p.Tenant))
		if before != 0 {
			f.Add("id < ?", int64(before))
		}
		rows, err := record.ExecutionsByPhase(ctx, q, s.Dialect, phasesOfTimers(l.p.State), f, room)
		if err != nil {
			return fmt.Errorf("read runs of timers: %w", err)
		}
		full, err := s.takeRuns(ctx, q, l, rows, wanted)
		if err != nil || full {
			return err
		}
		if len(rows) < room {
			break
		}
		before = domain.ExecutionID(rows[len(rows)-1].ID)
	}
	l.next = nil
	return nil
}

// listRunsOfJob goes through the runs of one job by fire time, the latest first.
func (s *Timers) listRunsOfJob(ctx context.Context, q db.Querier, l *timerList, job domain.JobID) error {
	before := l.p.After.Run
	for room := l.room(); room > 0; room = l.room() {
		f := &record.ExecutionFilter{}
		f.Add("tenant_id = ?", int64(l.p.Tenant))
		f.Add("job_id = ?", int64(job))
		f.Add("phase IN (" + db.IDList(phasesOfTimers(l.p.State)) + ")")
		if !l.p.From.IsZero() {
			f.Add("fire_at >= ?", db.Millis(l.p.From))
		}
		if !l.p.To.IsZero() {
			f.Add("fire_at < ?", db.Millis(l.p.To))
		}
		rows, err := record.ExecutionsByJob(ctx, q, s.Dialect, store.ListExecutionsParams{Tenant: l.p.Tenant, Before: before}, f, room)
		if err != nil {
			return fmt.Errorf("read runs of timers: %w", err)
		}
		full, err := s.takeRuns(ctx, q, l, rows, map[domain.JobID]bool{job: true})
		if err != nil || full {
			return err
		}
		if len(rows) < room {
			break
		}
		before = domain.ExecutionID(rows[len(rows)-1].ID)
	}
	l.next = nil
	return nil
}

// takeRuns takes the runs of the jobs that are wanted, and have the label.
func (s *Timers) takeRuns(ctx context.Context, q db.Querier, l *timerList, rows []*record.ExecutionRow, wanted map[domain.JobID]bool) (full bool, err error) {
	labelled := map[int64]bool{}
	if l.p.Label != "" && len(rows) > 0 {
		ids := make([]int64, len(rows))
		for i, r := range rows {
			ids[i] = r.ID
		}
		labelled, err = db.Set[int64](ctx, q, "SELECT timer_id FROM timer_labels"+s.Dialect.ByIndex("ix_timer_labels_timer")+" WHERE timer_id IN ("+db.IDList(ids)+") AND label = ?", l.p.Label)
		if err != nil {
			return false, fmt.Errorf("read labels: %w", err)
		}
	}
	for _, r := range rows {
		at := store.TimerCursor{Run: domain.ExecutionID(r.ID)}
		if !wanted[domain.JobID(r.JobID)] || l.p.Label != "" && !labelled[r.ID] {
			l.read++
			l.next = &at
			if l.read >= timersScanned {
				return true, nil
			}
			continue
		}
		if l.take(viewOfRun(r), 0, at) { // fillRuns reads the sizes
			return true, nil
		}
	}
	return false, nil
}
