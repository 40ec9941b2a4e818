package job

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func proposalCommand(a *cli.App) *cobra.Command {
	return cli.Group("proposal", "Decide about what applications propose for their jobs",
		"  carillon job proposal list\n  carillon job proposal accept close-day",
		proposalList(a), proposalShow(a), proposalAccept(a), proposalDecline(a))
}

func proposalView(now time.Time) output.View[apiclient.Proposal] {
	return output.View[apiclient.Proposal]{
		Name: func(p apiclient.Proposal) string { return p.Name },
		Columns: []output.Column[apiclient.Proposal]{
			{Title: "ID", Value: func(p apiclient.Proposal) string { return p.ID }, Wide: true},
			{Title: "JOB", Value: func(p apiclient.Proposal) string { return p.Name }},
			{Title: "CHANGES", Value: changesCell, Right: true},
			{Title: "EXECUTOR", Value: func(p apiclient.Proposal) string { return p.Executor.Name }, Drop: 1},
			{Title: "VERSION", Value: func(p apiclient.Proposal) string { return p.Version }, Drop: 2},
			{Title: "PROPOSED", Value: func(p apiclient.Proposal) string { return output.When(&p.ProposedAt, now) }, Drop: 3},
		},
	}
}

func changesCell(p apiclient.Proposal) string {
	if p.Job == nil {
		return "new"
	}
	return strconv.Itoa(len(p.Changes))
}

func listProposals(ctx context.Context, s *cli.Session) ([]apiclient.Doc[apiclient.Proposal], error) {
	return apiclient.List[apiclient.Proposal](ctx, 0, s.ListProposals, apiclient.ListProposalsParams{})
}

func proposalList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List what waits for a decision", Args: cobra.NoArgs,
		Example: "  carillon job proposal list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := listProposals(cmd.Context(), s)
			return cli.PrintList(a, s, proposalView(a.Now()), list, err, "Nothing is proposed.")
		}),
	}
}

func proposalShow(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "show JOB", Short: "Show what a proposal changes, line by line", Args: cobra.ExactArgs(1),
		Example: "  carillon job proposal show close-day\n  carillon job proposal show close-day -o json | jq .proposed",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, p, err := findProposal(cmd.Context(), a, args[0])
			if done, err := cli.PrintMachine(s, p, err); done {
				return err
			}
			if p.Value.Job == nil {
				_, err := fmt.Fprintf(a.Out, "a new job %s (see it with -o yaml)\n", output.Clean(p.Value.Name))
				return err
			}
			return writeChanges(a.Out, p.Value.Changes)
		},
	}
}

// writeChanges writes each setting that differs, what is and what it becomes.
func writeChanges(to io.Writer, changes []apiclient.Change) error {
	for _, c := range changes {
		for _, side := range []struct {
			sign  string
			value []byte
		}{{"-", c.From}, {"+", c.To}} {
			if string(side.value) == "null" {
				continue
			}
			if _, err := fmt.Fprintf(to, "%s %s: %s\n", side.sign, output.Clean(c.Field), output.Clean(string(side.value))); err != nil {
				return err
			}
		}
	}
	return nil
}

func proposalAccept(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "accept JOB", Short: "Make the job what the code proposes; labels, alerts and the owner stay where the code says nothing of them", Args: cobra.ExactArgs(1),
		Example: "  carillon job proposal accept close-day",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, p, err := findProposal(cmd.Context(), a, args[0])
			if err != nil {
				return err
			}
			job, err := s.AcceptProposal(cmd.Context(), p.Value.ID, apiclient.DecideProposalInputBody{Hash: p.Value.Hash})
			if err != nil {
				return err
			}
			a.Say("Job %s is now at revision %d.", output.Clean(job.Value.Name), job.Value.Revision)
			return output.One(s.Printer, jobView(a.Now()), job)
		},
	}
}

func proposalDecline(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "decline JOB", Short: "Leave the job as it is; the same is not proposed again", Args: cobra.ExactArgs(1),
		Example: "  carillon job proposal decline close-day",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, p, err := findProposal(cmd.Context(), a, args[0])
			if err != nil {
				return err
			}
			if _, err := s.DeclineProposal(cmd.Context(), p.Value.ID, apiclient.DecideProposalInputBody{Hash: p.Value.Hash}); err != nil {
				return err
			}
			a.Say("Declined; job %s stays as it is.", output.Clean(p.Value.Name))
			return nil
		},
	}
}

// findProposal takes a job's name or a proposal's id.
func findProposal(ctx context.Context, a *cli.App, word string) (*cli.Session, apiclient.Doc[apiclient.Proposal], error) {
	none := apiclient.Doc[apiclient.Proposal]{}
	s, err := a.Connect()
	if err != nil {
		return nil, none, err
	}
	list, err := listProposals(ctx, s)
	if err != nil {
		return nil, none, err
	}
	for _, same := range []func(apiclient.Proposal) string{
		func(p apiclient.Proposal) string { return p.ID }, // the id wins, as everywhere
		func(p apiclient.Proposal) string { return p.Name },
	} {
		for _, p := range list {
			if same(p.Value) == word {
				return s, p, nil
			}
		}
	}
	return nil, none, cli.Fail(cli.ExitNotFound, fmt.Errorf("nothing is proposed for a job %q; see: carillon job proposal list", word))
}
