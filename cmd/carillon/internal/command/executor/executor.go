package executor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/document"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Command is carillon executor with what is below it.
func Command(a *cli.App) *cobra.Command {
	tokens := cli.Group("token", "Make, list and revoke join tokens, which let processes register",
		"  carillon executor token create shop\n  carillon executor token list shop",
		tokenCreate(a), tokenList(a), tokenRevoke(a))
	return a.ServerFlags(cli.Group("executor", "Make, change and delete executors, look at their instances, and admit new ones",
		"  carillon executor list\n  carillon executor get shop",
		executorList(a), executorInstances(a), executorGet(a), executorHandlers(a), executorCreate(a), executorRename(a), executorDescribe(a), executorCallbacks(a), executorForget(a), executorDisable(a), executorEnable(a), executorDelete(a), executorRestore(a), executorDrain(a, false), executorDrain(a, true), executorRemove(a), executorDeny(a), executorDenials(a), executorAllow(a), tokens))
}

var executorView = output.View[apiclient.Executor]{
	Name: func(e apiclient.Executor) string { return e.Name },
	Columns: []output.Column[apiclient.Executor]{
		{Title: "ID", Value: func(e apiclient.Executor) string { return e.ID }, Wide: true},
		{Title: "NAME", Value: func(e apiclient.Executor) string { return e.Name }},
		{Title: "STATE", Value: func(e apiclient.Executor) string { return e.State }},
		{Title: "KIND", Value: func(e apiclient.Executor) string { return e.Kind }},
		{Title: "ONLINE", Value: func(e apiclient.Executor) string { return cli.Number(e.InstancesOnline) }, Right: true},
		{Title: "INSTANCES", Value: func(e apiclient.Executor) string { return cli.Number(e.InstancesTotal) }, Right: true, Drop: 2},
		{Title: "HANDLERS", Value: func(e apiclient.Executor) string { return cli.Number(e.Handlers) }, Right: true, Drop: 1},
		{Title: "DESCRIPTION", Value: func(e apiclient.Executor) string { return e.Description }, Drop: 3},
		{Title: "CREATED", Value: func(e apiclient.Executor) string { return output.Stamp(e.CreatedAt) }, Wide: true},
	},
}

func executorList(a *cli.App) *cobra.Command {
	var query string
	var deleted bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List executors", Args: cobra.NoArgs,
		Example: "  carillon executor list\n  carillon executor list -o json",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if deleted {
				return deletedKind.ListDeleted(cmd.Context(), a, s)
			}
			list, err := cli.ListExecutors(cmd.Context(), s, query, 0)
			return cli.PrintList(a, s, executorView, list, err, "No executors. Make one with: carillon executor create NAME")
		}),
	}
	cmd.Flags().StringVarP(&query, "query", "q", "", "part of the name")
	document.DeletedFlag(cmd, &deleted)
	return cmd
}

func instanceColumns(now time.Time) []output.Column[apiclient.Instance] {
	return []output.Column[apiclient.Instance]{
		{Title: "INSTANCE", Value: func(i apiclient.Instance) string { return i.ID }},
		{Title: "NAME", Value: func(i apiclient.Instance) string { return i.Name }},
		{Title: "STATE", Value: func(i apiclient.Instance) string { return i.State }},
		{Title: "BUSY", Value: func(i apiclient.Instance) string { return fmt.Sprintf("%d/%d", i.Running, i.Slots) }, Right: true},
		{Title: "HOST", Value: func(i apiclient.Instance) string { return i.Host }, Drop: 2},
		{Title: "PID", Value: func(i apiclient.Instance) string { return cli.Number(i.Pid) }, Drop: 3, Right: true},
		{Title: "VERSION", Value: func(i apiclient.Instance) string { return i.Version }, Drop: 4},
		{Title: "SINCE", Value: func(i apiclient.Instance) string { return output.When(&i.StartedAt, now) }, Drop: 5},
		{Title: "LABELS", Value: func(i apiclient.Instance) string { return labelsCell(i.Labels) }, Drop: 6},
		{Title: "HANDLERS", Value: func(i apiclient.Instance) string { return strconv.Itoa(len(i.Handlers)) }, Drop: 7, Right: true},
		{Title: "HEARTBEAT", Value: func(i apiclient.Instance) string { return output.When(&i.LastHeartbeatAt, now) }, Drop: 1},
		{Title: "SDK", Value: func(i apiclient.Instance) string { return i.SdkVersion }, Wide: true},
	}
}

var handlerColumns = []output.Column[apiclient.Handler]{
	{Title: "HANDLER", Value: func(h apiclient.Handler) string { return h.Name }},
	{Title: "ONLINE", Value: func(h apiclient.Handler) string { return cli.Number(h.InstancesOnline) }, Right: true},
	{Title: "VERSIONS", Value: versionsCell, Drop: 3},
	{Title: "IDEMPOTENT", Value: func(h apiclient.Handler) string { return strconv.FormatBool(h.Idempotent) }, Drop: 1},
	{Title: "WEIGHT", Value: func(h apiclient.Handler) string { return cli.Number(max(1, h.Weight)) }, Wide: true, Right: true},
	{Title: "DESCRIPTION", Value: func(h apiclient.Handler) string { return h.Description }, Drop: 2},
}

var refusedColumns = []output.Column[apiclient.RefusedDeclaration]{
	{Title: "NOT TAKEN FROM THE CODE", Value: func(r apiclient.RefusedDeclaration) string { return r.Job }},
	{Title: "VERSION", Value: func(r apiclient.RefusedDeclaration) string { return r.Version }, Drop: 1},
	{Title: "WHY", Value: func(r apiclient.RefusedDeclaration) string { return r.Message }},
}

// versionsCell names the versions that have a handler, those that run first.
func versionsCell(h apiclient.Handler) string {
	var running, left []string
	for _, v := range h.Versions {
		name := v.Version
		if name == "" {
			name = "(unnamed)"
		}
		switch {
		case v.InstancesOnline > 0 && !slices.Contains(running, name):
			running = append(running, name)
		case v.InstancesOnline == 0 && !slices.Contains(left, name):
			left = append(left, name)
		}
	}
	if len(running) > 0 {
		return strings.Join(running, ", ")
	}
	if len(left) > 0 {
		return "last " + left[0]
	}
	return ""
}

func labelsCell(labels map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, k+"="+labels[k])
	}
	return strings.Join(out, ",")
}

func executorHandlers(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "handlers EXECUTOR", Short: "Show what an executor's instances have registered, also while none runs",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteExecutors,
		Example: "  carillon executor handlers shop\n  carillon executor handlers shop -o json | jq '.items[] | {name, inputSchema}'",
		RunE: cli.About(a, cli.FindExecutor, func(cmd *cobra.Command, s *cli.Session, e apiclient.Ref, _ []string) error {
			list, err := apiclient.ListOf[apiclient.Handler](cmd.Context(), 0, s.ListHandlers, e.ID, apiclient.ListHandlersParams{})
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.Say("Nothing has been registered yet.")
			}
			name := func(h apiclient.Handler) string { return h.Name }
			return output.List(s.Printer, output.View[apiclient.Handler]{Name: name, Columns: handlerColumns}, list)
		}),
	}
}

func executorGet(a *cli.App) *cobra.Command {
	var gone bool
	cmd := &cobra.Command{
		Use: "get EXECUTOR", Short: "Show an executor, its instances, its handlers, and declared jobs that were not taken",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteExecutors,
		Example: "  carillon executor get shop\n  carillon executor get shop -o json | jq '.handlers[].name'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return getExecutor(cmd.Context(), a, args[0], gone)
		},
	}
	cmd.Flags().BoolVar(&gone, "include-gone", false, "also instances that have left or died")
	return cmd
}

func getExecutor(ctx context.Context, a *cli.App, word string, gone bool) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	found, err := cli.FindExecutor(ctx, s, word)
	if err != nil {
		return err
	}
	e, err := s.GetExecutor(ctx, found.ID)
	if done, err := cli.PrintMachine(s, e, err); done {
		return err
	}
	if s.Format == output.Name {
		_, err := fmt.Fprintln(a.Out, output.Clean(e.Value.Name))
		return err
	}
	instances, err := apiclient.ListOf[apiclient.Instance](ctx, 0, s.ListInstances, found.ID, apiclient.ListInstancesParams{IncludeGone: gone})
	if err != nil {
		return err
	}
	values := make([]apiclient.Instance, len(instances))
	for i, d := range instances {
		values[i] = d.Value
	}
	err = s.Fields("Name", e.Value.Name, "Formerly", strings.Join(e.Value.FormerNames, ", "), "Id", e.Value.ID, "State", e.Value.State, "Note", e.Value.Note,
		"Description", e.Value.Description, "Code calls back to", strings.Join(e.Value.CallbacksTo, ", "),
		"Online", fmt.Sprintf("%d of %d", e.Value.InstancesOnline, e.Value.InstancesTotal))
	if err != nil {
		return err
	}
	if len(values) == 0 {
		a.Say("No instances. Start your application with a token: carillon executor token create %s", output.Clean(e.Value.Name))
	} else if err := blankThen(a, func() error { return output.Rows(s.Printer, instanceColumns(a.Now()), values) }); err != nil {
		return err
	}
	if len(e.Value.Handlers) > 0 {
		if err := blankThen(a, func() error { return output.Rows(s.Printer, handlerColumns, e.Value.Handlers) }); err != nil {
			return err
		}
	}
	if len(e.Value.RefusedDeclarations) == 0 {
		return nil
	}
	return blankThen(a, func() error { return output.Rows(s.Printer, refusedColumns, e.Value.RefusedDeclarations) })
}

// blankThen puts an empty line before a further table.
func blankThen(a *cli.App, write func() error) error {
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	return write()
}

func executorCreate(a *cli.App) *cobra.Command {
	var description string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make an executor; its processes then need a join token", Args: cobra.ExactArgs(1),
		Example: "  carillon executor create shop\n  carillon executor create shop --description 'Orders and stock'",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			e, err := s.CreateExecutor(cmd.Context(), apiclient.CreateExecutorInputBody{Name: args[0], Description: description})
			if err != nil {
				return err
			}
			a.Say("Created executor %s. Next: carillon executor token create %s", e.Value.Name, e.Value.Name)
			return output.One(s.Printer, executorView, e)
		}),
	}
	cmd.Flags().StringVar(&description, "description", "", "what it is for")
	return cmd
}
