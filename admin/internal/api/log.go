package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// LogLine is one line that a handler wrote.
type LogLine struct {
	N       int64           `json:"n" doc:"From 1; counts on over the attempts unless one was asked for"`
	At      string          `json:"at" format:"date-time"`
	Attempt int             `json:"attempt"`
	Level   string          `json:"level" doc:"DEBUG, INFO, WARN, ERROR, or between them such as INFO+2"`
	Msg     string          `json:"msg"`
	Attrs   json.RawMessage `json:"attrs,omitempty" doc:"JSON object"`
}

// LogPage is a piece of a run's log.
type LogPage struct {
	Lines     []LogLine `json:"lines"`
	LastLine  int64     `json:"lastLine" doc:"Number of the last line stored so far; 0 when there is none"`
	Next      int64     `json:"next" doc:"Give it as after to go on; beyond the last of lines when a filter left some out"`
	Complete  bool      `json:"complete" doc:"No further line can come after these"`
	Truncated bool      `json:"truncated" doc:"Lines are missing: the executor wrote more than was kept or arrived"`
}

type logInput struct {
	ID      string `path:"id"`
	Attempt int    `query:"attempt" minimum:"0" doc:"Only this attempt; default: all"`
	After   int64  `query:"after" minimum:"0" doc:"Lines with higher numbers"`
	Limit   int    `query:"limit" minimum:"1" maximum:"5000" default:"1000"`
	Wait    string `query:"wait" doc:"Wait this long for a line, at most 30s; default: answer at once"`
	Level   string `query:"level" enum:"DEBUG,INFO,WARN,ERROR" doc:"This level and above"`
	Q       string `query:"q" maxLength:"256" doc:"Part of message or attributes, in any case"`
}

const (
	maxLogWait = 30 * time.Second
	// pollPause is how often the log is read while somebody waits for lines.
	pollPause = 250 * time.Millisecond
	// lateLines is how long after its end an attempt's last lines may take,
	// when their number is not known.
	lateLines = 10 * time.Second
	// maxScan bounds the lines that one request reads to find matching ones.
	maxScan = 20_000
)

func (a *API) registerLogs() {
	register(a, may(domain.PermRead), operation{
		method: http.MethodGet, path: base + "/runs/{id}/log", id: "get-run-log", tag: "runs", summary: "A piece of a run's log",
		description: "To follow it, ask again with after set to next and wait set, until complete.",
	}, a.readLog)
	register(a, may(domain.PermRead), operation{
		method: http.MethodGet, path: base + "/runs/{id}/log/download", id: "download-run-log", tag: "runs",
		summary: "A run's whole log as text", produces: "text/plain",
	}, a.downloadLog)
}

// logFilter decides which lines are shown.
type logFilter struct {
	level slog.Level
	text  string // lower case
}

func newLogFilter(level, text string) logFilter {
	f := logFilter{level: slog.Level(-1 << 15), text: strings.ToLower(text)}
	if level != "" {
		_ = f.level.UnmarshalText([]byte(level)) // checked by the enum
	}
	return f
}

func (f logFilter) everything() bool { return f.text == "" && f.level == -1<<15 }

func (f logFilter) match(l domain.LogLine) bool {
	return slog.Level(l.Level) >= f.level &&
		(f.text == "" || strings.Contains(strings.ToLower(l.Message), f.text) || strings.Contains(strings.ToLower(string(l.Attrs)), f.text))
}

func (a *API) readLog(ctx context.Context, id auth.Identity, in *logInput) (*struct{ Body LogPage }, error) {
	var r reader
	wait := r.duration("query.wait", in.Wait, 0)
	if wait < 0 || wait > maxLogWait {
		r.fail("query.wait", in.Wait, "must be from 0s to 30s")
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	filter := newLogFilter(in.Level, in.Q)
	deadline := time.Now().Add(wait)
	for {
		page, err := a.logPage(ctx, id, in, filter)
		if err != nil {
			return nil, err
		}
		left := time.Until(deadline)
		if len(page.Lines) > 0 || page.Complete || page.Next < page.LastLine || left <= 0 {
			return &struct{ Body LogPage }{page}, nil
		}
		in.After = page.Next // what a filter left out is not read again
		pause := time.NewTimer(min(pollPause, left))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil, ctx.Err()
		case <-pause.C:
		}
	}
}

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
func (a *API) segments(ctx context.Context, v store.ExecutionView, only int) (list []segment, whole bool, err error) {
	archived, err := a.deps.Store.ListAttempts(ctx, v.TenantID, v.ID)
	if err != nil {
		return nil, false, err
	}
	for _, at := range archived {
		list = append(list, segment{attempt: at.Number, wrote: at.LogLines, over: true, endedAt: at.FinishedAt})
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
		page, err := a.deps.Store.ReadLog(ctx, store.ReadLogParams{
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

func (a *API) logPage(ctx context.Context, id auth.Identity, in *logInput, filter logFilter) (LogPage, error) {
	v, err := a.run(ctx, id, in.ID)
	if err != nil {
		return LogPage{}, err
	}
	segments, whole, err := a.segments(ctx, v, in.Attempt)
	if err != nil {
		return LogPage{}, err
	}
	out := LogPage{Lines: []LogLine{}, Next: in.After, Complete: whole}
	now := a.deps.Now()
	scanned := 0
	for _, s := range segments {
		settled, missing := s.settled(now)
		out.Complete = out.Complete && settled
		out.Truncated = out.Truncated || missing
		out.LastLine = s.before + s.last
		for out.Next < s.before+s.last && len(out.Lines) < in.Limit && scanned < maxScan {
			limit := in.Limit - len(out.Lines)
			if !filter.everything() {
				limit = 1000
			}
			n, err := a.readSegment(ctx, v, s, limit, filter, in.Limit, &out)
			if err != nil {
				return LogPage{}, err
			}
			scanned += n
			if n == 0 { // a hole up to the last line
				out.Next = s.before + s.last
			}
		}
	}
	out.Complete = out.Complete && out.Next >= out.LastLine
	return out, nil
}

// readSegment adds up to limit stored lines of one attempt, those that match.
func (a *API) readSegment(ctx context.Context, v store.ExecutionView, s segment, limit int, filter logFilter, most int, out *LogPage) (read int, err error) {
	page, err := a.deps.Store.ReadLog(ctx, store.ReadLogParams{
		Tenant: v.TenantID, Execution: v.ID, Attempt: s.attempt, After: max(out.Next-s.before, 0), Limit: limit,
	})
	if err != nil {
		return 0, err
	}
	for _, l := range page.Lines {
		if len(out.Lines) == most {
			break
		}
		read++
		out.Next = s.before + l.Number
		if filter.match(l) {
			out.Lines = append(out.Lines, lineOf(l, s))
		}
	}
	return read, nil
}

func lineOf(l domain.LogLine, s segment) LogLine {
	out := LogLine{
		N: s.before + l.Number, At: instant(l.At), Attempt: s.attempt, Level: slog.Level(l.Level).String(), Msg: l.Message,
	}
	if len(l.Attrs) > 0 && json.Valid(l.Attrs) {
		out.Attrs = l.Attrs
	}
	return out
}
