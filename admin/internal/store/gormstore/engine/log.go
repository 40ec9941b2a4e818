package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/logchunk"
)

// logChunkRow is a chunk, or the place of lines that were cut: then cut says
// why, lineCount is 0 and there is no body. Behind such a row may stand the end of
// the log, as a chunk with tailByRun or tailByDay.
type logChunkRow struct {
	tenantID, executionID, attempt, firstLine, lastLine, lineCount int64

	rawBytes, bodyBytes int64 // before and after compression
	firstAt, lastAt     int64
	levels, format      int64
	dropped, cut        int64
	// What all attempts of the run had kept with this chunk.
	runLines, runBytes int64
	aid, body          string
}

var logChunkTable = db.Table[logChunkRow]{
	Name: "log_chunks", Keys: 4, Required: 7,
	Columns: []db.Column[logChunkRow]{
		db.IntColumn("tenant_id", func(r *logChunkRow) *int64 { return &r.tenantID }),
		db.IntColumn("execution_id", func(r *logChunkRow) *int64 { return &r.executionID }),
		db.IntColumn("attempt", func(r *logChunkRow) *int64 { return &r.attempt }),
		db.IntColumn("first_line", func(r *logChunkRow) *int64 { return &r.firstLine }),
		db.IntColumn("last_line", func(r *logChunkRow) *int64 { return &r.lastLine }),
		db.IntColumn("line_count", func(r *logChunkRow) *int64 { return &r.lineCount }),
		{ColumnType: db.ColumnType{Name: "body", Kind: db.KindBytes}, Text: func(r *logChunkRow) *string { return &r.body }},
		db.IntColumn("raw_bytes", func(r *logChunkRow) *int64 { return &r.rawBytes }),
		db.IntColumn("body_bytes", func(r *logChunkRow) *int64 { return &r.bodyBytes }),
		db.IntColumn("first_at", func(r *logChunkRow) *int64 { return &r.firstAt }),
		db.IntColumn("last_at", func(r *logChunkRow) *int64 { return &r.lastAt }),
		db.IntColumn("levels", func(r *logChunkRow) *int64 { return &r.levels }),
		db.IntColumn("format", func(r *logChunkRow) *int64 { return &r.format }),
		db.IntColumn("dropped", func(r *logChunkRow) *int64 { return &r.dropped }),
		db.IntColumn("cut", func(r *logChunkRow) *int64 { return &r.cut }),
		db.IntColumn("run_lines", func(r *logChunkRow) *int64 { return &r.runLines }),
		db.IntColumn("run_bytes", func(r *logChunkRow) *int64 { return &r.runBytes }),
		db.LongColumn("aid", db.KindBytes, func(r *logChunkRow) *string { return &r.aid }),
	},
}

// Why lines were cut. The tails are lines beyond the limit that are kept until
// newer ones come.
const (
	CutByRun int64 = 1 + iota
	CutByDay
	tailByRun
	tailByDay
)

// tailOf are the bounds of the end that a log over its limit keeps, by the reason
// of the cut. A day's limit is for many runs, so each keeps little beyond it.
var tailOf = map[int64]struct {
	mark  int64
	lines int
	bytes int
}{
	CutByRun: {tailByRun, 100, 32 << 10},
	CutByDay: {tailByDay, 10, 4 << 10},
}

// beyond is the limit that the log had reached with this row; 0 = none.
func (r *logChunkRow) beyond() int64 {
	for reason, tail := range tailOf {
		if r.cut == reason || r.cut == tail.mark {
			return reason
		}
	}
	return 0
}

// AttemptKey names the log of one attempt.
type AttemptKey struct {
	Tenant    domain.TenantID
	Execution domain.ExecutionID
	Attempt   int
}

func (k AttemptKey) compare(o AttemptKey) int {
	return cmp.Or(cmp.Compare(k.Tenant, o.Tenant), cmp.Compare(k.Execution, o.Execution), cmp.Compare(k.Attempt, o.Attempt))
}

// Where is the condition that finds the rows of the attempt.
func (k AttemptKey) Where() string {
	return fmt.Sprintf("tenant_id = %d AND execution_id = %d AND attempt = %d", k.Tenant, k.Execution, k.Attempt)
}

// errLogMoved: somebody else has appended to the same attempt meanwhile.
var errLogMoved = errors.New("the log has grown since it was read")

// AppendLogs reads what is there, compresses outside of the transaction, which
// others wait for, and writes if nothing has come in between.
func (s *LogAppender) AppendLogs(ctx context.Context, list []store.LogAppend) (dropped int, err error) {
	ctx, cancel := db.WithDeadline(ctx)
	defer cancel()
	lines, dropped, err := s.ownLines(ctx, list)
	if err != nil || len(lines) == 0 {
		return dropped, db.Translate("append logs", err)
	}
	for try := 1; ; try++ {
		plan, err := s.planLogs(ctx, lines)
		if err != nil {
			return dropped, db.Translate("append logs", err)
		}
		if plan.empty() {
			return dropped, nil
		}
		err = s.RunRepeatable(ctx, "append logs", plan.write)
		if !errors.Is(err, errLogMoved) && !domain.Is(err, domain.CodeConflict) || try == db.TxTries {
			return dropped, err
		}
	}
}

// ownLines collects the lines by attempt and leaves out chunks of executions
// that are not the sender's.
func (s *LogAppender) ownLines(ctx context.Context, list []store.LogAppend) (map[AttemptKey][]domain.LogLine, int, error) {
	var ids []domain.ExecutionID
	for _, a := range list {
		for _, c := range a.Chunks {
			ids = append(ids, c.ExecutionID)
		}
	}
	known, err := s.Rows.load(ctx, s.Lookup, ids)
	if err != nil {
		return nil, 0, err
	}
	lines, dropped := map[AttemptKey][]domain.LogLine{}, 0
	for _, a := range list {
		for _, c := range a.Chunks {
			if f, ok := known[c.ExecutionID]; !ok || f.ref.Tenant != a.Tenant || f.ref.Executor != a.Executor {
				dropped++
				continue
			}
			key := AttemptKey{a.Tenant, c.ExecutionID, c.Attempt}
			lines[key] = append(lines[key], c.Lines...)
		}
	}
	for _, l := range lines {
		slices.SortStableFunc(l, func(a, b domain.LogLine) int { return cmp.Compare(a.Number, b.Number) })
	}
	return lines, dropped, nil
}

// maxTail is how many chunks at the end of a log are looked at for merging.
const maxTail = 12

// logTail is the end of an attempt's log.
type logTail struct {
	rows []logChunkRow // newest first, without bodies
	// What the run has kept, all attempts together.
	runLines, runBytes int64
}

func (t *logTail) lastLine() int64 {
	if len(t.rows) == 0 {
		return 0
	}
	return t.rows[0].lastLine
}

const tailColumns = "tenant_id, execution_id, attempt, first_line, last_line, line_count, raw_bytes, body_bytes, format, dropped, cut, first_at, last_at, run_lines, run_bytes"

// logTails reads the ends of logs. The newest attempt's end tells what the run
// has kept; lines that came late for an older one are in no newer one's sum.
func (s *LogAppender) logTails(ctx context.Context, keys []AttemptKey) (map[AttemptKey]*logTail, error) {
	out := make(map[AttemptKey]*logTail, len(keys))
	var terms []string
	for _, k := range keys {
		out[k] = &logTail{}
		run := fmt.Sprintf("tenant_id = %d AND execution_id = %d", k.Tenant, k.Execution)
		terms = append(terms,
			s.Dialect.Bounded("SELECT 0 AS asked, "+tailColumns+" FROM log_chunks WHERE "+k.Where()+fmt.Sprintf(" ORDER BY first_line DESC LIMIT %d", maxTail)),
			s.Dialect.Bounded(fmt.Sprintf("SELECT %d AS asked, ", k.Attempt)+tailColumns+" FROM log_chunks WHERE "+run+" ORDER BY attempt DESC, first_line DESC LIMIT 1"))
	}
	for part := range slices.Chunk(terms, 100) {
		err := db.Query(ctx, s.Lookup, func(rows *sql.Rows) error {
			var r logChunkRow
			var asked int
			err := rows.Scan(&asked, &r.tenantID, &r.executionID, &r.attempt, &r.firstLine, &r.lastLine, &r.lineCount, &r.rawBytes, &r.bodyBytes,
				&r.format, &r.dropped, &r.cut, &r.firstAt, &r.lastAt, &r.runLines, &r.runBytes)
			if err != nil {
				return err
			}
			key := AttemptKey{domain.TenantID(r.tenantID), domain.ExecutionID(r.executionID), int(r.attempt)}
			if asked == 0 {
				out[key].rows = append(out[key].rows, r)
			} else {
				key.Attempt = asked
			}
			t := out[key]
			t.runLines, t.runBytes = max(t.runLines, r.runLines), max(t.runBytes, r.runBytes)
			return nil
		}, strings.Join(part, " UNION ALL "))
		if err != nil {
			return nil, fmt.Errorf("read log ends: %w", err)
		}
	}
	for _, t := range out {
		slices.SortFunc(t.rows, func(a, b logChunkRow) int { return cmp.Compare(b.firstLine, a.firstLine) })
	}
	return out, nil
}

// mergeable returns how many chunks at the end are written anew together with
// this many bytes: those that are at most twice as large as what would be behind
// them, so that a log of many small appends has few chunks, and each line is
// written anew about as often as its log grows by half, up to a whole chunk.
func (t *logTail) mergeable(bytes int64) int {
	n := 0
	for n < len(t.rows) {
		r := &t.rows[n]
		if r.cut != 0 || r.format != logchunk.Format || r.rawBytes > 2*bytes || bytes+r.rawBytes > logchunk.MaxBytes {
			break
		}
		bytes += r.rawBytes
		n++
	}
	return n
}

// logUsageOf reads what the tenants have written today.
func (s *LogAppender) logUsageOf(ctx context.Context, keys []AttemptKey, today int64) (map[UsageKey]LogUsage, error) {
	out := map[UsageKey]LogUsage{}
	if s.logLimits.TenantDayBytes == 0 {
		return out, nil
	}
	tenants := map[domain.TenantID]bool{}
	for _, k := range keys {
		tenants[k.Tenant] = true
	}
	err := db.Query(ctx, s.Lookup, func(rows *sql.Rows) error {
		k := UsageKey{Day: today}
		var u LogUsage
		err := rows.Scan(&k.Tenant, &u.lines, &u.Bytes)
		out[k] = u
		return err
	}, "SELECT tenant_id, line_count, bytes FROM log_usage WHERE tenant_id IN ("+db.IDList(slices.Sorted(maps.Keys(tenants)))+") AND day = ?", today)
	if err != nil {
		return nil, fmt.Errorf("read log usage: %w", err)
	}
	return out, nil
}

// CountLogs adds to the sums, in the order of their keys. It comes last in a
// transaction: all who append for a tenant wait for the row.
func CountLogs(t *db.Tx, change map[UsageKey]LogUsage) error {
	keys := slices.SortedFunc(maps.Keys(change), func(a, b UsageKey) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Day, b.Day))
	})
	for _, k := range keys {
		c := change[k]
		if c == (LogUsage{}) {
			continue
		}
		n, err := t.Exec(t.Ctx, "UPDATE log_usage SET line_count = line_count + ?, bytes = bytes + ? WHERE tenant_id = ? AND day = ?",
			c.lines, c.Bytes, int64(k.Tenant), k.Day)
		if err == nil && n == 0 {
			_, err = t.Exec(t.Ctx, "INSERT INTO log_usage (tenant_id, day, line_count, bytes) VALUES (?, ?, ?, ?)", int64(k.Tenant), k.Day, c.lines, c.Bytes)
		}
		if err != nil {
			return fmt.Errorf("count logs: %w", err)
		}
	}
	return nil
}
