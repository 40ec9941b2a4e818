package alerting

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func silenceCommand(a *cli.App) *cobra.Command {
	return cli.Group("silence", "Keep alerts back for a while",
		"  carillon alert silence create --for 2h --reason 'deploy of billing' --labels app=billing\n  carillon alert silence end 9007199254740993",
		silenceList(a), silenceCreate(a), silenceEnd(a))
}

func silenceView(now time.Time) output.View[apiclient.AlertSilence] {
	about := func(s apiclient.AlertSilence) string {
		var out []string
		for what, list := range map[string][]string{"kind": s.Match.Kinds, "executor": s.Match.ExecutorIds, "job": s.Match.JobIds} {
			if len(list) > 0 {
				out = append(out, what+"="+strings.Join(list, ","))
			}
		}
		if s.Match.Labels != "" {
			out = append(out, s.Match.Labels)
		}
		if len(out) == 0 {
			return "everything"
		}
		return strings.Join(out, " ")
	}
	return output.View[apiclient.AlertSilence]{
		Name: func(s apiclient.AlertSilence) string { return s.ID },
		Columns: []output.Column[apiclient.AlertSilence]{
			{Title: "ID", Value: func(s apiclient.AlertSilence) string { return s.ID }},
			{Title: "ABOUT", Value: about},
			{Title: "FROM", Value: func(s apiclient.AlertSilence) string { return output.When(&s.StartsAt, now) }},
			{Title: "UNTIL", Value: func(s apiclient.AlertSilence) string { return output.When(&s.EndsAt, now) }},
			{Title: "REASON", Value: func(s apiclient.AlertSilence) string { return s.Reason }},
			{Title: "BY", Value: func(s apiclient.AlertSilence) string { return s.CreatedBy }, Drop: 1},
		},
	}
}

func silenceList(a *cli.App) *cobra.Command {
	var p apiclient.ListAlertSilencesParams
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List silences that are not over", Args: cobra.NoArgs, Example: "  carillon alert silence list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := apiclient.List[apiclient.AlertSilence](cmd.Context(), 0, s.ListAlertSilences, p)
			return cli.PrintList(a, s, silenceView(a.Now()), list, err, "There are no silences.")
		}),
	}
	cmd.Flags().BoolVar(&p.All, "all", false, "also those that ended within the last 30 days")
	return cmd
}

func silenceCreate(a *cli.App) *cobra.Command {
	var in apiclient.AlertSilenceWrite
	var match apiclient.AlertMatch
	var lasts time.Duration
	cmd := &cobra.Command{
		Use: "create", Short: "Silence alerts from now on; without a matcher all of them", Args: cobra.NoArgs,
		Example: "  carillon alert silence create --for 2h --reason 'deploy of billing' --labels app=billing",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if lasts <= 0 || in.Reason == "" {
				return cli.Usagef("say how long, with --for 2h, and why, with --reason")
			}
			for i, word := range match.ExecutorIds {
				e, err := cli.FindExecutor(cmd.Context(), s, word)
				if err != nil {
					return err
				}
				match.ExecutorIds[i] = e.ID
			}
			for i, word := range match.JobIds {
				j, err := cli.FindJob(cmd.Context(), s, word)
				if err != nil {
					return err
				}
				match.JobIds[i] = j.Value.ID
			}
			in.Duration, in.Match = lasts.String(), &match
			made, err := s.CreateAlertSilence(cmd.Context(), in)
			if err != nil {
				return err
			}
			a.Say("Silence %s lasts until %s.", made.Value.ID, made.Value.EndsAt)
			return output.One(s.Printer, silenceView(a.Now()), made)
		}),
	}
	f := cmd.Flags()
	settings.SpanVar(f, &lasts, "for", 0, "how long")
	f.StringVar(&in.Reason, "reason", "", "why, for others")
	f.StringSliceVar(&match.Kinds, "kind", nil, "only these kinds, such as run_failed")
	f.StringSliceVar(&match.ExecutorIds, "executor", nil, "only these executors, by name or id")
	f.StringSliceVar(&match.JobIds, "job", nil, "only these jobs, by name or id")
	f.StringVar(&match.Labels, "labels", "", "only jobs whose labels meet this selector, such as team=finance")
	return cmd
}

func silenceEnd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "end SILENCE", Short: "End a silence now", Args: cobra.ExactArgs(1), Example: "  carillon alert silence end 9007199254740993",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			ended, err := s.EndAlertSilence(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			a.Say("Silence %s is over.", ended.Value.ID)
			return nil
		}),
	}
}

func alertDefaultCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "default [CHANNEL-ID...]", Short: "Say which alert channels are told of what nobody else is told of; without ids: show them",
		Example: "  carillon alert default 9007199254740993",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			settings, err := s.GetAlertSettings(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				settings, err = s.UpdateAlertSettings(cmd.Context(), apiclient.UpdateAlertSettingsParams{IfMatch: cli.ETag(settings.Value.Version)},
					apiclient.AlertSettingsWrite{DefaultChannelIds: args, QuietHours: settings.Value.QuietHours})
				if err != nil {
					return err
				}
			}
			if len(settings.Value.DefaultChannelIds) == 0 {
				a.Say("There are no default channels.")
			} else {
				a.Say("Default channels: %s.", strings.Join(settings.Value.DefaultChannelIds, ", "))
			}
			if settings.Value.ReachesNobody {
				a.Say("None of them works: failures of timers and calls, and of jobs that name no receiver, reach nobody.")
			}
			return nil
		}),
	}
}
