// Package week answers: how did the runs of each job end in the last 7 days?
//
// A job has one row, so that lists can be in the order of an index. The row is the sum of the
// job's hours and minutes of statistics since an instant. It changes in the transactions that
// change statistics, which take turns. Nothing is written for a run that waits.
package week

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

const (
	// Length is how far back a row goes, in whole hours.
	Length = 7 * 24 * time.Hour
	// atOnce bounds the jobs of one statement.
	atOnce = 200
	// madeAtOnce bounds the rows that a transaction makes of statistics: a job can have 10,000
	// minutes of them.
	madeAtOnce = 20

	never = int64(1) << 62
	hour  = int64(time.Hour / time.Millisecond)
)

// Begin is from when on ends count, in milliseconds since 1970.
func Begin(now time.Time) int64 { return now.Add(-Length).Truncate(time.Hour).UnixMilli() }

// key is the primary key of job_weeks.
type key struct {
	tenant domain.TenantID
	job    domain.JobID
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.tenant, o.tenant), cmp.Compare(k.job, o.job))
}

// row is a row of job_weeks. from is 0 until it is made of statistics.
type row struct {
	key
	from, next int64
	week       domain.JobWeek
}

// Ends are ends of runs that are counted together, by job and hour.
type Ends map[key]map[int64]*ended

type ended struct {
	domain.JobWeek
	undone int64 // minute of the newest failure that is taken back
}

// Count adds an end.
func (c Ends) Count(e *domain.RunEnd) {
	k := key{e.Tenant, e.Job}
	if c[k] == nil {
		c[k] = map[int64]*ended{}
	}
	minute := e.Minute * time.Minute.Milliseconds()
	at := minute - minute%hour
	if c[k][at] == nil {
		c[k][at] = &ended{}
	}
	c[k][at].Count(e)
	if e.Undone && domain.FailedState(e.State) {
		c[k][at].undone = max(c[k][at].undone, minute)
	}
}

// Write adds the ends to their rows. Statistics have them already, and are locked.
func (c Ends) Write(t *db.Tx, now time.Time) error {
	keys := make([]key, 0, len(c))
	for k := range c {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, key.compare)
	for _, part := range parts(keys) {
		rows, err := read(t, fmt.Sprintf("%s WHERE tenant_id = %d AND job_id IN (%s)", t.Dialect.ByPrimary(), part[0].tenant, jobs(part)))
		if err != nil {
			return err
		}
		known := map[key]bool{}
		for i := range rows {
			known[rows[i].key] = true
			rows[i].count(c[rows[i].key])
		}
		var missing []row
		for _, k := range part {
			if !known[k] {
				missing = append(missing, row{key: k})
			}
		}
		if err := remake(t, missing, Begin(now)); err != nil {
			return err
		}
		for i := range missing {
			for _, e := range c[missing[i].key] {
				missing[i].recall(e) // a minute is more exact than an hour
			}
		}
		if err := write(t, append(rows, missing...)); err != nil {
			return err
		}
	}
	return nil
}

// count adds what belongs into the row. Older hours are not in it.
func (r *row) count(byHour map[int64]*ended) {
	for at, e := range byHour {
		if r.from > 0 && at >= r.from {
			r.week.Ended, r.week.Failed = r.week.Ended+e.Ended, r.week.Failed+e.Failed
			r.week.Late.Add(&e.Late)
			r.week.Took.Add(&e.Took)
			r.next = min(r.next, at)
		}
		if e.undone > 0 && e.undone == r.week.BadAt {
			r.week.BadAt = 0 // the end that came in its place says more
		}
	}
	for _, e := range byHour {
		r.recall(e)
	}
}

func (r *row) recall(e *ended) {
	of := e.JobWeek
	if e.undone > 0 && e.undone == of.BadAt && e.Failed <= 0 {
		of.BadAt = 0
	}
	r.week.Recall(&of)
}

// Slide takes out of rows what is older than a week, at most limit rows, and makes rows of
// statistics. Statistics are locked. It returns how many rows there were.
func Slide(t *db.Tx, now time.Time, limit int) (int, error) {
	begin := Begin(now)
	rows, err := read(t, Old(t.Dialect, begin, min(limit, atOnce)))
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	slices.SortFunc(rows, func(a, b row) int { return a.compare(b.key) })
	var old, made []row
	for _, r := range rows {
		switch {
		// Hours become days after some weeks, and cannot be taken out any more.
		case r.from >= begin-Length.Milliseconds():
			old = append(old, r)
		case len(made) < madeAtOnce:
			made = append(made, r)
		}
	}
	for _, part := range parts(old) {
		if err := leave(t, part, begin); err != nil {
			return 0, err
		}
	}
	for i := range old {
		if old[i].week.Impossible() || old[i].next == never && old[i].week.Ended > 0 {
			old[i] = row{key: old[i].key, week: domain.JobWeek{GoodAt: old[i].week.GoodAt, BadAt: old[i].week.BadAt, PunctualAt: old[i].week.PunctualAt, LateAt: old[i].week.LateAt}}
		}
	}
	if err := remake(t, made, begin); err != nil {
		return 0, err
	}
	all := append(old, made...)
	if err := write(t, all); err != nil {
		return 0, err
	}
	return len(all), forget(t, all)
}

// Old is what follows the columns of a SELECT of rows that have something older than an instant.
func Old(d db.Dialect, begin int64, limit int) string {
	return fmt.Sprintf("%s WHERE first_at < %d ORDER BY first_at LIMIT %d", d.ByIndex("ix_job_weeks_first"), begin, limit)
}

// leave takes out what is older than begin, of rows of one tenant.
func leave(t *db.Tx, part []row, begin int64) error {
	of := map[domain.JobID]*row{}
	var old, first []string
	for i := range part {
		r := &part[i]
		of[r.job] = r
		old = append(old, Hours(t.Dialect, r.tenant, r.from, begin, r.job))
		first = append(first, First(t.Dialect, r.tenant, r.job, begin))
	}
	err := statistics(t, strings.Join(old, " UNION ALL "), func(at *record.StatisticRow, sum *domain.RunSum) {
		of[domain.JobID(at.Subject)].week.SubtractSum(at.State, sum)
	})
	if err != nil {
		return err
	}
	next, err := db.Pairs[domain.JobID, int64](t.Ctx, t.Conn, strings.Join(first, " UNION ALL "))
	for job, r := range of {
		r.from, r.next = begin, never
		if at, ok := next[job]; ok {
			r.next = at - at%hour
		}
	}
	return err
}

// remake makes rows of statistics. Instants that they have stay.
func remake(t *db.Tx, rows []row, begin int64) error {
	for _, part := range parts(rows) {
		of := map[domain.JobID]*row{}
		var list []domain.JobID
		for i := range part {
			r := &part[i]
			r.from, r.next = begin, never
			r.week = domain.JobWeek{GoodAt: r.week.GoodAt, BadAt: r.week.BadAt, PunctualAt: r.week.PunctualAt, LateAt: r.week.LateAt}
			of[r.job], list = r, append(list, r.job)
		}
		err := statistics(t, Hours(t.Dialect, part[0].tenant, begin, never, list...), func(at *record.StatisticRow, sum *domain.RunSum) {
			r := of[domain.JobID(at.Subject)]
			r.week.AddSum(at.State, sum)
			r.week.Note(at.State, sum, at.At)
			r.next = min(r.next, at.At-at.At%hour)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Hours reads statistics of jobs and a time. Those of days are not in any row.
func Hours(d db.Dialect, tenant domain.TenantID, from, to int64, jobs ...domain.JobID) string {
	return d.Bounded(fmt.Sprintf("SELECT %s FROM statistics%s WHERE tenant_id = %d AND kind = %d AND subject_id IN (%s) AND at >= %d AND at < %d AND step <= %d",
		record.StatisticColumns, d.ByPrimary(), tenant, domain.StatisticsOfJob, db.IDList(jobs), from, to, domain.StepHour))
}

// First finds the first hour or minute of a job's statistics.
func First(d db.Dialect, tenant domain.TenantID, job domain.JobID, from int64) string {
	return d.Bounded(fmt.Sprintf("SELECT subject_id, at FROM statistics%s WHERE tenant_id = %d AND kind = %d AND subject_id = %d AND at >= %d AND step <= %d ORDER BY at LIMIT 1",
		d.ByPrimary(), tenant, domain.StatisticsOfJob, job, from, domain.StepHour))
}

func statistics(t *db.Tx, statement string, each func(*record.StatisticRow, *domain.RunSum)) error {
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var at record.StatisticRow
		var sum domain.RunSum
		err := record.ScanStatistic(rows.Scan, &at, &sum)
		if err == nil {
			each(&at, &sum)
		}
		return err
	}, statement)
	if err != nil {
		return fmt.Errorf("read statistics of jobs: %w", err)
	}
	return nil
}

const columns = "tenant_id, job_id, from_at, first_at, ended, failed, late_ms, took_ms, good_at, bad_at, punctual_at, late_at, late, took"

func read(t *db.Tx, rest string) (rows []row, err error) {
	err = db.Query(t.Ctx, t.Conn, func(found *sql.Rows) error {
		var r row
		var lateMS, tookMS int64
		var late, took []byte
		w := &r.week
		err := found.Scan(&r.tenant, &r.job, &r.from, &r.next, &w.Ended, &w.Failed, &lateMS, &tookMS, &w.GoodAt, &w.BadAt, &w.PunctualAt, &w.LateAt, &late, &took)
		if err == nil {
			w.Late, err = domain.SpreadOf(late)
		}
		if err == nil {
			w.Took, err = domain.SpreadOf(took)
		}
		w.Failed = max(0, w.Failed)
		rows = append(rows, r)
		return err
	}, "SELECT "+columns+" FROM job_weeks"+rest)
	if err != nil {
		return nil, fmt.Errorf("read weeks of jobs: %w", err)
	}
	return rows, nil
}

func write(t *db.Tx, rows []row) error {
	names := strings.Split(columns, ", ")
	var set []string
	for _, c := range names[2:] {
		set = append(set, " "+c+" = "+t.Dialect.Inserted(c))
	}
	place := "(" + strings.TrimSuffix(strings.Repeat("?,", len(names)), ",") + "),"
	slices.SortFunc(rows, func(a, b row) int { return a.compare(b.key) })
	for part := range slices.Chunk(rows, atOnce) {
		args := make([]any, 0, len(names)*len(part))
		for i := range part {
			r, w := &part[i], &part[i].week
			failed := w.Failed
			if w.Ended == 0 {
				failed = -1 // behind jobs without a failure
			}
			args = append(args, int64(r.tenant), int64(r.job), r.from, r.next, w.Ended, failed, share(&w.Late), share(&w.Took),
				w.GoodAt, w.BadAt, w.PunctualAt, w.LateAt, w.Late.Encode(), w.Took.Encode())
		}
		_, err := t.Exec(t.Ctx, "INSERT INTO job_weeks ("+columns+") VALUES "+strings.TrimSuffix(strings.Repeat(place, len(part)), ",")+
			t.Dialect.OnDuplicate("tenant_id, job_id")+strings.Join(set, ","), args...)
		if err != nil {
			return fmt.Errorf("write weeks of jobs: %w", err)
		}
	}
	return nil
}

// share is what 19 of 20 do not exceed, in milliseconds; -1: there are none.
func share(s *domain.Spread) int64 {
	of := *s
	of.MaxMS = never // hours that leave would not take it with them
	d, ok := of.Quantile(0.95)
	if !ok {
		return -1
	}
	return d.Milliseconds()
}

// forget deletes rows of jobs that are deleted for good. Their last ends count after it.
func forget(t *db.Tx, rows []row) error {
	for _, part := range parts(rows) {
		gone := fmt.Sprintf("DELETE FROM job_weeks WHERE tenant_id = %d AND job_id IN (%s) AND ended = 0 AND from_at > 0 AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = job_weeks.job_id)",
			part[0].tenant, db.IDList(domain.Collect(part, func(r *row) domain.JobID { return r.job })))
		if _, err := t.Exec(t.Ctx, gone); err != nil {
			return fmt.Errorf("delete weeks of jobs: %w", err)
		}
	}
	return nil
}

func jobs(keys []key) string {
	return db.IDList(domain.Collect(keys, func(k *key) domain.JobID { return k.job }))
}

func (k key) tenantOf() domain.TenantID { return k.tenant }

// parts splits sorted keys or rows by tenant, and at most atOnce together.
func parts[K interface{ tenantOf() domain.TenantID }](list []K) (out [][]K) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && n < atOnce && list[n].tenantOf() == list[0].tenantOf() {
			n++
		}
		out, list = append(out, list[:n]), list[n:]
	}
	return out
}
