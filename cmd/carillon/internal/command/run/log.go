package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

func runLogs(a *cli.App) *cobra.Command {
	var q logQuery
	var follow bool
	cmd := &cobra.Command{
		Use: "logs RUN", Aliases: []string{"log"}, Short: "Print a run's log", Args: cobra.ExactArgs(1),
		Long: `Prints what the handler logged, one line each: time, level, message, attributes.
With -o json one JSON object per line, as the API has it.`,
		Example: "  carillon run logs 7301 --follow\n  carillon run logs 7301 --last 50 -f\n  carillon run logs 7301 --level WARN -o json | jq .msg",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if follow {
				q.Wait = logWait
			}
			return followLog(cmd.Context(), a, s, args[0], &q)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&follow, "follow", "f", false, "go on until the run has ended")
	cli.NumberFlag(flags, &q.last, "last", "", 0, 0, maxLast, "only the last so many lines, and what comes after them with --follow (0 = from the beginning)")
	cli.NumberFlag(flags, &q.Attempt, "attempt", "", 0, 0, 0, "only this attempt (0 = all)")
	cli.ChoiceFlag(cmd, &q.Level, "level", "", []string{"DEBUG", "INFO", "WARN", "ERROR"}, "this level and above: DEBUG, INFO, WARN or ERROR")
	flags.StringVarP(&q.Q, "query", "q", "", "only lines with this text")
	return cmd
}

// maxLast is how many lines the server gives in one piece.
const maxLast = 5000

// logQuery asks for a piece of a log. The log is read from After on, or first its
// last lines, if last is not 0.
type logQuery struct {
	apiclient.GetRunLogParams
	last int64
}

// logPage is a piece of a log with the server's bytes of each line.
type logPage struct {
	apiclient.LogPage
	Lines []apiclient.Doc[apiclient.LogLine] `json:"lines"`
}

// logEnd is beyond the last line of every log.
const logEnd = 1<<53 - 1

// readLog gets the next piece of a run's log. After is moved on in q, and last is used up.
func readLog(ctx context.Context, s *cli.Session, id string, q *logQuery) (p logPage, err error) {
	if q.last > 0 {
		return lastLines(ctx, s, id, q)
	}
	if p, err = logPiece(ctx, s, id, q.GetRunLogParams); err != nil {
		return p, err
	}
	q.After = max(q.After, p.Next)
	if n := len(p.Lines); n > 0 {
		q.After = max(q.After, p.Lines[n-1].Value.N)
	}
	return p, nil
}

// lastLines gets the last lines. The server looks at a part of a long log at a
// time.
func lastLines(ctx context.Context, s *cli.Session, id string, q *logQuery) (p logPage, err error) {
	params := apiclient.GetRunLogParams{Attempt: q.Attempt, Level: q.Level, Q: q.Q, Before: logEnd}
	for params.Before > 0 && int64(len(p.Lines)) < q.last {
		params.Limit = q.last - int64(len(p.Lines))
		more, err := logPiece(ctx, s, id, params)
		if err != nil {
			return p, err
		}
		more.Lines = append(more.Lines, p.Lines...)
		if params.Before < logEnd { // the first answer says where the log ended
			more.LastLine, more.Complete, more.Truncated, more.Counts = p.LastLine, p.Complete, p.Truncated, p.Counts
		}
		p, params.Before = more, more.Prev
	}
	q.last, q.After = 0, max(q.After, p.LastLine)
	return p, nil
}

func logPiece(ctx context.Context, s *cli.Session, id string, params apiclient.GetRunLogParams) (logPage, error) {
	d, err := s.GetRunLog(ctx, id, params)
	if err != nil {
		return logPage{}, err
	}
	page, err := apiclient.As[logPage](d)
	return page.Value, err
}

// followLog prints a log. With q.Wait it goes on until no line can come any
// more; without, until the lines stored so far are printed.
func followLog(ctx context.Context, a *cli.App, s *cli.Session, id string, q *logQuery) error {
	for {
		before := q.After
		page, err := retried(ctx, func() (logPage, error) { return readLog(ctx, s, id, q) })
		if err != nil {
			return err
		}
		if err := writeLines(a.Out, s.Format, page.Lines); err != nil {
			return err
		}
		atEnd := len(page.Lines) == 0 && q.After == before || page.LastLine > 0 && q.After >= page.LastLine
		if page.Complete && atEnd || q.Wait == "" && atEnd {
			if text := incomplete(page); text != "" {
				a.Say("%s", text)
			}
			return nil
		}
	}
}

// whyMissing says by the API's codes why lines are not there.
var whyMissing = map[string]string{
	"executor":  "they came faster than they could be stored",
	"run_limit": "the run's log is over its limit",
	"day_limit": "the tenant's logs are over their limit for a day",
	"lost":      "they never arrived",
	"expired":   "they were deleted, since logs that old are not kept or the tenant's logs take too much room",
}

// incomplete says how many lines of a log are missing, and why; "": none.
func incomplete(page logPage) string {
	if page.Counts == nil || len(page.Counts.Missing) == 0 {
		if page.Truncated {
			return "Some lines are missing: the handler wrote more than is kept."
		}
		return ""
	}
	out := fmt.Sprintf("%d of %s", page.Counts.Kept, spelling.Count(page.Counts.Written, "line", ""))
	for _, m := range page.Counts.Missing {
		why := whyMissing[m.Why]
		if why == "" {
			why = m.Why
		}
		out += fmt.Sprintf("; %d missing: %s", m.Lines, why)
	}
	return out + "."
}

func writeLines(w io.Writer, format output.Format, lines []apiclient.Doc[apiclient.LogLine]) error {
	var b bytes.Buffer
	for _, line := range lines {
		if format == output.JSON {
			if err := json.Compact(&b, line.Raw); err != nil {
				return fmt.Errorf("log line: %w", err)
			}
			b.WriteByte('\n')
			continue
		}
		l := line.Value
		fmt.Fprintf(&b, "%s %-5s %s", l.At.UTC().Format("2006-01-02T15:04:05.000Z"), output.Clean(l.Level), output.CleanLines(l.Msg))
		writeAttrs(&b, l.Attrs)
		b.WriteByte('\n')
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeAttrs writes a JSON object as key=value pairs in its own order.
func writeAttrs(b *bytes.Buffer, raw json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return
		}
		text := string(value)
		var plain string
		if json.Unmarshal(value, &plain) == nil && !strings.ContainsAny(plain, " \"=\n\t") && plain != "" {
			text = plain
		}
		fmt.Fprintf(b, " %s=%s", output.Clean(fmt.Sprint(key)), output.Clean(text))
	}
}
