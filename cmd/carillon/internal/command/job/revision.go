package job

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/document"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	yaml "github.com/carillon-sched/carillon/internal/document"
)

type revision = apiclient.Doc[apiclient.Revision]

func jobRevisions(a *cli.App) *cobra.Command {
	var diff bool
	cmd := &cobra.Command{
		Use: "revisions JOB [REVISION]", Aliases: []string{"versions"}, Short: "Show a job's settings before and after its changes", Args: cobra.RangeArgs(1, 2), ValidArgsFunction: a.CompleteJobs,
		Long: `Lists the revisions of a job, the newest first, each with the fields that it changed.
With the number of a revision it writes the settings of then, as YAML. With --diff it
shows the values before and after the revision, or after the newest one.`,
		Example: "  carillon job revisions close-day\n  carillon job revisions close-day 3\n  carillon job revisions close-day 4 --diff",
		RunE: cli.About(a, cli.FindJob, func(cmd *cobra.Command, s *cli.Session, job apiclient.Doc[apiclient.Job], args []string) error {
			number := job.Value.Revision
			if len(args) == 2 {
				var err error
				if number, err = document.ReadVersion(args[1]); err != nil {
					return err
				}
			}
			all, err := revisionsOf(cmd.Context(), s, job.Value.ID)
			if err != nil || len(args) == 1 && !diff {
				return listRevisions(a, s, all, err)
			}
			at := slices.IndexFunc(all, func(r revision) bool { return r.Value.Revision == number })
			if at < 0 {
				return cli.Usagef("job %s has no revision %d: it has %d to %d", job.Value.Name, number, all[len(all)-1].Value.Revision, all[0].Value.Revision)
			}
			if !diff {
				return writeRevision(a, s, all[at])
			}
			if at+1 == len(all) {
				return cli.Usagef("there is no revision before revision %d of job %s", number, job.Value.Name)
			}
			before, after, err := sides(all[at+1], all[at])
			if err != nil {
				return err
			}
			return document.PrintChanges(a, s, "Revision", before, after)
		}),
	}
	cmd.Flags().BoolVar(&diff, "diff", false, "show the values before and after the revision")
	return cmd
}

// revisionsOf are the revisions that are kept, the newest first. There is at least one.
func revisionsOf(ctx context.Context, s *cli.Session, job string) ([]revision, error) {
	return apiclient.ListOf[apiclient.Revision](ctx, 0, s.ListRevisions, job, apiclient.ListRevisionsParams{})
}

func listRevisions(a *cli.App, s *cli.Session, all []revision, err error) error {
	changed := map[int64]string{}
	for i := range all {
		if i+1 == len(all) {
			break
		}
		before, after, wrong := sides(all[i+1], all[i])
		if wrong != nil {
			return wrong
		}
		changes, wrong := document.Changes(before.Spec, after.Spec)
		if wrong != nil {
			return wrong
		}
		paths := make([]string, len(changes))
		for n, c := range changes {
			paths[n] = c.Path
		}
		changed[all[i].Value.Revision] = strings.Join(paths, ", ")
	}
	return cli.PrintList(a, s, output.View[apiclient.Revision]{
		Name: func(r apiclient.Revision) string { return cli.Number(r.Revision) },
		Columns: []output.Column[apiclient.Revision]{
			{Title: "REVISION", Value: func(r apiclient.Revision) string { return cli.Number(r.Revision) }, Right: true},
			{Title: "WRITTEN", Value: func(r apiclient.Revision) string { return output.Stamp(r.CreatedAt) }},
			{Title: "BY", Value: func(r apiclient.Revision) string { return r.CreatedBy }},
			{Title: "CHANGED", Value: func(r apiclient.Revision) string { return changed[r.Revision] }},
		},
	}, all, err, "")
}

func writeRevision(a *cli.App, s *cli.Session, r revision) error {
	if done, err := output.Machine(s.Printer, r); done {
		return err
	}
	one, err := side(r)
	if err != nil {
		return err
	}
	return yaml.WriteYAML(a.Out, one.Spec)
}

// side is a revision as one side of a difference.
func side(r revision) (document.Side, error) {
	var parts struct{ Spec json.RawMessage }
	if err := json.Unmarshal(r.Raw, &parts); err != nil {
		return document.Side{}, fmt.Errorf("read revision %d: %w", r.Value.Revision, err)
	}
	return document.Side{Number: r.Value.Revision, At: r.Value.CreatedAt, By: r.Value.CreatedBy, Spec: parts.Spec}, nil
}

func sides(before, after revision) (a, b document.Side, err error) {
	if a, err = side(before); err != nil {
		return a, b, err
	}
	b, err = side(after)
	return a, b, err
}
