// Package apply answers: which commands work on files with documents of any kind?
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/document"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Commands are plan, apply, delete, export and schema.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{a.ServerFlags(planCommand(a)), a.ServerFlags(applyCommand(a)), a.ServerFlags(deleteCommand(a)), a.ServerFlags(exportCommand(a)), a.ServerFlags(schemaCommand(a))}
}

// read reads all documents of the files. Each may name its tenant.
func read(ctx context.Context, a *cli.App, s *cli.Session, from *cli.Source) (out documents, err error) {
	list, err := from.Read(ctx, a, s, "")
	for _, one := range list {
		p := placed{Placed: one}
		if tenant := one.Field("tenant"); tenant != nil {
			p.tenant = tenant.Text
			one.Members = slices.DeleteFunc(one.Members, func(m document.Member) bool { return m.Name == "tenant" })
		}
		out = append(out, p)
	}
	return out, err
}

// options are those of a plan beside its documents.
type options struct {
	takeOver, unknownHandler, unfitInput bool
	set                                  string
	prune                                bool
}

func (o *options) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.takeOver, "take-over", false, "change jobs that the code of an application declares; from then on these documents decide about them")
	cmd.Flags().StringVar(&o.set, "set", "", "remember the documents under this name, so that --prune finds those that left the files")
	cmd.Flags().BoolVar(&o.prune, "prune", false, "delete documents of --set that the files no longer hold")
	cmd.Flags().BoolVar(&o.unknownHandler, "allow-unknown-handler", false, "accept handlers that no instance has registered yet")
	cmd.Flags().BoolVar(&o.unfitInput, "allow-unfit-input", false, "accept job inputs that do not fit the handler's input type")
}

// body is the request for a plan, and for an apply with the id of the plan.
func (o *options) body(list documents) map[string]any {
	return map[string]any{"documents": list, "takeOver": o.takeOver, "set": o.set, "prune": o.prune, "allowUnknownHandler": o.unknownHandler, "allowUnfitInput": o.unfitInput}
}

// changes is how many documents a plan would write.
func changes(p apiclient.Plan) int64 { return p.Create + p.Update + p.Delete + p.Join }

func planCommand(a *cli.App) *cobra.Command {
	var from cli.Source
	var with options
	cmd := &cobra.Command{
		Use: "plan -f FILE", Aliases: []string{"diff"}, Short: "Show what apply would change", Args: cobra.NoArgs,
		Long: `Shows what apply would create (+), change (~) and delete (-), and writes nothing. The exit
code is 0 if nothing would change, 1 if something would, and 2 or more after an error,
such as a wrong document or a server that is away.

Documents are jobs, calendars, executors and so on in YAML or JSON, each with kind, name
and spec. carillon export writes those of a server, carillon schema says which fields a
kind has. All mistakes are told at once, each with its file, line and document.`,
		Example: "  carillon plan -f shop/ --values production.yaml\n  carillon plan -f shop.yaml -o json",
		RunE: errorsAsUsage(a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := read(cmd.Context(), a, s, &from)
			if err != nil {
				return err
			}
			return list.each(cmd.Context(), a, s, func(s *cli.Session, part documents) error {
				plan, err := s.PlanDocuments(cmd.Context(), apiclient.DocumentBatch{}, apiclient.Body(with.body(part)))
				if err != nil {
					return part.named(err)
				}
				if err := errors.Join(show(a, s, part, with.set, plan), refused(plan.Value)); err != nil {
					return err
				}
				if changes(plan.Value) > 0 {
					return errDifferences
				}
				return nil
			})
		})),
	}
	from.Flags(cmd)
	with.flags(cmd)
	return cmd
}

var errDifferences = cli.Fail(cli.ExitFailed, errors.New("there are differences"))

// errorsAsUsage keeps the exit code 1 for differences.
func errorsAsUsage(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if err != nil && !errors.Is(err, errDifferences) && cli.CodeOf(err) == cli.ExitFailed {
			return cli.Fail(cli.ExitUsage, err)
		}
		return err
	}
}

// refused is the error of a plan or an apply with documents that were not written.
func refused(p apiclient.Plan) error {
	if p.Failed == 0 {
		return nil
	}
	return cli.Fail(cli.ExitFailed, fmt.Errorf("%d of %s cannot be written", p.Failed, spelling.Count(len(p.Items), "document", "")))
}

func applyCommand(a *cli.App) *cobra.Command {
	var from cli.Source
	var with options
	var yes, dry bool
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Create and change what the documents of files say", Args: cobra.NoArgs,
		Long: `Shows what it would create (+), change (~) and delete (-), as carillon plan does, asks, and
writes. If one document is wrong, nothing is written. What no file holds stays, unless
--set and --prune delete it.`,
		Example: "  carillon apply -f shop/ --values production.yaml\n  carillon export | carillon apply -f - --dry-run",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := read(cmd.Context(), a, s, &from)
			if err != nil {
				return err
			}
			return list.carry(cmd.Context(), a, s, func(s *cli.Session, part documents) error {
				return carryOut(cmd.Context(), a, s, part, with.body(part), func(apiclient.Plan) string { return "Apply this?" }, yes, dry)
			})
		}),
	}
	from.Flags(cmd)
	with.flags(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would change, and change nothing")
	return cmd
}

func deleteCommand(a *cli.App) *cobra.Command {
	var from cli.Source
	var yes, dry bool
	cmd := &cobra.Command{
		Use: "delete -f FILE", Short: "Delete the documents that files name", Args: cobra.NoArgs,
		Long: `Deletes the jobs, calendars and so on that the documents of the files name, after a
question. Only kind and name of a document count. Documents that the server does not have
are passed over.`,
		Example: "  carillon delete -f shop/ --dry-run\n  carillon delete -f shop.yaml --yes",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := read(cmd.Context(), a, s, &from)
			if err != nil {
				return err
			}
			return list.carry(cmd.Context(), a, s, func(s *cli.Session, part documents) error {
				return carryOut(cmd.Context(), a, s, part, map[string]any{"documents": part, "delete": true}, func(p apiclient.Plan) string {
					return "Delete " + spelling.Count(p.Delete, "document", "") + "?"
				}, yes, dry)
			})
		}),
	}
	from.Flags(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be deleted, and delete nothing")
	return cmd
}

// carryOut plans, asks and applies.
func carryOut(ctx context.Context, a *cli.App, s *cli.Session, from documents, body map[string]any, question func(apiclient.Plan) string, yes, dry bool) error {
	plan, err := s.PlanDocuments(ctx, apiclient.DocumentBatch{}, apiclient.Body(body))
	if err != nil {
		return from.named(err)
	}
	set, _ := body["set"].(string)
	if changes(plan.Value) == 0 || plan.Value.Failed > 0 || dry {
		return errors.Join(show(a, s, from, set, plan), refused(plan.Value))
	}
	if !yes {
		tell(a, from, set, plan.Value)
		if err := a.Confirm(question(plan.Value)); err != nil {
			return err
		}
	}
	body["plan"] = plan.Value.ID
	done, err := s.ApplyDocuments(ctx, apiclient.DocumentBatch{}, apiclient.Body(body))
	if err != nil {
		return from.named(err)
	}
	done.Value.NewSet = false // it was told before, or is not new any more
	if err := show(a, s, from, set, done); err != nil {
		return err
	}
	return refused(done.Value)
}

// show prints a plan: its items as a table, its changes below.
func show(a *cli.App, s *cli.Session, d documents, set string, plan apiclient.Doc[apiclient.Plan]) error {
	if done, err := cli.PrintMachine(s, plan, nil); done || err != nil {
		return err
	}
	tell(a, d, set, plan.Value)
	return nil
}

func tell(a *cli.App, d documents, set string, plan apiclient.Plan) {
	for i := range plan.Items {
		tellItem(a, d, &plan.Items[i])
	}
	if plan.NewSet {
		text := "no document belongs to the set yet"
		if hint := spelling.Hint(set, plan.Sets); hint != "" {
			text += "; " + hint
		}
		a.Say("warning: --set %s: %s", output.Clean(set), output.Clean(text))
	}
	a.Say("+%d ~%d -%d =%d", plan.Create, plan.Update, plan.Delete, plan.Same)
	if plan.Join > 0 {
		a.Say("%s the set.", spelling.Count(plan.Join, "document joins", "documents join"))
	}
	if plan.Left > 0 {
		a.Say("%s. --prune deletes what is in no file, at most 1000 documents at once.", spelling.Count(plan.Left, "document of the set is in no file and stays", "documents of the set are in no file and stay"))
	}
}

var signs = map[string]string{"create": "+", "update": "~", "same": "=", "delete": "-"}

func tellItem(a *cli.App, d documents, item *apiclient.PlanItem) {
	if item.Action == "same" && item.Error == "" && item.Fires == nil {
		return
	}
	a.Say("%s %s %s", signs[item.Action], item.Kind, output.Clean(item.Name))
	for _, c := range item.Changes {
		a.Say("    %s: %s → %s", c.Path, short(c.Before), short(c.After))
	}
	if f := item.Fires; f != nil {
		what := "next fires"
		if f.Paused {
			what = "it is paused, and fires only after a resume"
		}
		a.Say("    %s: %s → %s", what, stamps(f.Before), stamps(f.After))
	}
	for _, w := range item.Warnings {
		a.Say("    warning: %s", output.Clean(w.Text))
	}
	if item.Error != "" {
		a.Say("    not written: %s", output.Clean(item.Error))
		if at := d.of(item); at != "" {
			a.Say("    at %s", output.Clean(at))
		}
	}
}

// stamps are fire times in one line.
func stamps(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = text
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			out[i] = output.Stamp(at)
		}
	}
	return strings.Join(out, ", ")
}

// short is a value in one line.
func short(value json.RawMessage) string {
	text := string(value)
	if text == "" {
		return "nothing"
	}
	if runes := []rune(text); len(runes) > 100 {
		text = string(runes[:100]) + "…"
	}
	return output.Clean(text)
}
