package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// LogLine is one line that a handler wrote.
type LogLine struct {
	N       int64           `json:"n" doc:"From 1; counts on over the attempts unless one was asked for"`
	At      string          `json:"at" format:"date-time" doc:"When it was written, by the executor's clock"`
	Attempt int             `json:"attempt" doc:"Number of the attempt that wrote it"`
	Level   string          `json:"level" doc:"DEBUG, INFO, WARN, ERROR, or between them such as INFO+2"`
	Msg     string          `json:"msg" doc:"The message"`
	Attrs   json.RawMessage `json:"attrs,omitempty" doc:"JSON object"`
	TraceID string          `json:"traceId,omitempty" doc:"Of the span that the line was written in"`
}

// LogPage is a piece of a run's log.
type LogPage struct {
	Lines     []LogLine  `json:"lines" doc:"The lines, by number"`
	LastLine  int64      `json:"lastLine" doc:"Number of the last line stored so far; 0 when there is none"`
	Next      int64      `json:"next" doc:"Give it as after to go on; beyond the last of lines when a filter left some out"`
	Prev      int64      `json:"prev" doc:"With before: give it as before to go on; 0 when nothing comes before these"`
	Complete  bool       `json:"complete" doc:"No further line can come after these"`
	Truncated bool       `json:"truncated" doc:"Lines are missing: the executor wrote more than was kept or arrived"`
	Counts    *LogCounts `json:"counts" doc:"How many lines there are, and why others are missing; null as long as lines can still come, and in a page that does not reach the end"`
}

// LogCounts tells whether a log that has ended is whole.
type LogCounts struct {
	Written int64        `json:"written" doc:"Lines that were written"`
	Kept    int64        `json:"kept" doc:"Lines that are there"`
	Missing []LogMissing `json:"missing" doc:"Why the others are not; empty when none is missing"`
}

// LogMissing counts lines that are not there.
type LogMissing struct {
	Lines int64  `json:"lines" doc:"How many"`
	Why   string `json:"why" enum:"executor,run_limit,day_limit,lost,expired" doc:"executor: they came faster than they could be stored, and the executor dropped them. run_limit: the run's log is over its limit. day_limit: the tenant's logs are over their limit for a day. lost: they never arrived. expired: they were deleted, since logs that old are not kept or the tenant's logs take too much room"`
}

type logInput struct {
	ID      string `path:"id" doc:"Id of what the address names, a decimal string"`
	Attempt int    `query:"attempt" minimum:"0" doc:"Only this attempt; default: all"`
	After   int64  `query:"after" minimum:"0" doc:"Lines with higher numbers"`
	Before  int64  `query:"before" minimum:"0" doc:"The last lines with lower numbers, instead of after; a number beyond the last line gives the log's end"`
	Limit   int    `query:"limit" minimum:"1" maximum:"5000" default:"1000" doc:"Lines, at most"`
	Wait    string `query:"wait" doc:"Wait this long for a line, at most 30s; default: answer at once"`
	Level   string `query:"level" enum:"DEBUG,INFO,WARN,ERROR" doc:"This level and above"`
	Q       string `query:"q" maxLength:"256" doc:"Part of message, attributes or trace id, in any case"`
}

const (
	maxLogWait = 30 * time.Second
	// pollPause is how often one looks whether the log has grown while somebody
	// waits for lines, a lookup by primary key in the database, which all nodes
	// share; each fullEvery of them the run is read too, which may have ended.
	pollPause = 200 * time.Millisecond
	fullEvery = 5
	// lateLines is how long after its end an attempt's last lines may take,
	// when their number is not known.
	lateLines = 10 * time.Second
	// maxScan bounds what one request reads to find matching lines, in bytes.
	maxScan = 16 << 20
)

// logs are read by pages, followed and downloaded.
type logs struct {
	// fixed after construction
	store interface {
		store.Logs
		store.Runs
	}
	now func() time.Time
	log *slog.Logger
}

func (ls *logs) register(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/runs/{id}/log", ID: "get-run-log", Large: true, Tag: "runs", Summary: "A piece of a run's log",
		Description: "To follow it, ask again with after set to next and wait set, until complete. " +
			"To find the next line with a text, ask with q and limit 1, and again with after set to next while next is below lastLine: a request looks at a part of a long log.",
	}, ls.readLog)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/runs/{id}/log/download", ID: "download-run-log", Tag: "runs",
		Summary:     "A run's whole log as text",
		Description: "Streamed, all attempts one after the other. If it cannot be read to its end, the last line says so.", Produces: "text/plain",
	}, ls.downloadLog)
}

func (ls *logs) readLog(ctx context.Context, id auth.Identity, in *logInput) (*struct{ Body LogPage }, error) {
	var r reader
	wait := r.Duration("query.wait", in.Wait, 0)
	if wait < 0 || wait > maxLogWait {
		r.Fail("query.wait", in.Wait, "must be from 0s to 30s")
	}
	if in.Before > 0 && (in.After > 0 || wait > 0) {
		r.Fail("query.before", in.Before, "goes back from a line: leave out after and wait")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(wait)
	for {
		var end logEnd
		if wait > 0 { // before the page, so that nothing comes in between
			var err error
			if end, err = ls.logEnd(ctx, id, in.ID); err != nil {
				return nil, err
			}
		}
		page, err := ls.logPage(ctx, id, in)
		if err != nil {
			return nil, err
		}
		left := time.Until(deadline)
		if len(page.Lines) > 0 || page.Complete || page.Next < page.LastLine || left <= 0 {
			return &struct{ Body LogPage }{page}, nil
		}
		in.After = page.Next // what a filter left out is not read again
		if err := ls.awaitLines(ctx, id, in.ID, end, left); err != nil {
			return nil, err
		}
		if err := web.StillAllowed(ctx); err != nil {
			return nil, err
		}
	}
}

// logEnd is where a run's log ends.
type logEnd struct {
	attempt int
	line    int64
}

// logEnd says where the log of a run of the caller's tenant ends; of another
// run it is empty.
func (ls *logs) logEnd(ctx context.Context, id auth.Identity, run string) (end logEnd, err error) {
	number, err := strconv.ParseInt(run, 10, 64)
	if err != nil {
		return logEnd{}, nil // whoever reads the run says what is wrong
	}
	end.attempt, end.line, err = ls.store.LogEnd(ctx, id.Tenant, domain.ExecutionID(number))
	return end, err
}

// awaitLines returns when the log does not end there any more, and at the
// latest when the run has to be looked at.
func (ls *logs) awaitLines(ctx context.Context, id auth.Identity, run string, end logEnd, left time.Duration) error {
	for range fullEvery {
		pause := time.NewTimer(min(pollPause, left))
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
		if left -= pollPause; left <= 0 {
			return nil
		}
		if now, err := ls.logEnd(ctx, id, run); err != nil || now != end {
			return err
		}
	}
	return nil
}

// downloadPage is how many lines are in memory at once.
const downloadPage = 2000

// downloadLog streams the log. An error in the middle ends the text with a
// line that says so: the status is out already.
func (ls *logs) downloadLog(ctx context.Context, id auth.Identity, in *web.IDInput) (*huma.StreamResponse, error) {
	v, err := web.ByID(ctx, id.Tenant, in.ID, ls.store.FindExecution)
	if err != nil {
		return nil, err
	}
	segments, _, err := ls.segments(ctx, v, 0)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "text/plain; charset=utf-8")
		hc.SetHeader("Content-Disposition", `attachment; filename="run-`+v.ID.String()+`.log"`)
		w := bufio.NewWriterSize(hc.BodyWriter(), 32<<10)
		if err := ls.writeLog(hc.Context(), w, v, segments); err != nil && hc.Context().Err() == nil {
			ls.log.Error("log download broke off", "execution_id", v.ID, "request_id", web.RequestOf(ctx).ID, "err", err)
			fmt.Fprintf(w, "\n-- the log breaks off here; the server's log has the reason under request id %s\n", web.RequestOf(ctx).ID)
		}
		_ = w.Flush() // an error means that the client has gone
	}}, nil
}

func (ls *logs) writeLog(ctx context.Context, w *bufio.Writer, v store.ExecutionView, segments []segment) error {
	fmt.Fprintf(w, "-- run %s of job %q, planned for %s, state %s\n", v.ID, v.JobName, web.Instant(v.FireAt), v.State)
	for _, s := range segments {
		if len(segments) > 1 {
			fmt.Fprintf(w, "-- attempt %d\n", s.attempt)
		}
		for after := int64(0); after < s.last; {
			page, err := ls.store.ReadLog(ctx, store.ReadLogParams{
				Tenant: v.TenantID, Execution: v.ID, Attempt: s.attempt, After: after, Limit: downloadPage,
			})
			if err != nil {
				return err
			}
			if len(page.Lines) == 0 {
				break
			}
			for _, l := range page.Lines {
				writeLine(w, l)
				after = l.Number
			}
			if err := w.Flush(); err != nil {
				return err // the client has gone
			}
		}
	}
	return nil
}

// writeLine writes one line for people. Control characters of the handler's
// text are shown as escapes, so that a terminal which shows the file does not
// obey them; further lines of one message are set in.
func writeLine(w *bufio.Writer, l domain.LogLine) {
	attrs := ""
	if len(l.Attrs) > 0 {
		attrs = " " + printable(string(l.Attrs))
	}
	fmt.Fprintf(w, "%s %-5s %s%s\n", web.Instant(l.At), slog.Level(l.Level), printable(l.Message), attrs)
}

func printable(s string) string {
	if !domain.HasControl(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString("\n\t")
		case r == '\t':
			b.WriteByte('\t')
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
