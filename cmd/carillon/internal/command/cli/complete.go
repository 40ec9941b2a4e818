package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/login"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// completeWithin bounds the wait for live completions: a shell that hangs is
// worse than one that knows nothing.
const completeWithin = 300 * time.Millisecond

// CompleteJobs completes names of jobs.
func (a *App) CompleteJobs(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.Complete(cmd, func(ctx context.Context, s *Session) (names []string, err error) {
		jobs, err := apiclient.List[apiclient.Job](ctx, 50, s.ListJobs, apiclient.ListJobsParams{Q: typed})
		for _, j := range jobs {
			names = append(names, j.Value.Name)
		}
		return names, err
	})
}

// CompleteExecutors completes names of executors.
func (a *App) CompleteExecutors(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && !cmd.Flags().Changed("executor") {
		return nil, cobra.ShellCompDirectiveNoFileComp // the second argument is no executor
	}
	return a.Complete(cmd, func(ctx context.Context, s *Session) (names []string, err error) {
		list, err := ListExecutors(ctx, s, typed, 50)
		for _, e := range list {
			names = append(names, e.Value.Name)
		}
		return names, err
	})
}

// Complete asks the server for completions, and for no longer than a shell may wait.
func (a *App) Complete(cmd *cobra.Command, list func(context.Context, *Session) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	s, err := a.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := list(ctx, s)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompleteFlag completes the values of a flag.
func (a *App) CompleteFlag(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	// Completion is best effort: without it the user types.
	_ = cmd.RegisterFlagCompletionFunc(flag, f)
}

// CompleteContexts completes names of contexts. It asks no server.
func CompleteContexts(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	store, err := login.DefaultStore()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _, err := store.Contexts()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(all)), cobra.ShellCompDirectiveNoFileComp
}
