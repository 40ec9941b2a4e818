package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func (a *App) executorCommand() *cobra.Command {
	tokens := group("token", "Make, list and revoke join tokens, which let processes register",
		"  carillon executor token create shop\n  carillon executor token list shop",
		a.tokenCreate(), a.tokenList(), a.tokenRevoke())
	return a.serverFlags(group("executor", "Look at executors and their instances, and admit new ones",
		"  carillon executor list\n  carillon executor get shop",
		a.executorList(), a.executorGet(), a.executorHandlers(), a.executorCreate(), a.executorDeny(), a.executorDenials(), a.executorAllow(), tokens))
}

var executorView = output.View[apiclient.Executor]{
	Name: func(e apiclient.Executor) string { return e.Name },
	Columns: []output.Column[apiclient.Executor]{
		{Title: "ID", Value: func(e apiclient.Executor) string { return e.ID }, Wide: true},
		{Title: "NAME", Value: func(e apiclient.Executor) string { return e.Name }},
		{Title: "ONLINE", Value: func(e apiclient.Executor) string { return number(e.InstancesOnline) }, Right: true},
		{Title: "INSTANCES", Value: func(e apiclient.Executor) string { return number(e.InstancesTotal) }, Right: true, Drop: 2},
		{Title: "HANDLERS", Value: func(e apiclient.Executor) string { return number(e.Handlers) }, Right: true, Drop: 1},
		{Title: "DESCRIPTION", Value: func(e apiclient.Executor) string { return e.Description }, Drop: 3},
		{Title: "CREATED", Value: func(e apiclient.Executor) string { return output.Stamp(e.CreatedAt) }, Wide: true},
	},
}

func listExecutors(ctx context.Context, s *session, query string, limit int) ([]apiclient.Doc[apiclient.Executor], error) {
	return apiclient.List[apiclient.Executor](ctx, limit, s.ListExecutors, apiclient.ListExecutorsParams{Q: query})
}

func (a *App) executorList() *cobra.Command {
	var query string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List executors", Args: cobra.NoArgs,
		Example: "  carillon executor list\n  carillon executor list -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			list, err := listExecutors(cmd.Context(), s, query, 0)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.say("No executors. Make one with: carillon executor create NAME")
			}
			return output.List(s.Printer, executorView, list)
		},
	}
	cmd.Flags().StringVarP(&query, "query", "q", "", "part of the name")
	return cmd
}

func instanceColumns(now time.Time) []output.Column[apiclient.Instance] {
	return []output.Column[apiclient.Instance]{
		{Title: "INSTANCE", Value: func(i apiclient.Instance) string { return i.ID }},
		{Title: "NAME", Value: func(i apiclient.Instance) string { return i.Name }},
		{Title: "STATE", Value: func(i apiclient.Instance) string { return i.State }},
		{Title: "BUSY", Value: func(i apiclient.Instance) string { return fmt.Sprintf("%d/%d", i.Running, i.Slots) }, Right: true},
		{Title: "HOST", Value: func(i apiclient.Instance) string { return i.Host }, Drop: 2},
		{Title: "PID", Value: func(i apiclient.Instance) string { return number(i.Pid) }, Drop: 3, Right: true},
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
	{Title: "ONLINE", Value: func(h apiclient.Handler) string { return number(h.InstancesOnline) }, Right: true},
	{Title: "VERSIONS", Value: versionsCell, Drop: 3},
	{Title: "IDEMPOTENT", Value: func(h apiclient.Handler) string { return strconv.FormatBool(h.Idempotent) }, Drop: 1},
	{Title: "WEIGHT", Value: func(h apiclient.Handler) string { return number(max(1, h.Weight)) }, Wide: true, Right: true},
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

func (a *App) executorHandlers() *cobra.Command {
	return &cobra.Command{
		Use: "handlers EXECUTOR", Short: "Show what an executor's instances have registered, also while none runs",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeExecutors,
		Example: "  carillon executor handlers shop\n  carillon executor handlers shop -o json | jq '.items[] | {name, inputSchema}'",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			e, err := findExecutor(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			list, err := apiclient.ListOf[apiclient.Handler](cmd.Context(), 0, s.ListHandlers, e.ID, apiclient.ListHandlersParams{})
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.say("Nothing has been registered yet.")
			}
			name := func(h apiclient.Handler) string { return h.Name }
			return output.List(s.Printer, output.View[apiclient.Handler]{Name: name, Columns: handlerColumns}, list)
		},
	}
}

func (a *App) executorGet() *cobra.Command {
	var gone bool
	cmd := &cobra.Command{
		Use: "get EXECUTOR", Short: "Show an executor, its instances, its handlers, and declared jobs that were not taken",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeExecutors,
		Example: "  carillon executor get shop\n  carillon executor get shop -o json | jq '.handlers[].name'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.getExecutor(cmd.Context(), args[0], gone)
		},
	}
	cmd.Flags().BoolVar(&gone, "include-gone", false, "also instances that have left or died")
	return cmd
}

func (a *App) getExecutor(ctx context.Context, word string, gone bool) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	found, err := findExecutor(ctx, s, word)
	if err != nil {
		return err
	}
	e, err := s.GetExecutor(ctx, found.ID)
	if err != nil {
		return err
	}
	if done, err := output.Machine(s.Printer, e); done {
		return err
	}
	if s.Format == output.Name {
		_, err := fmt.Fprintln(a.out, output.Clean(e.Value.Name))
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
	err = s.Fields("Name", e.Value.Name, "Id", e.Value.ID, "Description", e.Value.Description,
		"Online", fmt.Sprintf("%d of %d", e.Value.InstancesOnline, e.Value.InstancesTotal))
	if err != nil {
		return err
	}
	if len(values) == 0 {
		a.say("No instances. Start your application with a token: carillon executor token create %s", output.Clean(e.Value.Name))
	} else if err := blankThen(a, func() error { return output.Rows(s.Printer, instanceColumns(a.now()), values) }); err != nil {
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
func blankThen(a *App, write func() error) error {
	if _, err := fmt.Fprintln(a.out); err != nil {
		return err
	}
	return write()
}

func (a *App) executorCreate() *cobra.Command {
	var description string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make an executor; its processes then need a join token", Args: cobra.ExactArgs(1),
		Example: "  carillon executor create shop\n  carillon executor create shop --description 'Orders and stock'",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			e, err := s.CreateExecutor(cmd.Context(), apiclient.CreateExecutorInputBody{Name: args[0], Description: description})
			if err != nil {
				return err
			}
			a.say("Created executor %s. Next: carillon executor token create %s", e.Value.Name, e.Value.Name)
			return output.One(s.Printer, executorView, e)
		},
	}
	cmd.Flags().StringVar(&description, "description", "", "what it is for")
	return cmd
}

// onExecutor is for commands whose first argument is an executor.
func (a *App) onExecutor(run func(*cobra.Command, *session, apiclient.Ref, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := a.connect()
		if err != nil {
			return err
		}
		e, err := findExecutor(cmd.Context(), s, args[0])
		if err != nil {
			return err
		}
		return run(cmd, s, e, args)
	}
}

// findExecutor takes a name or an id.
func findExecutor(ctx context.Context, s *session, word string) (apiclient.Ref, error) {
	list, err := listExecutors(ctx, s, word, 0)
	if err != nil {
		return apiclient.Ref{}, err
	}
	near := []string{}
	for _, e := range list {
		if e.Value.Name == word {
			return apiclient.Ref{ID: e.Value.ID, Name: word}, nil
		}
		near = append(near, e.Value.Name)
	}
	if isID(word) {
		e, err := s.GetExecutor(ctx, word)
		return apiclient.Ref{ID: word, Name: e.Value.Name}, err
	}
	return apiclient.Ref{}, notFound("executor", word, near)
}
