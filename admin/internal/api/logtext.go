package api

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// downloadPage is how many lines are in memory at once.
const downloadPage = 2000

// downloadLog streams the log. An error in the middle ends the text with a
// line that says so: the status is out already.
func (a *API) downloadLog(ctx context.Context, id auth.Identity, in *idInput) (*huma.StreamResponse, error) {
	v, err := a.run(ctx, id, in.ID)
	if err != nil {
		return nil, err
	}
	segments, _, err := a.segments(ctx, v, 0)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "text/plain; charset=utf-8")
		hc.SetHeader("Content-Disposition", `attachment; filename="run-`+v.ID.String()+`.log"`)
		w := bufio.NewWriterSize(hc.BodyWriter(), 32<<10)
		if err := a.writeLog(hc.Context(), w, v, segments); err != nil && hc.Context().Err() == nil {
			a.log.Error("log download broke off", "execution_id", v.ID, "request_id", requestOf(ctx).id, "err", err)
			fmt.Fprintf(w, "\n-- the log breaks off here; the server's log has the reason under request id %s\n", requestOf(ctx).id)
		}
		_ = w.Flush() // an error means that the client has gone
	}}, nil
}

func (a *API) writeLog(ctx context.Context, w *bufio.Writer, v store.ExecutionView, segments []segment) error {
	fmt.Fprintf(w, "-- run %s of job %q, planned for %s, state %s\n", v.ID, v.JobName, instant(v.FireAt), v.State)
	for _, s := range segments {
		if len(segments) > 1 {
			fmt.Fprintf(w, "-- attempt %d\n", s.attempt)
		}
		for after := int64(0); after < s.last; {
			page, err := a.deps.Store.ReadLog(ctx, store.ReadLogParams{
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
	fmt.Fprintf(w, "%s %-5s %s%s\n", instant(l.At), slog.Level(l.Level), printable(l.Message), attrs)
}

func printable(s string) string {
	if !hasControl(s) {
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
