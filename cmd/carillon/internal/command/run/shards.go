package run

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// partCell says what a run is to its parent.
func partCell(r apiclient.Run) string {
	switch {
	case r.Part == "":
		return ""
	case r.Shard == nil:
		return r.Part + " of " + r.ParentID
	}
	return fmt.Sprintf("shard %d of %d of %s", r.Shard.Index, r.Shard.Total, r.ParentID)
}

func shardsCell(r apiclient.Run) string {
	if r.Shards == 0 {
		return ""
	}
	return fmt.Sprintf("%d (see: carillon run shards %s)", r.Shards, r.ID)
}

func shardView(now time.Time) output.View[apiclient.Run] {
	v := runView(now)
	v.Columns = []output.Column[apiclient.Run]{
		{Title: "PART", Value: func(r apiclient.Run) string {
			if r.Shard == nil {
				return r.Part
			}
			return fmt.Sprintf("%d/%d", r.Shard.Index, r.Shard.Total)
		}},
		{Title: "STATE", Value: func(r apiclient.Run) string { return r.State }},
		{Title: "INSTANCE", Value: instanceCell, Drop: 2},
		{Title: "TRY", Value: func(r apiclient.Run) string { return fmt.Sprintf("%d/%d", r.Attempt, r.MaxAttempts) }, Drop: 5, Right: true},
		{Title: "TOOK", Value: func(r apiclient.Run) string { return output.Millis(r.DurationMs) }, Drop: 4, Right: true},
		{Title: "REASON", Value: func(r apiclient.Run) string { return r.Reason }, Drop: 3},
		{Title: "ERROR", Value: func(r apiclient.Run) string { return r.Error }, Drop: 6},
		{Title: "RUN", Value: func(r apiclient.Run) string { return r.ID }, Drop: 7},
	}
	return v
}

func runShards(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "shards RUN", Short: "List the shards of a run, and the hooks around them", Args: cobra.ExactArgs(1),
		Example: "  carillon run shards 7301\n  carillon run shards 7301 -o json | jq -r '.items[] | select(.state != \"succeeded\") | .id'",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			answer, err := s.ListRunParts(cmd.Context(), args[0], apiclient.ListRunPartsParams{Limit: 1002}) // all that there can be
			if err != nil {
				return err
			}
			parts, err := apiclient.Items[apiclient.Run](answer)
			if err != nil {
				return err
			}
			if len(parts.Items) == 0 {
				a.Say("Run %s has no shards.", args[0])
			}
			return output.List(s.Printer, shardView(a.Now()), parts.Items)
		}),
	}
}
