package alerting

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func alertRuleCommand(a *cli.App) *cobra.Command {
	return cli.Group("rule", "Keep alert rules: what is told, how urgent it is, and to whom",
		"  carillon alert rule apply -f finance.yaml\n  carillon alert rule list",
		alertRuleList(a), alertRuleGet(a), alertRuleApply(a), alertRuleDelete(a))
}

func alertRuleView(now time.Time) output.View[apiclient.AlertRule] {
	return output.View[apiclient.AlertRule]{
		Name: func(r apiclient.AlertRule) string { return r.Name },
		Columns: []output.Column[apiclient.AlertRule]{
			{Title: "ID", Value: func(r apiclient.AlertRule) string { return r.ID }, Wide: true},
			{Title: "POSITION", Value: func(r apiclient.AlertRule) string { return cli.Number(r.Position) }, Right: true},
			{Title: "NAME", Value: func(r apiclient.AlertRule) string { return r.Name }},
			{Title: "CONDITION", Value: func(r apiclient.AlertRule) string { return r.Condition.Kind }},
			{Title: "KINDS", Value: func(r apiclient.AlertRule) string {
				if r.Match == nil || len(r.Match.Kinds) == 0 {
					return "-"
				}
				return strings.Join(r.Match.Kinds, ",")
			}, Drop: 1},
			{Title: "SEVERITY", Value: func(r apiclient.AlertRule) string { return r.Severity }},
			{Title: "CHANNELS", Value: func(r apiclient.AlertRule) string {
				if r.Mute {
					return "muted"
				}
				return strings.Join(r.ChannelIds, ",")
			}, Drop: 2},
			{Title: "ENABLED", Value: func(r apiclient.AlertRule) string {
				return map[bool]string{true: "yes"}[r.Enabled]
			}},
			{Title: "UPDATED", Value: func(r apiclient.AlertRule) string { return output.When(&r.UpdatedAt, now) }, Drop: 3},
			{Title: "BY", Value: func(r apiclient.AlertRule) string { return r.UpdatedBy }, Wide: true},
		},
	}
}

func listAlertRules(ctx context.Context, s *cli.Session) ([]apiclient.Doc[apiclient.AlertRule], error) {
	return apiclient.List[apiclient.AlertRule](ctx, 0, s.ListAlertRules, apiclient.ListAlertRulesParams{})
}

// findAlertRule takes an id or a name.
func findAlertRule(ctx context.Context, s *cli.Session, word string) (apiclient.Doc[apiclient.AlertRule], error) {
	list, err := listAlertRules(ctx, s)
	of := func(r apiclient.AlertRule) (id, name string) { return r.ID, r.Name }
	return cli.Listed("alert rule", word, list, err, of)
}

func alertRuleList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List alert rules in the order in which they decide", Args: cobra.NoArgs, Example: "  carillon alert rule list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := listAlertRules(cmd.Context(), s)
			return cli.PrintList(a, s, alertRuleView(a.Now()), list, err, "There are no alert rules: jobs' own settings, or the default channels, say who is told.")
		}),
	}
}

func alertRuleGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "show RULE", Aliases: []string{"get"}, Short: "Show one alert rule; all of it with -o yaml", Args: cobra.ExactArgs(1),
		Example: "  carillon alert rule show finance -o yaml > finance.yaml",
		RunE: cli.About(a, findAlertRule, func(_ *cobra.Command, s *cli.Session, r apiclient.Doc[apiclient.AlertRule], _ []string) error {
			return output.One(s.Printer, alertRuleView(a.Now()), r)
		}),
	}
}

var (
	alertRuleFields = []string{"name", "description", "enabled", "position", "match", "condition", "severity", "channelIds", "mute", "repeat", "quietHours",
		"escalateAfter", "escalateTo"}
	alertRuleReadOnly = []string{"id", "version", "createdAt", "updatedAt", "createdBy", "updatedBy"}
)

func alertRuleApply(a *cli.App) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Create an alert rule from a file, or replace the one of that name", Args: cobra.NoArgs,
		Example: "  carillon alert rule apply -f finance.yaml",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if file == "" {
				return cli.Usagef("name the rule's file with -f (- is standard input)")
			}
			fields, err := a.ReadObject(file, "alert rule", alertRuleFields, alertRuleReadOnly)
			if err != nil {
				return err
			}
			r, err := applyAlertRule(cmd.Context(), s, fields)
			if err != nil {
				return err
			}
			a.Say("Alert rule %s is at version %d.", output.Clean(r.Value.Name), r.Value.Version)
			return output.One(s.Printer, alertRuleView(a.Now()), r)
		}),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the rule; - is standard input")
	return cmd
}

func applyAlertRule(ctx context.Context, s *cli.Session, fields map[string]json.RawMessage) (r apiclient.Doc[apiclient.AlertRule], err error) {
	var name string
	if err := json.Unmarshal(fields["name"], &name); err != nil {
		return r, cli.Usagef("an alert rule needs a name")
	}
	list, err := listAlertRules(ctx, s)
	if err != nil {
		return r, err
	}
	for _, found := range list {
		if found.Value.Name == name {
			return s.UpdateAlertRule(ctx, found.Value.ID, apiclient.UpdateAlertRuleParams{IfMatch: cli.ETag(found.Value.Version)}, apiclient.AlertRuleSpec{}, apiclient.Body(fields))
		}
	}
	return s.CreateAlertRule(ctx, apiclient.AlertRuleSpec{}, apiclient.Body(fields))
}

func alertRuleDelete(a *cli.App) *cobra.Command {
	return a.DeleteCommand("alert rule", &cobra.Command{
		Use: "delete RULE", Short: "Delete an alert rule; the next one that matches decides", Example: "  carillon alert rule delete finance --yes",
	}, func(ctx context.Context, s *cli.Session, word string) (string, func() error, error) {
		r, err := findAlertRule(ctx, s, word)
		return r.Value.Name, func() error { return cli.Gone(s.DeleteAlertRule(ctx, r.Value.ID)) }, err
	})
}
