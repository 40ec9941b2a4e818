package bulk

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

const (
	// poll is how often an operation is looked at, and tell how often a person hears of it.
	poll = 200 * time.Millisecond
	tell = 2 * time.Second
	// shown is how many failures are printed.
	shown = 50
)

// noun is the kind of items.
func noun(action string) string {
	if action == "retry" || action == "cancel" {
		return "run"
	}
	return "job"
}

// ask counts, asks a person unless yes, and does it.
func ask(ctx context.Context, a *cli.App, s *cli.Session, r apiclient.BulkRequest, yes bool) error {
	dry := r
	dry.DryRun = true
	found, err := s.CreateBulk(ctx, dry)
	if r.Until != nil && cli.CodeOf(err) == cli.ExitDenied {
		return fmt.Errorf("a pause with an end is an operation of the whole tenant; pause without --for and --until, and resume later: %w", err)
	}
	if err != nil {
		return err
	}
	n := found.Value.Total
	switch {
	case n == 0:
		a.Say("No %ss match.", noun(r.Action))
		return nil
	case found.Value.TotalMore:
		return cli.Fail(cli.ExitFailed, fmt.Errorf("more than %d %ss match, which is the most: narrow the selection", n, noun(r.Action)))
	case !yes:
		if err := a.Confirm(fmt.Sprintf("%s %s: %s?", r.Action, spelling.Count(n, noun(r.Action), ""), examples(found.Value.Items, n))); err != nil {
			return err
		}
	}
	r.Expected = n
	o, err := s.CreateBulk(ctx, r)
	if err != nil {
		return err
	}
	return await(ctx, a, s, o.Value)
}

// examples are the first items by the names of their jobs.
func examples(items []apiclient.BulkItem, n int64) string {
	const most = 5
	var names []string
	for _, i := range items[:min(most, len(items))] {
		names = append(names, output.Clean(i.Name))
	}
	text := strings.Join(names, ", ")
	if n > most {
		text += ", …"
	}
	return text
}

// await waits for the end of an operation, and prints it with its failures. Exit code 1: an
// item has failed, or the operation was cancelled.
func await(ctx context.Context, a *cli.App, s *cli.Session, o apiclient.BulkOperation) error {
	told := a.Now()
	for o.State == "running" {
		select {
		case <-ctx.Done():
			a.Say("It goes on: carillon bulk get %s", o.ID)
			return ctx.Err()
		case <-time.After(poll):
		}
		next, err := s.GetBulk(ctx, o.ID)
		if err != nil {
			a.Say("It goes on: carillon bulk get %s", o.ID)
			return err
		}
		o = next.Value
		if now := a.Now(); o.State == "running" && now.Sub(told) >= tell {
			a.Say("%d of %d …", o.Done+o.Skipped+o.Failed, o.Total)
			told = now
		}
	}
	if o.Failed > 0 {
		failed, err := apiclient.ListOf[apiclient.BulkItem](ctx, shown, s.ListBulkItems, o.ID, apiclient.ListBulkItemsParams{Outcome: "failed"})
		if err != nil {
			return err
		}
		for _, i := range failed {
			a.Say("%s: %s", output.Clean(strings.TrimSpace(i.Value.ID+" "+i.Value.Name)), output.Clean(i.Value.Message))
		}
		if o.Failed > shown {
			a.Say("… and %s: carillon bulk get %s -n 0", spelling.Count(o.Failed-shown, "other", ""), o.ID)
		}
	}
	if o.Skipped > 0 {
		a.Say("%s: carillon bulk get %s", spelling.Count(o.Skipped, "was skipped", "were skipped"), o.ID)
	}
	if o.Until != nil {
		a.Say("The jobs are resumed at %s. To keep them paused: carillon bulk cancel %s", output.Stamp(*o.Until), o.ResumedBy)
	}
	end, err := s.GetBulk(ctx, o.ID)
	if err := cli.PrintOne(s, view, end, err); err != nil {
		return err
	}
	if o.Failed > 0 || o.State != "done" {
		return cli.Fail(cli.ExitFailed, nil)
	}
	return nil
}
