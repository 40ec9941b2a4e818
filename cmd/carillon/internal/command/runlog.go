package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/client"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
)

func (a *App) runLogs() *cobra.Command {
	var q client.LogQuery
	var follow bool
	cmd := &cobra.Command{
		Use: "logs RUN", Aliases: []string{"log"}, Short: "Print a run's log", Args: cobra.ExactArgs(1),
		Long: `Prints what the handler logged, one line each: time, level, message, attributes.
With -o json one JSON object per line, as the API has it.`,
		Example: "  carillon run logs 7301 --follow\n  carillon run logs 7301 --last 50 -f\n  carillon run logs 7301 --level WARN -o json | jq .msg",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			if q.Last < 0 || q.Last > maxLast {
				return fmt.Errorf("--last %d: must be from 1 to %d", q.Last, maxLast)
			}
			if follow {
				q.Wait = logWait
			}
			return a.followLog(cmd.Context(), s, args[0], &q)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&follow, "follow", "f", false, "go on until the run has ended")
	flags.IntVar(&q.Last, "last", 0, "only the last so many lines, and what comes after them with --follow (0 = from the beginning)")
	flags.IntVar(&q.Attempt, "attempt", 0, "only this attempt (0 = all)")
	choiceFlag(cmd, &q.Level, "level", "", []string{"DEBUG", "INFO", "WARN", "ERROR"}, "this level and above: DEBUG, INFO, WARN or ERROR")
	flags.StringVarP(&q.Text, "query", "q", "", "only lines with this text")
	return cmd
}

// maxLast is how many lines the server gives in one piece.
const maxLast = 5000

// followLog prints a log. With q.Wait it goes on until no line can come any
// more; without, until the lines stored so far are printed.
func (a *App) followLog(ctx context.Context, s *session, id string, q *client.LogQuery) error {
	for {
		before := q.After
		page, err := retried(ctx, func() (client.LogPage, error) { return s.Log(ctx, id, q) })
		if err != nil {
			return err
		}
		if err := writeLines(a.out, s.Format, page.Lines); err != nil {
			return err
		}
		atEnd := len(page.Lines) == 0 && q.After == before || page.LastLine > 0 && q.After >= page.LastLine
		if page.Complete && atEnd || q.Wait == 0 && atEnd {
			if text := incomplete(page); text != "" {
				a.say("%s", text)
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
func incomplete(page client.LogPage) string {
	if page.Counts == nil || len(page.Counts.Missing) == 0 {
		if page.Truncated {
			return "Some lines are missing: the handler wrote more than is kept."
		}
		return ""
	}
	out := fmt.Sprintf("%d of %d lines", page.Counts.Kept, page.Counts.Written)
	for _, m := range page.Counts.Missing {
		why := whyMissing[m.Why]
		if why == "" {
			why = m.Why
		}
		out += fmt.Sprintf("; %d missing: %s", m.Lines, why)
	}
	return out + "."
}

func writeLines(w io.Writer, format output.Format, lines []client.Doc[client.LogLine]) error {
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
