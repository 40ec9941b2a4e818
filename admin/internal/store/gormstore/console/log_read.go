package console

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/logchunk"
)

// LogEnd implements store.Logs.
func (s *Logs) LogEnd(ctx context.Context, tenant domain.TenantID, execution domain.ExecutionID) (attempt int, line int64, err error) {
	err = s.LookRows(ctx, "find log end", func(rows *sql.Rows) error { return rows.Scan(&attempt, &line) },
		"SELECT attempt, last_line FROM log_chunks WHERE tenant_id = ? AND execution_id = ? ORDER BY attempt DESC, first_line DESC LIMIT 1",
		int64(tenant), int64(execution))
	return attempt, line, err
}

// CountLog implements store.Logs. It reads the summaries of all chunks, which is
// for logs that have ended.
func (s *Logs) CountLog(ctx context.Context, tenant domain.TenantID, execution domain.ExecutionID) (list []store.LogCount, err error) {
	cut := func(why int64) string { return fmt.Sprintf("SUM(CASE WHEN cut = %d THEN dropped ELSE 0 END)", why) }
	return db.LookSelect(ctx, s.DB, "count log lines", func(c *store.LogCount) []any {
		return []any{&c.Attempt, &c.LastLine, &c.Kept, &c.CutByRun, &c.CutByDay}
	}, "SELECT attempt, MAX(last_line), SUM(line_count), "+cut(engine.CutByRun)+", "+cut(engine.CutByDay)+
		" FROM log_chunks WHERE tenant_id = ? AND execution_id = ? GROUP BY attempt ORDER BY attempt",
		int64(tenant), int64(execution))
}

const (
	// maxLogRead bounds what one ReadLog inflates while it looks for matching
	// lines, in bytes of text: about 50 ms.
	maxLogRead = 16 << 20
	// summaryPage is how many chunks one statement looks at for matching lines,
	// bodyPage how many are inflated, and looked at when all lines match.
	summaryPage = 256
	bodyPage    = 16
)

// ReadLog implements store.Logs: it walks over the chunks' summaries and
// inflates those that may have a line that is asked for.
func (s *Logs) ReadLog(ctx context.Context, p store.ReadLogParams) (store.LogPage, error) {
	ctx, cancel := db.WithDeadline(ctx)
	defer cancel()
	if p.Limit <= 0 {
		p.Limit = 1000
	}
	level := math.MinInt
	if p.MinLevel != nil {
		level = *p.MinLevel
	}
	r := &logReader{p: p, key: engine.AttemptKey{Tenant: p.Tenant, Execution: p.Execution, Attempt: p.Attempt}, filter: logchunk.NewFilter(level, p.Text)}
	r.choosy = p.MinLevel != nil || p.Text != ""
	err := s.readLog(ctx, r)
	if err != nil && db.IsTransient(err) && ctx.Err() == nil {
		r.page, r.done, r.size = store.LogPage{}, false, 0
		err = s.readLog(ctx, r)
	}
	return r.page, db.Translate("read log", err)
}

// readLog sees the log as it was in one moment: an append may put chunks
// together, and who looked for the first of them before and for the others
// afterwards would miss lines. Who follows a log asks often for nothing, which
// takes no more than one statement.
func (s *Logs) readLog(ctx context.Context, r *logReader) error {
	if r.p.After > 0 && !r.backward() {
		if err := r.end(ctx, s.Lookup); err != nil || r.page.LastLine <= r.p.After {
			r.page.Reached = r.p.After
			return err
		}
	}
	return s.InSnapshot(ctx, func(q db.Querier) error {
		r.q = q
		return r.read(ctx)
	})
}

// logReader reads one page.
type logReader struct {
	q      db.Querier // a snapshot
	p      store.ReadLogParams
	key    engine.AttemptKey
	filter logchunk.Filter
	choosy bool // not all lines match
	page   store.LogPage
	size   int  // of the page's lines, in bytes
	done   bool // the page is full
}

// summary is a chunk without its body.
type summary struct {
	first, last, lines, raw, firstAt, dropped, cut int64
	levels                                         logchunk.Levels
	format                                         int
	aid                                            []byte
}

func (r *logReader) backward() bool { return r.p.Before > 0 }

// end reads the number of the last line.
func (r *logReader) end(ctx context.Context, q db.Querier) error {
	return db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&r.page.LastLine) },
		"SELECT last_line FROM log_chunks WHERE "+r.key.Where()+" ORDER BY first_line DESC LIMIT 1")
}

func (r *logReader) read(ctx context.Context) error {
	if err := r.end(ctx, r.q); err != nil {
		return err
	}
	r.page.Reached = r.p.After
	if r.backward() {
		r.page.Reached = r.p.Before
	} else if r.page.LastLine <= r.p.After {
		return nil
	}
	from, err := r.start(ctx)
	if err != nil {
		return err
	}
	for !r.done {
		list, err := r.summaries(ctx, from)
		if err != nil {
			return err
		}
		if err := r.readAll(ctx, list); err != nil {
			return err
		}
		if len(list) < r.pageSize() {
			break
		}
		from = list[len(list)-1].first
		if !r.backward() {
			from++
		}
	}
	if r.backward() {
		slices.Reverse(r.page.Lines)
	}
	if !r.done { // to the end; a hole may be there
		r.page.Reached = r.page.LastLine
		if r.backward() {
			r.page.Reached = 0
		}
	}
	return nil
}

// start returns where the walk begins: forward at the chunk that may have the
// line after the cursor, backward before the cursor.
func (r *logReader) start(ctx context.Context) (from int64, err error) {
	if r.backward() {
		return r.p.Before, nil
	}
	var found sql.NullInt64
	err = db.Query(ctx, r.q, func(rows *sql.Rows) error { return rows.Scan(&found) },
		"SELECT MAX(first_line) FROM log_chunks WHERE "+r.key.Where()+" AND first_line <= ?", r.p.After+1)
	return found.Int64, err
}

func (r *logReader) summaries(ctx context.Context, from int64) (list []summary, err error) {
	aid, order := "NULL", " AND first_line >= ? ORDER BY first_line"
	if r.filter.NeedsAid() {
		aid = "aid"
	}
	if r.backward() {
		order = " AND first_line < ? ORDER BY first_line DESC"
	}
	return db.Select(ctx, r.q, func(m *summary) []any {
		return []any{&m.first, &m.last, &m.lines, &m.raw, &m.firstAt, &m.dropped, &m.cut, &m.levels, &m.format, &m.aid}
	}, "SELECT first_line, last_line, line_count, raw_bytes, first_at, dropped, cut, levels, format, "+aid+
		" FROM log_chunks WHERE "+r.key.Where()+order+" LIMIT "+strconv.Itoa(r.pageSize()), from)
}

func (r *logReader) pageSize() int {
	if r.choosy {
		return summaryPage
	}
	return bodyPage
}

// readAll goes through chunks in the order of the walk until the page is full.
func (r *logReader) readAll(ctx context.Context, list []summary) error {
	for len(list) > 0 && !r.done {
		n, wanted := r.next(list)
		bodies, err := r.bodies(ctx, wanted)
		if err != nil {
			return err
		}
		for i := range list[:n] {
			m := &list[i]
			lines, ok := bodies[m.first]
			if m.missing() {
				lines, ok = []domain.LogLine{m.cutLine(r.p.Attempt)}, true
			}
			if ok {
				r.take(lines)
			}
			if r.done {
				return nil
			}
			r.reach(m)
		}
		list = list[n:]
		if r.choosy && r.page.Read >= maxLogRead {
			r.done = true
		}
	}
	return nil
}

// next returns how many chunks are dealt with now, and which of them are inflated.
func (r *logReader) next(list []summary) (n int, wanted []int64) {
	expected, bytes := int64(len(r.page.Lines)), int64(r.size)
	for n < len(list) && len(wanted) < bodyPage {
		m := &list[n]
		n++
		if !m.missing() && (!r.choosy || r.filter.MayHold(m.levels, m.aid, m.format)) {
			wanted = append(wanted, m.first)
			expected, bytes = expected+m.lines, bytes+m.raw
			if !r.choosy && (expected >= int64(r.p.Limit) || bytes >= domain.MaxPageBytes) {
				break
			}
		}
	}
	return n, wanted
}

func (r *logReader) bodies(ctx context.Context, first []int64) (map[int64][]domain.LogLine, error) {
	out := make(map[int64][]domain.LogLine, len(first))
	if len(first) == 0 {
		return out, nil
	}
	err := db.Query(ctx, r.q, func(rows *sql.Rows) error {
		var at, raw int64
		var format int
		var body sql.RawBytes
		if err := rows.Scan(&at, &raw, &format, &body); err != nil {
			return err
		}
		lines, err := logchunk.Find(body, format, r.p.Attempt, &r.filter)
		out[at] = lines
		r.page.Read += int(max(raw, int64(len(body))))
		return err
	}, "SELECT first_line, raw_bytes, format, body FROM log_chunks WHERE "+r.key.Where()+" AND first_line IN ("+db.IDList(first)+")")
	return out, err
}

// take adds the lines of one chunk that are asked for.
func (r *logReader) take(lines []domain.LogLine) {
	if r.backward() {
		slices.Reverse(lines)
	}
	for i := range lines {
		l := &lines[i]
		if r.backward() && l.Number >= r.p.Before || !r.backward() && l.Number <= r.p.After {
			continue
		}
		if !r.filter.Match(l) {
			continue
		}
		r.page.Lines = append(r.page.Lines, *l)
		r.size += len(l.Message) + len(l.Attrs)
		if len(r.page.Lines) == r.p.Limit || r.size >= domain.MaxPageBytes {
			r.page.Reached, r.done = l.Number, true
			return
		}
	}
}

// reach notes that a chunk has been dealt with.
func (r *logReader) reach(m *summary) {
	if r.backward() {
		r.page.Reached = min(r.page.Reached, m.first)
	} else {
		r.page.Reached = max(r.page.Reached, m.last)
	}
}

// missing reports whether the row stands for lines that were not kept.
func (m *summary) missing() bool { return m.cut != 0 && m.lines == 0 }

// cutLine is the line that stands for those that were not kept.
func (m *summary) cutLine(attempt int) domain.LogLine {
	why := "the run's log is over its limit"
	if m.cut == engine.CutByDay {
		why = "the tenant's logs are over their limit for a day"
	}
	return domain.LogLine{
		Number: m.first, Attempt: attempt, At: db.Instant(m.firstAt), Level: 4,
		Message: fmt.Sprintf("… %s lines dropped: %s", thousands(m.dropped), why), Attrs: fmt.Appendf(nil, `{"dropped":%d}`, m.dropped),
	}
}

// thousands writes 12345 as 12,345.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}
