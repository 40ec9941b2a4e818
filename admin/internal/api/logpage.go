package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// segment is one attempt's part of a run's log.
type segment struct {
	attempt int
	// before is the number of lines of earlier attempts.
	before int64
	// last is the highest line stored.
	last int64
	// wrote is how many lines the attempt wrote; -1 while unknown.
	wrote int64
	// over: the attempt has ended, at this instant.
	over    bool
	endedAt time.Time
}

// settled reports whether no further line of the segment can come, and
// whether some are missing for good.
func (s segment) settled(now time.Time) (settled, missing bool) {
	if !s.over {
		return false, false
	}
	if s.wrote >= 0 && s.last >= s.wrote {
		return true, false
	}
	late := now.Sub(s.endedAt) > lateLines
	return late, late && s.wrote > s.last
}

// segments lists the attempts whose lines are asked for. whole tells whether
// the run can have no further ones.
func (ls *logs) segments(ctx context.Context, v store.ExecutionView, only int) (list []segment, whole bool, err error) {
	attempts, err := ls.store.ListAttempts(ctx, v.TenantID, v.ID)
	if err != nil {
		return nil, false, err
	}
	for _, at := range attempts { // the last one may be the current one
		list = append(list, segment{attempt: at.Number, wrote: at.LogLines, over: at.Fence != v.Fence || !v.State.OnInstance(), endedAt: at.FinishedAt})
	}
	if v.Attempt > 0 && (len(list) == 0 || list[len(list)-1].attempt < v.Attempt) {
		list = append(list, segment{attempt: v.Attempt, wrote: v.LogLines, over: v.State.Terminal(), endedAt: v.FinishedAt})
	}
	whole = v.State.Terminal()
	if only > 0 {
		whole = only < v.Attempt || whole
		kept := list[:0]
		for _, s := range list {
			if s.attempt == only {
				kept = append(kept, s)
				whole = whole || s.over
			}
		}
		list = kept
	}
	var before int64
	for i := range list {
		s := &list[i]
		page, err := ls.store.ReadLog(ctx, store.ReadLogParams{
			Tenant: v.TenantID, Execution: v.ID, Attempt: s.attempt, After: 1<<62 - 1, Limit: 1,
		})
		if err != nil {
			return nil, false, err
		}
		s.before, s.last = before, page.LastLine
		before += s.last
	}
	return list, whole, nil
}

// logRequest reads one page.
type logRequest struct {
	logs     *logs
	in       *logInput
	run      store.ExecutionView
	segments []segment
	level    *int
	out      LogPage
	read     int // bytes
	size     int // of the lines as JSON, in bytes
}

func (ls *logs) logPage(ctx context.Context, id auth.Identity, in *logInput) (LogPage, error) {
	v, err := web.ByID(ctx, id.Tenant, in.ID, ls.store.FindExecution)
	if err != nil {
		return LogPage{}, err
	}
	q := &logRequest{logs: ls, in: in, run: v, out: LogPage{Lines: []LogLine{}, Next: in.After}}
	if in.Level != "" {
		var level slog.Level
		_ = level.UnmarshalText([]byte(in.Level)) // checked by the enum
		n := int(level)
		q.level = &n
	}
	if q.segments, q.out.Complete, err = ls.segments(ctx, v, in.Attempt); err != nil {
		return LogPage{}, err
	}
	now := ls.now()
	for _, s := range q.segments {
		settled, missing := s.settled(now)
		q.out.Complete = q.out.Complete && settled
		q.out.Truncated = q.out.Truncated || missing
		q.out.LastLine = s.before + s.last
	}
	if in.Before > 0 {
		err = q.backward(ctx)
	} else {
		err = q.forward(ctx)
		q.out.Complete = q.out.Complete && q.out.Next >= q.out.LastLine
	}
	if err == nil && q.out.Complete {
		err = q.count(ctx, now)
	}
	return q.out, err
}

// count says of a log that has ended how many lines there are, and why others
// are missing.
func (q *logRequest) count(ctx context.Context, now time.Time) error {
	list, err := q.logs.store.CountLog(ctx, q.run.TenantID, q.run.ID)
	if err != nil {
		return err
	}
	found := map[int]store.LogCount{}
	for _, c := range list {
		found[c.Attempt] = c
	}
	counts, missing := &LogCounts{Missing: []LogMissing{}}, map[string]int64{}
	for _, s := range q.segments {
		c := found[s.attempt]
		counts.Kept += c.Kept
		counts.Written += max(s.wrote, c.LastLine)
		missing["run_limit"] += c.CutByRun
		missing["day_limit"] += c.CutByDay
		missing["executor"] += c.LastLine - c.Kept - c.CutByRun - c.CutByDay
		missing[gone(s, c, now)] += max(s.wrote-c.LastLine, 0)
	}
	for _, why := range []string{"executor", "run_limit", "day_limit", "lost", "expired"} {
		if missing[why] > 0 {
			counts.Missing = append(counts.Missing, LogMissing{Lines: missing[why], Why: why})
		}
	}
	q.out.Counts, q.out.Truncated = counts, len(counts.Missing) > 0
	return nil
}

// wholeGone is after how long lines that are all gone were deleted rather than
// lost on their way.
const wholeGone = time.Hour

// gone says why the last lines of an attempt are not there.
func gone(s segment, c store.LogCount, now time.Time) string {
	if c.LastLine == 0 && now.Sub(s.endedAt) > wholeGone {
		return "expired"
	}
	return "lost"
}

// room says how many lines the page still takes.
func (q *logRequest) room() int {
	if q.read >= maxScan || q.size >= domain.MaxPageBytes {
		return 0
	}
	return q.in.Limit - len(q.out.Lines)
}

func (q *logRequest) forward(ctx context.Context) error {
	for _, s := range q.segments {
		for q.out.Next < s.before+s.last && q.room() > 0 {
			after := max(q.out.Next-s.before, 0)
			page, err := q.readSegment(ctx, s, store.ReadLogParams{After: after})
			if err != nil {
				return err
			}
			if page.Reached <= after {
				page.Reached = s.last // the log has been deleted meanwhile
			}
			for _, l := range page.Lines {
				if l.Number > s.last { // it would have a number of the next attempt
					break
				}
				q.out.Lines = append(q.out.Lines, lineOf(l, s))
				if q.size += sizeOf(&l); q.size >= domain.MaxPageBytes {
					page.Reached = l.Number
					break
				}
			}
			q.out.Next = s.before + min(page.Reached, s.last)
		}
	}
	return nil
}

func (q *logRequest) backward(ctx context.Context) error {
	q.out.Prev = min(q.in.Before, q.out.LastLine+1)
	var reversed []LogLine
	for i := len(q.segments) - 1; i >= 0; i-- {
		s := q.segments[i]
		for q.out.Prev > s.before+1 && q.room() > len(reversed) {
			page, err := q.readSegment(ctx, s, store.ReadLogParams{Before: q.out.Prev - s.before, Limit: q.room() - len(reversed)})
			if err != nil {
				return err
			}
			for k := len(page.Lines) - 1; k >= 0; k-- {
				reversed = append(reversed, lineOf(page.Lines[k], s))
				if q.size += sizeOf(&page.Lines[k]); q.size >= domain.MaxPageBytes {
					page.Reached = page.Lines[k].Number
					break
				}
			}
			q.out.Prev = s.before + max(page.Reached, 1)
		}
	}
	slices.Reverse(reversed)
	q.out.Lines = append(q.out.Lines, reversed...)
	if q.out.Prev <= 1 {
		q.out.Prev = 0
	}
	if n := len(reversed); n > 0 {
		q.out.Next = reversed[n-1].N
	}
	return nil
}

func (q *logRequest) readSegment(ctx context.Context, s segment, p store.ReadLogParams) (store.LogPage, error) {
	p.Tenant, p.Execution, p.Attempt, p.MinLevel, p.Text = q.run.TenantID, q.run.ID, s.attempt, q.level, q.in.Q
	if p.Limit == 0 {
		p.Limit = q.room()
	}
	page, err := q.logs.store.ReadLog(ctx, p)
	q.read += page.Read
	return page, err
}

// sizeOf is about how many bytes of JSON a line takes: control characters take six.
func sizeOf(l *domain.LogLine) int {
	n := 160 + len(l.Attrs)
	for i := range len(l.Message) {
		switch c := l.Message[i]; {
		case c < ' ':
			n += 6
		case c == '"' || c == '\\':
			n += 2
		default:
			n++
		}
	}
	return n
}

func lineOf(l domain.LogLine, s segment) LogLine {
	out := LogLine{
		N: s.before + l.Number, At: web.Instant(l.At), Attempt: s.attempt, Level: slog.Level(l.Level).String(), Msg: l.Message, TraceID: l.TraceID,
	}
	if len(l.Attrs) > 0 && json.Valid(l.Attrs) {
		out.Attrs = web.RawOrNull(l.Attrs)
	}
	return out
}
