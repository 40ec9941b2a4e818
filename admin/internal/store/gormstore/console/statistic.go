package console

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/week"
)

const (
	// sumsAtOnce bounds the rows of statistics that one transaction adds to, by about
	// those of a row of the outbox, and with them its memory. The ends of a job that are
	// counted together are one row to read and write: when each end was one, counting
	// took the database as much time as the runs did. After a failure it is half as many.
	sumsAtOnce, fewestSums = 20_000, 500
	// endsAtOnce bounds the ends that one transaction counts.
	endsAtOnce = 200_000
	// journalRead bounds the rows of the outbox that are read at once.
	journalRead = 500
	// statisticsAtOnce bounds the rows of one statement.
	statisticsAtOnce = 500
	// slideLimit bounds the jobs whose weeks move on in one transaction, and slides the
	// transactions of one call: 5,000 jobs a minute.
	slideLimit, slides = 200, 25
	// countedValue is when ends were counted last, in cluster_values. Its lock is that of
	// all that writes statistics: rows are read, added to and written.
	countedValue = "statistics_counted"
)

// endsTopic is the topic of the outbox that is counted.
var endsTopic = strconv.Itoa(int(domain.TopicEnds))

// lockStatistics waits until nobody else writes statistics.
func lockStatistics(t *db.Tx, now time.Time) error {
	_, err := t.Exec(t.Ctx, "INSERT INTO cluster_values (name, value) VALUES (?, ?)"+t.Dialect.OnDuplicate("name")+" value = "+t.Dialect.Inserted("value"),
		countedValue, strconv.FormatInt(now.UnixMilli(), 10))
	if err != nil {
		return fmt.Errorf("lock statistics: %w", err)
	}
	return nil
}

// lockStatisticsOnly is lockStatistics without a new time: no end is counted.
func lockStatisticsOnly(t *db.Tx) error {
	if _, err := t.Exec(t.Ctx, "INSERT INTO cluster_values (name, value) VALUES (?, '0')"+t.Dialect.OnDuplicate("name")+" value = cluster_values.value", countedValue); err != nil {
		return fmt.Errorf("lock statistics: %w", err)
	}
	return nil
}

// CountEnds deletes from the outbox what it adds to statistics, in one transaction.
func (s *Statistics) CountEnds(ctx context.Context, every time.Duration) (more bool, err error) {
	var last int64
	waiting := false
	err = s.LookRows(ctx, "look for ends of runs", func(rows *sql.Rows) error { return rows.Scan(&last, &waiting) },
		"SELECT COALESCE((SELECT value FROM cluster_values WHERE name = '"+countedValue+"'), '0'), EXISTS (SELECT 1 FROM outbox WHERE topic = "+endsTopic+")")
	now := time.Now()
	if err != nil || !waiting || last <= now.UnixMilli() && now.UnixMilli()-last < every.Milliseconds() {
		return false, err
	}
	most := int(s.atOnce.Load())
	if most == 0 {
		most = sumsAtOnce
	}
	more, err = db.Value(ctx, s.RunRepeatable, "count ends of runs", func(t *db.Tx) (more bool, err error) {
		if err := lockStatistics(t, now); err != nil {
			return false, err
		}
		var ids []int64
		counted := 0
		sums, failed, weeks := map[record.StatisticRow]*domain.RunSum{}, failures{}, week.Ends{}
		for after := int64(0); !more; {
			last, err := db.ReadOutbox(t.Ctx, t.Conn, t.Dialect, domain.TopicEnds, after, journalRead, func(id int64, body []byte) error {
				if more = more || counted >= endsAtOnce || len(sums)+len(failed) >= most; more {
					return nil
				}
				ends, err := record.DecodeEnds(body)
				ids, counted = append(ids, id), counted+len(ends)
				for i := range ends {
					for _, key := range record.Counted(&ends[i]) {
						if sums[key] == nil {
							sums[key] = &domain.RunSum{}
						}
						sums[key].Count(&ends[i])
					}
					failed.count(&ends[i])
					weeks.Count(&ends[i])
				}
				return err
			})
			if err != nil {
				return false, err
			}
			if last == 0 {
				break
			}
			after = last
		}
		if len(ids) == 0 {
			return more, nil
		}
		if err := addSums(t, sums); err != nil {
			return false, err
		}
		if err := failed.add(t); err != nil {
			return false, err
		}
		if err := weeks.Write(t, now); err != nil {
			return false, err
		}
		return more, t.DeleteOutbox(domain.TopicEnds, ids)
	})
	if err != nil {
		s.atOnce.Store(int64(max(most/2, fewestSums)))
	} else {
		s.atOnce.Store(int64(min(most*2, sumsAtOnce)))
	}
	return more, err
}

// addSums adds to rows of statistics, which are locked by lockStatistics.
func addSums(t *db.Tx, sums map[record.StatisticRow]*domain.RunSum) error {
	if err := readSums(t, sums); err != nil {
		return fmt.Errorf("read statistics: %w", err)
	}
	keys := slices.SortedFunc(maps.Keys(sums), record.StatisticRow.Compare)
	for part := range slices.Chunk(keys, statisticsAtOnce) {
		args := make([]any, 0, 15*len(part))
		var gone []string
		for i := range part {
			key, sum := &part[i], sums[part[i]]
			if sum.Empty() {
				gone = append(gone, key.Where())
				continue
			}
			args = append(args, int64(key.Tenant), int64(key.Kind), key.Subject, key.At, int64(key.Step), int64(key.State),
				sum.Runs, sum.Late.N, sum.Late.SumMS, sum.Late.MaxMS, sum.Late.Encode(), sum.Took.N, sum.Took.SumMS, sum.Took.MaxMS, sum.Took.Encode())
		}
		if len(gone) > 0 {
			if _, err := t.Exec(t.Ctx, "DELETE FROM statistics WHERE "+strings.Join(gone, " OR ")); err != nil {
				return fmt.Errorf("delete statistics: %w", err)
			}
		}
		if len(args) == 0 {
			continue
		}
		var set []string
		for _, column := range strings.Split(record.StatisticColumns, ", ")[6:] {
			set = append(set, " "+column+" = "+t.Dialect.Inserted(column))
		}
		values := strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?),", len(args)/15), ",")
		_, err := t.Exec(t.Ctx, "INSERT INTO statistics ("+record.StatisticColumns+") VALUES "+values+t.Dialect.OnDuplicate("tenant_id, kind, subject_id, at, step, state")+strings.Join(set, ","), args...)
		if err != nil {
			return fmt.Errorf("write statistics: %w", err)
		}
	}
	return nil
}

// readSums adds what there is already. Rows that differ in their subject alone are one
// list of numbers, which costs a server much less than as many conditions.
func readSums(t *db.Tx, sums map[record.StatisticRow]*domain.RunSum) error {
	subjects := map[record.StatisticRow][]int64{}
	for key := range sums {
		same := key
		same.Subject = 0
		subjects[same] = append(subjects[same], key.Subject)
	}
	for same, ids := range subjects {
		slices.Sort(ids)
		for part := range slices.Chunk(ids, statisticsAtOnce) {
			err := scanStatistics(t, func(key record.StatisticRow, sum *domain.RunSum) { sums[key].Add(sum) }, same.WhereOf(part))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func scanStatistics(t *db.Tx, each func(record.StatisticRow, *domain.RunSum), rest string) error {
	return db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var key record.StatisticRow
		sum := &domain.RunSum{}
		err := record.ScanStatistic(rows.Scan, &key, sum)
		if err == nil {
			each(key, sum)
		}
		return err
	}, "SELECT "+record.StatisticColumns+" FROM statistics "+rest)
}

// WidenStatistics takes rows in the order of ix_statistics_step.
func (s *Statistics) WidenStatistics(ctx context.Context, keep store.StatisticsKept, limit int) (widened int, err error) {
	for _, step := range []struct {
		from, to domain.StatisticStep
	}{{domain.StepMinute, domain.StepHour}, {domain.StepHour, domain.StepDay}, {domain.StepDay, 0}} {
		n, err := db.Value(ctx, s.RunRepeatable, "widen statistics", func(t *db.Tx) (int, error) {
			now, err := t.Clock()
			if err != nil {
				return 0, err
			}
			return widen(t, step.from, step.to, keep.Since(step.from, now), limit)
		})
		if widened += n; err != nil {
			return widened, err
		}
	}
	n, err := s.deleteFailuresBefore(ctx, keep.Since(domain.StepHour, time.Now()), limit)
	if err != nil {
		return widened + n, err
	}
	return widened + n, s.slideWeeks(ctx)
}

// slideWeeks moves the weeks of jobs on.
func (s *Statistics) slideWeeks(ctx context.Context) error {
	for range slides {
		now := time.Now()
		old, err := db.LookColumn[int64](ctx, s.DB, "look for old weeks of jobs", fmt.Sprintf("SELECT 1 FROM job_weeks WHERE first_at < %d LIMIT 1", week.Begin(now)))
		if err != nil || len(old) == 0 {
			return err
		}
		_, err = db.Value(ctx, s.RunRepeatable, "move weeks of jobs", func(t *db.Tx) (int, error) {
			if err := lockStatisticsOnly(t); err != nil {
				return 0, err
			}
			return week.Slide(t, now, slideLimit)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// widen adds rows to those of a longer step, or of none, and deletes them.
func widen(t *db.Tx, from, to domain.StatisticStep, before time.Time, limit int) (int, error) {
	if err := lockStatisticsOnly(t); err != nil {
		return 0, err
	}
	var old []record.StatisticRow
	sums := map[record.StatisticRow]*domain.RunSum{}
	err := scanStatistics(t, func(key record.StatisticRow, sum *domain.RunSum) {
		old = append(old, key)
		if to == 0 {
			return
		}
		wide := key.Widen(to)
		if sums[wide] == nil {
			sums[wide] = &domain.RunSum{}
		}
		sums[wide].Add(sum)
	}, OldStatistics(t.Dialect, from, before, limit))
	if err != nil || len(old) == 0 {
		return 0, err
	}
	if err := addSums(t, sums); err != nil {
		return 0, err
	}
	for part := range slices.Chunk(old, statisticsAtOnce) {
		if _, err := t.Exec(t.Ctx, "DELETE FROM statistics WHERE "+strings.Join(domain.Collect(part, (*record.StatisticRow).Where), " OR ")); err != nil {
			return 0, fmt.Errorf("delete statistics: %w", err)
		}
	}
	return len(old), nil
}

// OldStatistics is what follows a SELECT FROM statistics for those of a step that begin
// before an instant.
func OldStatistics(d db.Dialect, step domain.StatisticStep, before time.Time, limit int) string {
	return fmt.Sprintf("%s WHERE step = %d AND at < %d ORDER BY at LIMIT %d", d.ByIndex("ix_statistics_step"), step, db.Millis(before), limit)
}

// SumRuns reads statistics and the outbox in one statement: an end counts once,
// whether it is counted meanwhile or not.
func (s *Statistics) SumRuns(ctx context.Context, p store.SumRunsParams) (out store.RunSums, err error) {
	if p.Kind == domain.StatisticsOfTenant {
		p.Subjects = []int64{0}
	}
	if len(p.Subjects) == 0 {
		return store.RunSums{}, nil
	}
	of := make(map[int64]bool, len(p.Subjects))
	for _, id := range p.Subjects {
		of[id] = true
	}
	from, to := db.Millis(p.From), db.Millis(p.To)
	add := func(key record.StatisticRow) *domain.RunSum {
		key = key.Widen(p.Step)
		if key.Tenant != p.Tenant || key.Kind != p.Kind || !of[key.Subject] || key.At < from || key.At >= to {
			return nil
		}
		return out.Sum(key.At, key.State)
	}
	out = store.RunSums{}
	err = s.LookRows(ctx, "sum runs", func(rows *sql.Rows) error {
		var key record.StatisticRow
		var sum domain.RunSum
		var body []byte
		if err := record.ScanStatistic(func(targets ...any) error { return rows.Scan(append(targets, &body)...) }, &key, &sum); err != nil {
			return err
		}
		if body == nil {
			if into := add(key); into != nil {
				into.Add(&sum)
			}
			return nil
		}
		ends, err := record.DecodeEnds(body)
		for i := range ends {
			for _, key := range record.Counted(&ends[i]) {
				if into := add(key); into != nil {
					into.Count(&ends[i])
				}
			}
		}
		return err
	}, RunSums(s.Dialect, p))
	maps.DeleteFunc(out, func(_ store.RunSumKey, sum *domain.RunSum) bool { return sum.Empty() })
	return out, err
}

// RunSums is the statement of SumRuns. Longer steps than the wanted one are left out:
// nobody knows where in them their runs ended.
func RunSums(d db.Dialect, p store.SumRunsParams) string {
	none := strings.Repeat("0, ", 10) + "NULL, 0, 0, 0, NULL, body"
	return fmt.Sprintf("SELECT %s, NULL FROM statistics%s WHERE tenant_id = %d AND kind = %d AND subject_id IN (%s) AND at >= %d AND at < %d AND step <= %d UNION ALL %s",
		record.StatisticColumns, d.ByPrimary(), p.Tenant, p.Kind, db.IDList(p.Subjects), db.Millis(p.From), db.Millis(p.To), p.Step,
		d.Bounded(fmt.Sprintf("SELECT %s FROM outbox%s WHERE topic = %s ORDER BY id DESC LIMIT %d", none, d.ByPrimary(), endsTopic, 2*journalRead)))
}
