package timer

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// completeTimers completes EXECUTOR/HANDLER, first the executor and then its handlers;
// with keys the keys of pending timers after it.
func completeTimers(a *cli.App, keys bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0 && !strings.Contains(typed, "/"):
			names, directive := a.CompleteExecutors(cmd, nil, typed)
			for i := range names {
				names[i] += "/"
			}
			return names, directive | cobra.ShellCompDirectiveNoSpace
		case len(args) == 0:
			return a.Complete(cmd, func(ctx context.Context, s *cli.Session) ([]string, error) {
				return handlers(ctx, s, typed)
			})
		case keys:
			return a.Complete(cmd, func(ctx context.Context, s *cli.Session) ([]string, error) {
				return pendingKeys(ctx, s, args, typed)
			})
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// handlers are the targets of an executor that is typed already.
func handlers(ctx context.Context, s *cli.Session, typed string) (targets []string, err error) {
	name, _, _ := strings.Cut(typed, "/")
	e, err := cli.FindExecutor(ctx, s, name)
	if err != nil {
		return nil, err
	}
	list, err := apiclient.ListOf[apiclient.Handler](ctx, 0, s.ListHandlers, e.ID, apiclient.ListHandlersParams{})
	for _, h := range list {
		if target := name + "/" + h.Value.Name; strings.HasPrefix(target, typed) {
			targets = append(targets, target)
		}
	}
	return targets, err
}

// pendingKeys leaves out what is typed already.
func pendingKeys(ctx context.Context, s *cli.Session, args []string, typed string) (keys []string, err error) {
	executor, handler, err := splitTarget(args[0])
	if err != nil {
		return nil, err
	}
	list, err := apiclient.List[apiclient.Timer](ctx, 50, s.ListTimers, apiclient.ListTimersParams{Executor: executor, Handler: handler, KeyPrefix: typed})
	for _, t := range list {
		if !slices.Contains(args[1:], t.Value.Key) {
			keys = append(keys, t.Value.Key)
		}
	}
	return keys, err
}
