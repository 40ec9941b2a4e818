package engine

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/logchunk"
)

// logPlan is what one append writes.
type logPlan struct {
	tails  []*logGrowth // in the order of their keys, which is that of locking
	usage  map[UsageKey]LogUsage
	change map[UsageKey]LogUsage
}

// logGrowth is what happens to one attempt's log.
type logGrowth struct {
	key  AttemptKey
	tail *logTail
	// replaced is how many rows of the tail are deleted; rows come instead.
	replaced int
	rows     []*logChunkRow
}

// UsageKey names a row of log_usage: what a tenant wrote on a day (days since
// 1970), or, with day 0, what of it is stored now.
type UsageKey struct {
	Tenant domain.TenantID
	Day    int64
}

// LogUsage counts lines and bytes: before compression for a day, after
// compression for what is stored.
type LogUsage struct{ lines, Bytes int64 }

func (p *logPlan) empty() bool { return len(p.tails) == 0 }

// DayOf is the day of an instant, in UTC, counted from 1970.
func DayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// planLogs reads the ends of the logs and decides what the lines become.
func (s *LogAppender) planLogs(ctx context.Context, lines map[AttemptKey][]domain.LogLine) (*logPlan, error) {
	keys := make([]AttemptKey, 0, len(lines))
	for k := range lines {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, AttemptKey.compare)
	tails, err := s.logTails(ctx, keys)
	if err != nil {
		return nil, err
	}
	p := &logPlan{change: map[UsageKey]LogUsage{}}
	today := DayOf(time.Now())
	if p.usage, err = s.logUsageOf(ctx, keys, today); err != nil {
		return nil, err
	}
	for _, k := range keys {
		t := tails[k]
		last := t.lastLine()
		fresh := slices.DeleteFunc(slices.Clone(lines[k]), func(l domain.LogLine) bool {
			stored := l.Number <= last
			last = max(last, l.Number)
			return stored
		})
		if len(fresh) == 0 {
			continue
		}
		g := &logGrowth{key: k, tail: t}
		if err := s.grow(ctx, p, g, fresh, today); err != nil {
			return nil, err
		}
		p.tails = append(p.tails, g)
	}
	return p, nil
}

// grow decides which lines are kept, and makes the rows.
func (s *LogAppender) grow(ctx context.Context, p *logPlan, g *logGrowth, fresh []domain.LogLine, today int64) error {
	day := UsageKey{g.key.Tenant, today}
	used := p.usage[day].Bytes + p.change[day].Bytes
	kept, bytes, reason := s.withinLimits(g.tail, fresh, used, today)
	if kept > 0 {
		p.change[day] = LogUsage{p.change[day].lines + int64(kept), p.change[day].Bytes + bytes}
		if err := s.growKept(ctx, g, fresh[:kept], bytes); err != nil {
			return err
		}
	}
	if kept < len(fresh) {
		if err := s.growBeyond(ctx, g, fresh[kept:], reason); err != nil {
			return err
		}
	}
	stored := UsageKey{g.key.Tenant, 0}
	for _, r := range g.tail.rows[:g.replaced] {
		p.change[stored] = LogUsage{Bytes: p.change[stored].Bytes - r.bodyBytes}
	}
	for _, r := range g.rows {
		p.change[stored] = LogUsage{Bytes: p.change[stored].Bytes + r.bodyBytes}
	}
	return nil
}

// withinLimits returns how many of the lines may be kept. What has begun to be
// cut stays so, for the rest of the run or the day: otherwise short lines would
// slip in between.
func (s *LogAppender) withinLimits(t *logTail, fresh []domain.LogLine, used, today int64) (kept int, bytes, reason int64) {
	limits := s.logLimits
	if len(t.rows) > 0 {
		switch end := t.rows[0]; {
		case end.beyond() == CutByRun && (limits.RunLines > 0 || limits.RunBytes > 0):
			return 0, 0, CutByRun
		case end.beyond() == CutByDay && limits.TenantDayBytes > 0 && DayOf(db.Instant(end.lastAt)) == today:
			return 0, 0, CutByDay
		}
	}
	for i := range fresh {
		size := int64(logchunk.Size(&fresh[i]))
		switch {
		case limits.RunLines > 0 && t.runLines+int64(i) >= limits.RunLines, limits.RunBytes > 0 && t.runBytes+bytes+size > limits.RunBytes:
			return i, bytes, CutByRun
		case limits.TenantDayBytes > 0 && used+bytes+size > limits.TenantDayBytes:
			return i, bytes, CutByDay
		}
		bytes += size
	}
	return len(fresh), bytes, 0
}

// growKept makes chunks of the lines and of small ones before them.
func (s *LogAppender) growKept(ctx context.Context, g *logGrowth, fresh []domain.LogLine, bytes int64) error {
	lines, before := fresh, *g.tail
	if n := g.tail.mergeable(bytes); n > 0 {
		old, err := s.linesFrom(ctx, g.key, g.tail.rows[n-1].firstLine, fresh[0].Number)
		if err != nil {
			return err
		}
		lines = append(old, fresh...)
		g.replaced = n
		for _, r := range g.tail.rows[:n] {
			before.runLines, before.runBytes = before.runLines-r.lineCount, before.runBytes-r.rawBytes
		}
	}
	for _, part := range logchunk.Split(lines) {
		r := g.chunk(part)
		before.runLines, before.runBytes = before.runLines+r.lineCount, before.runBytes+r.rawBytes
		r.runLines, r.runBytes = before.runLines, before.runBytes
		g.rows = append(g.rows, r)
	}
	g.tail.runLines, g.tail.runBytes = before.runLines, before.runBytes
	return nil
}

// chunk makes a row of lines. The sums of the run are not set.
func (g *logGrowth) chunk(lines []domain.LogLine) *logChunkRow {
	body, sum := logchunk.Encode(lines)
	return &logChunkRow{
		tenantID: int64(g.key.Tenant), executionID: int64(g.key.Execution), attempt: int64(g.key.Attempt),
		firstLine: sum.FirstLine, lastLine: sum.LastLine, lineCount: int64(sum.Lines), rawBytes: int64(sum.Bytes), bodyBytes: int64(len(body)),
		firstAt: db.Millis(sum.FirstAt), lastAt: db.Millis(sum.LastAt), levels: int64(sum.Levels), format: logchunk.Format,
		aid: string(sum.Aid), body: string(body),
	}
}

// growBeyond takes lines over a limit: the newest are kept as the end of the log,
// and the others are counted in the row before it. Both rows replace those that
// stand at the end for the same limit.
func (s *LogAppender) growBeyond(ctx context.Context, g *logGrowth, lines []domain.LogLine, reason int64) error {
	bound, now := tailOf[reason], db.Millis(time.Now())
	var old *logChunkRow // counts the lines that are missing so far
	before := int64(0)   // the last line in front of these
	if len(g.rows) > 0 {
		before = g.rows[len(g.rows)-1].lastLine
	} else {
		rows := g.tail.rows
		for g.replaced < len(rows) && rows[g.replaced].cut == bound.mark {
			g.replaced++
		}
		if g.replaced > 0 {
			held, err := s.linesFrom(ctx, g.key, rows[g.replaced-1].firstLine, lines[0].Number)
			if err != nil {
				return err
			}
			lines = append(held, lines...)
		}
		if g.replaced < len(rows) {
			before = rows[g.replaced].lastLine
			if rows[g.replaced].cut == reason {
				old = &rows[g.replaced]
				g.replaced++
			}
		}
	}
	gone, kept := splitTail(lines, bound.lines, bound.bytes)
	if old != nil || len(gone) > 0 {
		r := &logChunkRow{
			tenantID: int64(g.key.Tenant), executionID: int64(g.key.Execution), attempt: int64(g.key.Attempt),
			firstLine: before + 1, lastLine: before, lastAt: now,
			levels: int64(logchunk.AllLevels), cut: reason, runLines: g.tail.runLines, runBytes: g.tail.runBytes,
		}
		if old != nil {
			r.firstLine, r.firstAt, r.dropped = old.firstLine, old.firstAt, old.dropped
		} else {
			r.firstAt = db.Millis(gone[0].At)
		}
		if len(gone) > 0 {
			// The numbers that the executor dropped in between count too: the lines
			// that tell about them are among those that are gone.
			r.lastLine = gone[len(gone)-1].Number
			r.dropped = r.lastLine - r.firstLine + 1
		}
		g.rows = append(g.rows, r)
	}
	for _, part := range logchunk.Split(kept) {
		r := g.chunk(part)
		r.cut, r.lastAt, r.runLines, r.runBytes = bound.mark, now, g.tail.runLines, g.tail.runBytes
		g.rows = append(g.rows, r)
	}
	return nil
}

// splitTail cuts off the newest lines, up to so many lines and bytes, and at
// least one.
func splitTail(lines []domain.LogLine, most, bytes int) (gone, kept []domain.LogLine) {
	from := len(lines) - 1
	bytes -= logchunk.Size(&lines[from])
	for from > 0 && len(lines)-from < most {
		if bytes -= logchunk.Size(&lines[from-1]); bytes < 0 {
			break
		}
		from--
	}
	return lines[:from], lines[from:]
}

// linesFrom reads the stored lines from one number up to another.
func (s *LogAppender) linesFrom(ctx context.Context, k AttemptKey, first, end int64) (lines []domain.LogLine, err error) {
	err = db.Query(ctx, s.Lookup, func(rows *sql.Rows) error {
		var body sql.RawBytes
		var format int
		if err := rows.Scan(&body, &format); err != nil {
			return err
		}
		more, err := logchunk.Decode(body, format, k.Attempt)
		lines = append(lines, more...)
		return err
	}, "SELECT body, format FROM log_chunks WHERE "+k.Where()+" AND first_line >= ? AND first_line < ? ORDER BY first_line", first, end)
	return lines, err
}

// write carries the plan out if the ends of the logs are still as they were.
func (p *logPlan) write(t *db.Tx) error {
	if err := p.verify(t); err != nil {
		return err
	}
	var terms []string
	var gone int64
	var rows []*logChunkRow
	for _, g := range p.tails {
		if g.replaced > 0 {
			terms = append(terms, fmt.Sprintf("(%s AND first_line >= %d)", g.key.Where(), g.tail.rows[g.replaced-1].firstLine))
			gone += int64(g.replaced)
		}
		rows = append(rows, g.rows...)
	}
	for part := range slices.Chunk(terms, 100) {
		n, err := t.Exec(t.Ctx, "DELETE FROM log_chunks WHERE "+strings.Join(part, " OR "))
		if err != nil {
			return fmt.Errorf("replace log chunks: %w", err)
		}
		gone -= n
	}
	if gone != 0 {
		return errLogMoved
	}
	if err := logChunkTable.Insert(t, rows); err != nil {
		return fmt.Errorf("insert log chunks: %w", err)
	}
	return CountLogs(t, p.change)
}

// verify locks the last chunk of each log, so that others who append to it
// wait, and looks that nothing stands behind it.
func (p *logPlan) verify(t *db.Tx) error {
	ends := map[AttemptKey]int64{}
	var terms []string
	for _, g := range p.tails {
		if len(g.tail.rows) > 0 {
			terms = append(terms, fmt.Sprintf("(%s AND first_line >= %d)", g.key.Where(), g.tail.rows[0].firstLine))
		}
	}
	for part := range slices.Chunk(terms, 100) {
		err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
			var k AttemptKey
			var last int64
			err := rows.Scan(&k.Tenant, &k.Execution, &k.Attempt, &last)
			ends[k] = max(ends[k], last)
			return err
		}, "SELECT tenant_id, execution_id, attempt, last_line FROM log_chunks"+t.Dialect.ByPrimary()+" WHERE "+strings.Join(part, " OR ")+t.Dialect.ForUpdate())
		if err != nil {
			return fmt.Errorf("lock log ends: %w", err)
		}
	}
	for _, g := range p.tails {
		if ends[g.key] != g.tail.lastLine() {
			return errLogMoved
		}
	}
	return nil
}
