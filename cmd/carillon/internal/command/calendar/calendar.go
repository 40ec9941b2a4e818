package calendar

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Command is carillon calendar with what is below it.
func Command(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("calendar", "Keep holidays, make-up days and blackouts",
		"  carillon calendar import cn-holidays -f holidays.ics\n  carillon calendar get cn-holidays -o yaml",
		calendarList(a), calendarGet(a), calendarApply(a), calendarImport(a), calendarVersions(a), calendarDelete(a)))
}

func calendarView(now time.Time) output.View[apiclient.CalendarSummary] {
	return output.View[apiclient.CalendarSummary]{
		Name: func(c apiclient.CalendarSummary) string { return c.Name },
		Columns: []output.Column[apiclient.CalendarSummary]{
			{Title: "ID", Value: func(c apiclient.CalendarSummary) string { return c.ID }, Wide: true},
			{Title: "NAME", Value: func(c apiclient.CalendarSummary) string { return c.Name }},
			{Title: "VERSION", Value: func(c apiclient.CalendarSummary) string { return cli.Number(c.Version) }, Right: true},
			{Title: "ZONE", Value: func(c apiclient.CalendarSummary) string { return c.Zone }, Drop: 3},
			{Title: "HOLIDAYS", Value: func(c apiclient.CalendarSummary) string { return cli.Number(c.Holidays) }, Right: true},
			{Title: "MAKE-UP", Value: func(c apiclient.CalendarSummary) string { return cli.Number(c.MakeUpDays) }, Right: true},
			{Title: "BLACKOUTS", Value: func(c apiclient.CalendarSummary) string { return cli.Number(c.Blackouts) }, Right: true},
			{Title: "UPDATED", Value: func(c apiclient.CalendarSummary) string { return output.When(&c.UpdatedAt, now) }, Drop: 2},
			{Title: "BY", Value: func(c apiclient.CalendarSummary) string { return c.UpdatedBy }, Wide: true},
		},
	}
}

func listCalendars(ctx context.Context, s *cli.Session) ([]apiclient.Doc[apiclient.CalendarSummary], error) {
	return apiclient.List[apiclient.CalendarSummary](ctx, 0, s.ListCalendars, apiclient.ListCalendarsParams{})
}

// summary is what lists tell of a calendar: how many days it has instead of all.
func summary(d apiclient.Doc[apiclient.Calendar]) apiclient.Doc[apiclient.CalendarSummary] {
	c := d.Value
	return apiclient.Doc[apiclient.CalendarSummary]{Raw: d.Raw, Value: apiclient.CalendarSummary{
		ID: c.ID, Name: c.Name, Description: c.Description, Zone: c.Zone, Version: c.Version, UpdatedAt: c.UpdatedAt, UpdatedBy: c.UpdatedBy,
		Holidays: int64(len(c.Holidays)), MakeUpDays: int64(len(c.MakeUpDays)), Blackouts: int64(len(c.Blackouts)),
	}}
}

// findCalendar takes an id or a name.
func findCalendar(ctx context.Context, s *cli.Session, word string) (apiclient.Doc[apiclient.Calendar], error) {
	return cli.Find(ctx, "calendar", word, s.GetCalendar, func() ([]apiclient.Doc[apiclient.CalendarSummary], error) { return listCalendars(ctx, s) },
		func(c apiclient.CalendarSummary) (id, name string) { return c.ID, c.Name })
}

func calendarList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List calendars", Args: cobra.NoArgs, Example: "  carillon calendar list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := listCalendars(cmd.Context(), s)
			return cli.PrintList(a, s, calendarView(a.Now()), list, err, "There are no calendars.")
		}),
	}
}

func calendarGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "get CALENDAR", Short: "Show one calendar; all of it with -o yaml", Args: cobra.ExactArgs(1),
		Example: "  carillon calendar get cn-holidays -o yaml > cn-holidays.yaml",
		RunE: cli.About(a, findCalendar, func(_ *cobra.Command, s *cli.Session, c apiclient.Doc[apiclient.Calendar], _ []string) error {
			return output.One(s.Printer, calendarView(a.Now()), summary(c))
		}),
	}
}

// calendarFields are what can be written of a calendar; a file may also hold
// what get shows beside them.
var (
	calendarFields   = []string{"name", "description", "zone", "weekend", "holidays", "makeUpDays", "blackouts"}
	calendarReadOnly = []string{"id", "version", "createdAt", "updatedAt", "createdBy", "updatedBy"}
)

func calendarApply(a *cli.App) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Create a calendar from a file, or replace the one of that name", Args: cobra.NoArgs,
		Example: "  carillon calendar apply -f cn-holidays.yaml",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if file == "" {
				return cli.Usagef("name the calendar's file with -f (- is standard input)")
			}
			c, err := applyCalendar(cmd.Context(), a, s, file)
			if err != nil {
				return err
			}
			a.Say("Calendar %s is at version %d.", output.Clean(c.Value.Name), c.Value.Version)
			return output.One(s.Printer, calendarView(a.Now()), summary(c))
		}),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the calendar; - is standard input")
	return cmd
}

func applyCalendar(ctx context.Context, a *cli.App, s *cli.Session, file string) (c apiclient.Doc[apiclient.Calendar], err error) {
	fields, err := a.ReadObject(file, "calendar", calendarFields, calendarReadOnly)
	if err != nil {
		return c, err
	}
	name := strings.Trim(string(fields["name"]), `"`)
	list, err := listCalendars(ctx, s)
	if err != nil {
		return c, err
	}
	for _, found := range list {
		if found.Value.Name == name {
			return s.UpdateCalendar(ctx, found.Value.ID, apiclient.UpdateCalendarParams{IfMatch: cli.ETag(found.Value.Version)}, apiclient.CalendarSpec{}, apiclient.Body(fields))
		}
	}
	return s.CreateCalendar(ctx, apiclient.CalendarSpec{}, apiclient.Body(fields))
}

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
			a.Say("Calendar %s is at version %d.", output.Clean(c.Value.Name), c.Value.Version)
			return output.One(s.Printer, calendarView(a.Now()), summary(c))
		}),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "iCalendar file; - is standard input")
	cli.ChoiceFlag(cmd, &in.As, "as", "", []string{"auto", "holidays", "make_up_days", "blackouts"}, "auto, holidays, make_up_days or blackouts (default: auto)")
	cmd.Flags().BoolVar(&in.Replace, "replace", false, "remove what the calendar has of that kind first")
	return cmd
}

// importCalendar leaves no empty calendar behind when the file is refused.
func importCalendar(ctx context.Context, a *cli.App, s *cli.Session, word string, in apiclient.ImportCalendar) (apiclient.Doc[apiclient.Calendar], error) {
	c, err := findCalendar(ctx, s, word)
	created := cli.CodeOf(err) == cli.ExitNotFound && !cli.IsID(word)
	if created {
		c, err = s.CreateCalendar(ctx, apiclient.CalendarSpec{Name: word})
	}
	if err != nil {
		return c, err
	}
	filled, err := s.ImportCalendar(ctx, c.Value.ID, apiclient.ImportCalendarParams{IfMatch: cli.ETag(c.Value.Version)}, in)
	if err != nil && created {
		err = errors.Join(err, cli.Gone(s.DeleteCalendar(ctx, c.Value.ID)))
	}
	return filled, err
}

func calendarVersions(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "versions CALENDAR", Short: "List a calendar's versions, newest first", Args: cobra.ExactArgs(1),
		Example: "  carillon calendar versions cn-holidays",
		RunE: cli.About(a, findCalendar, func(cmd *cobra.Command, s *cli.Session, c apiclient.Doc[apiclient.Calendar], _ []string) error {
			list, err := apiclient.ListOf[apiclient.CalendarVersion](cmd.Context(), 0, s.ListCalendarVersions, c.Value.ID, apiclient.ListCalendarVersionsParams{})
			return cli.PrintList(a, s, output.View[apiclient.CalendarVersion]{
				Name: func(v apiclient.CalendarVersion) string { return cli.Number(v.Version) },
				Columns: []output.Column[apiclient.CalendarVersion]{
					{Title: "VERSION", Value: func(v apiclient.CalendarVersion) string { return cli.Number(v.Version) }, Right: true},
					{Title: "CREATED", Value: func(v apiclient.CalendarVersion) string { return output.Stamp(v.CreatedAt) }},
					{Title: "BY", Value: func(v apiclient.CalendarVersion) string { return v.CreatedBy }},
				},
			}, list, err, "")
		}),
	}
}

func calendarDelete(a *cli.App) *cobra.Command {
	return a.DeleteCommand("calendar", &cobra.Command{
		Use: "delete CALENDAR", Short: "Delete a calendar that no job uses",
		Example: "  carillon calendar delete old-holidays --yes",
	}, func(ctx context.Context, s *cli.Session, word string) (string, func() error, error) {
		c, err := findCalendar(ctx, s, word)
		return c.Value.Name, func() error { return cli.Gone(s.DeleteCalendar(ctx, c.Value.ID)) }, err
	})
}
