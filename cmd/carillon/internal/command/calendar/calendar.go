package calendar

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/document"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

var kind = document.Kind{
	Noun: "calendar", Path: "calendars", Versioned: true, Short: "Keep holidays, make-up days and blackouts",
	Example:    "  carillon calendar import cn-holidays -f holidays.ics\n  carillon calendar get cn-holidays -o yaml",
	DeleteNote: " that no job uses",
	Columns: []document.Column{
		{Title: "ZONE", Path: "spec.zone", Drop: 3},
		{Title: "HOLIDAYS", Path: "status.holidays", Right: true},
		{Title: "MAKE-UP", Path: "status.makeUpDays", Right: true},
		{Title: "BLACKOUTS", Path: "status.blackouts", Right: true},
	},
}

// Command is carillon calendar with what is below it.
func Command(a *cli.App) *cobra.Command { return document.Command(a, kind, calendarImport(a)) }

func calendarImport(a *cli.App) *cobra.Command {
	var file string
	var in apiclient.ImportCalendar
	cmd := &cobra.Command{
		Use: "import CALENDAR -f FILE", Short: "Add the events of an iCalendar file; creates the calendar if there is none", Args: cobra.ExactArgs(1),
		Example: "  carillon calendar import cn-holidays -f holidays.ics\n  carillon calendar import freeze -f changes.ics --as blackouts --replace",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if file == "" {
				return cli.Usagef("name the file with -f (- is standard input)")
			}
			raw, err := a.ReadInput(file)
			if err != nil {
				return err
			}
			in.Ical = string(raw)
			c, err := importCalendar(cmd.Context(), a, s, args[0], in)
			if err != nil {
				return err
			}
			return kind.Say(a, s, c)
		}),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "iCalendar file; - is standard input")
	cli.ChoiceFlag(cmd, &in.As, "as", "", []string{"auto", "holidays", "make_up_days", "blackouts"}, "auto, holidays, make_up_days or blackouts (default: auto)")
	cmd.Flags().BoolVar(&in.Replace, "replace", false, "remove what the calendar has of that kind first")
	return cmd
}

// importCalendar leaves no empty calendar behind when the file is refused.
func importCalendar(ctx context.Context, a *cli.App, s *cli.Session, word string, in apiclient.ImportCalendar) (document.Document, error) {
	c, err := kind.Find(ctx, s, word)
	created := cli.CodeOf(err) == cli.ExitNotFound && !cli.IsID(word)
	if created {
		c, err = kind.Of(s).Create(ctx, apiclient.CalendarWrite{Name: word})
	}
	if err != nil {
		return c, err
	}
	answer, err := s.ImportCalendar(ctx, c.Value.ID, apiclient.ImportCalendarParams{IfMatch: cli.ETag(c.Value.Version)}, in)
	if err != nil && created {
		err = errors.Join(err, cli.Gone(s.DeleteCalendar(ctx, c.Value.ID)))
	}
	if err != nil {
		return c, err
	}
	return apiclient.As[apiclient.Document](answer)
}
