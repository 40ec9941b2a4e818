package console

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

const (
	// errorsOfJob bounds the errors of a job in an hour that are told apart. The others count
	// together, with the fingerprint 0.
	errorsOfJob = 16
	// errorTexts bounds the texts of a tenant: 400 KB. When there are more, errorTextsLeave
	// more than necessary leave, those first that were seen longest ago.
	errorTexts, errorTextsLeave = 2000, 200
)

// failureKey is the primary key of failure_counts.
type failureKey struct {
	tenant   domain.TenantID
	at       int64
	executor domain.ExecutorID
	job      domain.JobID
	mark     domain.Fingerprint
}

func (k failureKey) compare(o failureKey) int {
	return cmp.Or(cmp.Compare(k.tenant, o.tenant), cmp.Compare(k.at, o.at), cmp.Compare(k.executor, o.executor), cmp.Compare(k.job, o.job), cmp.Compare(k.mark, o.mark))
}

// failure is a row of failure_counts, with the text of its fingerprint.
type failure struct {
	runs         int64
	lastRun      domain.ExecutionID
	lastAt       int64
	text         string
	has, changed bool // the table has a row; it is to be written, or deleted without runs
}

// failures are ends that are counted together.
type failures map[failureKey]*failure

// count adds an end. Ends without an error are left out.
func (f failures) count(e *domain.RunEnd) {
	if e.Error == 0 {
		return
	}
	at := e.Minute * time.Minute.Milliseconds()
	key := failureKey{e.Tenant, at - at%time.Hour.Milliseconds(), e.Executor, e.Job, e.Error}
	sum := f[key]
	if sum == nil {
		sum = &failure{}
		f[key] = sum
	}
	if e.Undone {
		sum.runs--
		return
	}
	sum.runs++
	sum.lastRun, sum.lastAt, sum.text = max(sum.lastRun, e.Run), max(sum.lastAt, at), cmp.Or(e.ErrorText, sum.text)
}

// add writes what was counted. The rows are locked by lockStatistics.
func (f failures) add(t *db.Tx) error {
	if len(f) == 0 {
		return nil
	}
	stored, err := f.stored(t)
	if err != nil {
		return fmt.Errorf("read failure counts: %w", err)
	}
	f.merge(stored)
	if err := stored.write(t); err != nil {
		return fmt.Errorf("write failure counts: %w", err)
	}
	return stored.writeTexts(t)
}

// stored reads the rows of the jobs and hours of f.
func (f failures) stored(t *db.Tx) (failures, error) {
	jobs := map[failureKey][]domain.JobID{}
	for key := range f {
		same := failureKey{tenant: key.tenant, at: key.at, executor: key.executor}
		jobs[same] = append(jobs[same], key.job)
	}
	out := failures{}
	for same, ids := range jobs {
		ids = slices.Compact(slices.Sorted(slices.Values(ids)))
		for part := range slices.Chunk(ids, statisticsAtOnce) {
			err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
				key, row, mark := same, &failure{has: true}, int64(0)
				err := rows.Scan(&key.job, &mark, &row.runs, &row.lastRun, &row.lastAt)
				key.mark = domain.Fingerprint(mark)
				out[key] = row
				return err
			}, fmt.Sprintf("SELECT job_id, fingerprint, runs, last_run, last_at FROM failure_counts%s WHERE tenant_id = %d AND at = %d AND executor_id = %d AND job_id IN (%s)",
				t.Dialect.ByPrimary(), same.tenant, same.at, same.executor, db.IDList(part)))
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// merge adds f to the rows of the table. A job with too many errors in an hour counts further
// ones as others. What is taken back of an error without a row was counted there.
func (f failures) merge(stored failures) {
	known := map[failureKey]int{}
	ofJob := func(key failureKey) failureKey { key.mark = 0; return key }
	for key := range stored {
		known[ofJob(key)]++
	}
	for _, key := range slices.SortedFunc(maps.Keys(f), failureKey.compare) {
		sum := f[key]
		if sum.runs == 0 {
			continue
		}
		row := stored[key]
		if others := ofJob(key); row == nil && (sum.runs < 0 || known[others] >= errorsOfJob) {
			key, sum.text = others, ""
			row = stored[key]
		}
		if row == nil {
			row = &failure{}
			stored[key] = row
			known[ofJob(key)]++
		}
		row.runs += sum.runs
		row.lastRun, row.lastAt, row.text = max(row.lastRun, sum.lastRun), max(row.lastAt, sum.lastAt), sum.text
		row.changed = true
	}
}

// write inserts, updates and deletes rows.
func (f failures) write(t *db.Tx) error {
	keys := slices.SortedFunc(maps.Keys(f), failureKey.compare)
	for part := range slices.Chunk(keys, statisticsAtOnce) {
		var values, gone []string
		for _, key := range part {
			row := f[key]
			switch {
			case !row.changed:
			case row.runs > 0:
				values = append(values, fmt.Sprintf("(%d,%d,%d,%d,%d,%d,%d,%d)", key.tenant, key.at, key.executor, key.job, int64(key.mark), row.runs, row.lastRun, row.lastAt))
			case row.has:
				gone = append(gone, fmt.Sprintf("(tenant_id = %d AND at = %d AND executor_id = %d AND job_id = %d AND fingerprint = %d)", key.tenant, key.at, key.executor, key.job, int64(key.mark)))
			}
		}
		if len(values) > 0 {
			var set []string
			for _, column := range []string{"runs", "last_run", "last_at"} {
				set = append(set, " "+column+" = "+t.Dialect.Inserted(column))
			}
			_, err := t.Exec(t.Ctx, "INSERT INTO failure_counts (tenant_id, at, executor_id, job_id, fingerprint, runs, last_run, last_at) VALUES "+strings.Join(values, ",")+
				t.Dialect.OnDuplicate("tenant_id, at, executor_id, job_id, fingerprint")+strings.Join(set, ","))
			if err != nil {
				return err
			}
		}
		if len(gone) > 0 {
			if _, err := t.Exec(t.Ctx, "DELETE FROM failure_counts WHERE "+strings.Join(gone, " OR ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// errorText is a row of error_texts.
type errorText struct {
	mark   domain.Fingerprint
	text   string
	lastAt int64
}

// writeTexts stores the texts of the rows that were added to, and keeps their number.
func (f failures) writeTexts(t *db.Tx) error {
	of := map[domain.TenantID]map[domain.Fingerprint]errorText{}
	for key, row := range f {
		if row.text == "" || key.mark == 0 || row.runs <= 0 {
			continue
		}
		if of[key.tenant] == nil {
			of[key.tenant] = map[domain.Fingerprint]errorText{}
		}
		if row.lastAt >= of[key.tenant][key.mark].lastAt {
			of[key.tenant][key.mark] = errorText{key.mark, row.text, row.lastAt}
		}
	}
	for tenant, texts := range of {
		// Only the newest of them would stay.
		list := slices.SortedFunc(maps.Values(texts), func(a, b errorText) int { return cmp.Or(cmp.Compare(b.lastAt, a.lastAt), cmp.Compare(a.mark, b.mark)) })
		list = list[:min(len(list), errorTexts)]
		slices.SortFunc(list, func(a, b errorText) int { return cmp.Compare(a.mark, b.mark) })
		if err := writeTexts(t, tenant, list); err != nil {
			return fmt.Errorf("write texts of errors: %w", err)
		}
	}
	return nil
}

func writeTexts(t *db.Tx, tenant domain.TenantID, list []errorText) error {
	for part := range slices.Chunk(list, statisticsAtOnce) {
		var args []any
		for _, e := range part {
			args = append(args, int64(tenant), int64(e.mark), e.text, e.lastAt)
		}
		_, err := t.Exec(t.Ctx, "INSERT INTO error_texts (tenant_id, fingerprint, text, last_at) VALUES "+strings.TrimSuffix(strings.Repeat("(?,?,?,?),", len(part)), ",")+
			t.Dialect.OnDuplicate("tenant_id, fingerprint")+" last_at = "+t.Dialect.Inserted("last_at"), args...)
		if err != nil {
			return err
		}
	}
	n, err := db.SelectColumn[int](t.Ctx, t.Conn, fmt.Sprintf("SELECT COUNT(*) FROM error_texts WHERE tenant_id = %d", tenant))
	if err != nil || n[0] <= errorTexts {
		return err
	}
	old, err := db.SelectColumn[int64](t.Ctx, t.Conn, OldErrorTexts(t.Dialect, tenant, n[0]-errorTexts+errorTextsLeave))
	if err != nil {
		return err
	}
	_, err = t.Exec(t.Ctx, fmt.Sprintf("DELETE FROM error_texts WHERE tenant_id = %d AND fingerprint IN (%s)", tenant, db.IDList(old)))
	return err
}

// OldErrorTexts finds the texts of a tenant that were seen longest ago.
func OldErrorTexts(d db.Dialect, tenant domain.TenantID, limit int) string {
	return fmt.Sprintf("SELECT fingerprint FROM error_texts%s WHERE tenant_id = %d ORDER BY last_at LIMIT %d", d.ByIndex("ix_error_texts_last"), tenant, limit)
}

// deleteFailuresBefore goes along ix_failure_counts_at.
func (s *Statistics) deleteFailuresBefore(ctx context.Context, before time.Time, limit int) (int, error) {
	old, err := db.LookColumn[int64](ctx, s.DB, "look for old failure counts", fmt.Sprintf("SELECT 1 FROM failure_counts WHERE at < %d LIMIT 1", db.Millis(before)))
	if err != nil || len(old) == 0 {
		return 0, err
	}
	n, err := db.Value(ctx, s.RunRepeatable, "delete old failure counts", func(t *db.Tx) (int64, error) {
		if err := lockStatisticsOnly(t); err != nil {
			return 0, err
		}
		return t.Exec(t.Ctx, t.Dialect.DeleteBounded("failure_counts", "at < ?"), db.Millis(before), int64(limit))
	})
	return int(n), err
}
