package command

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func (a *App) calendarCommand() *cobra.Command {
	return a.serverFlags(group("calendar", "Keep holidays, make-up days and blackouts",
		"  carillon calendar import cn-holidays -f holidays.ics\n  carillon calendar get cn-holidays -o yaml",
		a.calendarList(), a.calendarGet(), a.calendarApply(), a.calendarImport(), a.calendarVersions(), a.calendarDelete()))
}

func calendarView(now time.Time) output.View[apiclient.CalendarSummary] {
	return output.View[apiclient.CalendarSummary]{
		Name: func(c apiclient.CalendarSummary) string { return c.Name },
		Columns: []output.Column[apiclient.CalendarSummary]{
			{Title: "ID", Value: func(c apiclient.CalendarSummary) string { return c.ID }, Wide: true},
			{Title: "NAME", Value: func(c apiclient.CalendarSummary) string { return c.Name }},
			{Title: "VERSION", Value: func(c apiclient.CalendarSummary) string { return number(c.Version) }, Right: true},
			{Title: "ZONE", Value: func(c apiclient.CalendarSummary) string { return c.Zone }, Drop: 3},
			{Title: "HOLIDAYS", Value: func(c apiclient.CalendarSummary) string { return number(c.Holidays) }, Right: true},
			{Title: "MAKE-UP", Value: func(c apiclient.CalendarSummary) string { return number(c.MakeUpDays) }, Right: true},
			{Title: "BLACKOUTS", Value: func(c apiclient.CalendarSummary) string { return number(c.Blackouts) }, Right: true},
			{Title: "UPDATED", Value: func(c apiclient.CalendarSummary) string { return output.When(&c.UpdatedAt, now) }, Drop: 2},
			{Title: "BY", Value: func(c apiclient.CalendarSummary) string { return c.UpdatedBy }, Wide: true},
		},
	}
}

func listCalendars(ctx context.Context, s *session) ([]apiclient.Doc[apiclient.CalendarSummary], error) {
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

// findCalendar takes an id or a name; names win.
func findCalendar(ctx context.Context, s *session, word string) (apiclient.Doc[apiclient.Calendar], error) {
	list, err := listCalendars(ctx, s)
	if err != nil {
		return apiclient.Doc[apiclient.Calendar]{}, err
	}
	near := []string{}
	for _, c := range list {
		if c.Value.Name == word {
			return s.GetCalendar(ctx, c.Value.ID)
		}
		near = append(near, c.Value.Name)
	}
	if isID(word) {
		return s.GetCalendar(ctx, word)
	}
	return apiclient.Doc[apiclient.Calendar]{}, notFound("calendar", word, near)
}

func (a *App) calendarList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List calendars", Args: cobra.NoArgs, Example: "  carillon calendar list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			list, err := listCalendars(cmd.Context(), s)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.say("There are no calendars.")
			}
			return output.List(s.Printer, calendarView(a.now()), list)
		},
	}
}

func (a *App) calendarGet() *cobra.Command {
	return &cobra.Command{
		Use: "get CALENDAR", Short: "Show one calendar; all of it with -o yaml", Args: cobra.ExactArgs(1),
		Example: "  carillon calendar get cn-holidays -o yaml > cn-holidays.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			c, err := findCalendar(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			return output.One(s.Printer, calendarView(a.now()), summary(c))
		},
	}
}

// calendarFields are what can be written of a calendar; a file may also hold
// what get shows beside them.
var (
	calendarFields   = []string{"name", "description", "zone", "weekend", "holidays", "makeUpDays", "blackouts"}
	calendarReadOnly = []string{"id", "version", "createdAt", "updatedAt", "createdBy", "updatedBy"}
)

func (a *App) calendarApply() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Create a calendar from a file, or replace the one of that name", Args: cobra.NoArgs,
		Example: "  carillon calendar apply -f cn-holidays.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usagef("name the calendar's file with -f (- is standard input)")
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			c, err := a.applyCalendar(cmd.Context(), s, file)
			if err != nil {
				return err
			}
			a.say("Calendar %s is at version %d.", output.Clean(c.Value.Name), c.Value.Version)
			return output.One(s.Printer, calendarView(a.now()), summary(c))
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the calendar; - is standard input")
	return cmd
}

func (a *App) applyCalendar(ctx context.Context, s *session, file string) (c apiclient.Doc[apiclient.Calendar], err error) {
	raw, err := a.readInput(file)
	if err != nil {
		return c, err
	}
	fields, err := yamlToJSON(raw)
	if err != nil {
		return c, usagef("%s: %w", file, err)
	}
	for key := range fields {
		if slices.Contains(calendarReadOnly, key) {
			delete(fields, key)
		} else if !slices.Contains(calendarFields, key) {
			return c, usagef("%s: a calendar has no field %q; fields are %s", file, key, strings.Join(calendarFields, ", "))
		}
	}
	name := strings.Trim(string(fields["name"]), `"`)
	list, err := listCalendars(ctx, s)
	if err != nil {
		return c, err
	}
	for _, found := range list {
		if found.Value.Name == name {
			return s.UpdateCalendar(ctx, found.Value.ID, apiclient.UpdateCalendarParams{IfMatch: etag(found.Value.Version)}, apiclient.CalendarSpec{}, apiclient.Body(fields))
		}
	}
	return s.CreateCalendar(ctx, apiclient.CalendarSpec{}, apiclient.Body(fields))
}

func (a *App) calendarImport() *cobra.Command {
	var file string
	var in apiclient.ImportCalendar
	cmd := &cobra.Command{
		Use: "import CALENDAR -f FILE", Short: "Add the events of an iCalendar file; creates the calendar if there is none", Args: cobra.ExactArgs(1),
		Example: "  carillon calendar import cn-holidays -f holidays.ics\n  carillon calendar import freeze -f changes.ics --as blackouts --replace",
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" {
				return usagef("name the file with -f (- is standard input)")
			}
			raw, err := a.readInput(file)
			if err != nil {
				return err
			}
			in.Ical = string(raw)
			s, err := a.connect()
			if err != nil {
				return err
			}
			c, err := a.importCalendar(cmd.Context(), s, args[0], in)
			if err != nil {
				return err
			}
			a.say("Calendar %s is at version %d.", output.Clean(c.Value.Name), c.Value.Version)
			return output.One(s.Printer, calendarView(a.now()), summary(c))
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "iCalendar file; - is standard input")
	choiceFlag(cmd, &in.As, "as", "", []string{"auto", "holidays", "make_up_days", "blackouts"}, "auto, holidays, make_up_days or blackouts (default: auto)")
	cmd.Flags().BoolVar(&in.Replace, "replace", false, "remove what the calendar has of that kind first")
	return cmd
}

// importCalendar leaves no empty calendar behind when the file is refused.
func (a *App) importCalendar(ctx context.Context, s *session, word string, in apiclient.ImportCalendar) (apiclient.Doc[apiclient.Calendar], error) {
	c, err := findCalendar(ctx, s, word)
	created := codeOf(err) == exitNotFound && !isID(word)
	if created {
		c, err = s.CreateCalendar(ctx, apiclient.CalendarSpec{Name: word})
	}
	if err != nil {
		return c, err
	}
	filled, err := s.ImportCalendar(ctx, c.Value.ID, apiclient.ImportCalendarParams{IfMatch: etag(c.Value.Version)}, in)
	if err != nil && created {
		err = errors.Join(err, gone(s.DeleteCalendar(ctx, c.Value.ID)))
	}
	return filled, err
}

func (a *App) calendarVersions() *cobra.Command {
	return &cobra.Command{
		Use: "versions CALENDAR", Short: "List a calendar's versions, newest first", Args: cobra.ExactArgs(1),
		Example: "  carillon calendar versions cn-holidays",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			c, err := findCalendar(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			list, err := apiclient.ListOf[apiclient.CalendarVersion](cmd.Context(), 0, s.ListCalendarVersions, c.Value.ID, apiclient.ListCalendarVersionsParams{})
			if err != nil {
				return err
			}
			return output.List(s.Printer, output.View[apiclient.CalendarVersion]{
				Name: func(v apiclient.CalendarVersion) string { return number(v.Version) },
				Columns: []output.Column[apiclient.CalendarVersion]{
					{Title: "VERSION", Value: func(v apiclient.CalendarVersion) string { return number(v.Version) }, Right: true},
					{Title: "CREATED", Value: func(v apiclient.CalendarVersion) string { return output.Stamp(v.CreatedAt) }},
					{Title: "BY", Value: func(v apiclient.CalendarVersion) string { return v.CreatedBy }},
				},
			}, list)
		},
	}
}

func (a *App) calendarDelete() *cobra.Command {
	return a.deleteCommand("calendar", &cobra.Command{
		Use: "delete CALENDAR", Short: "Delete a calendar that no job uses",
		Example: "  carillon calendar delete old-holidays --yes",
	}, func(ctx context.Context, s *session, word string) (string, func() error, error) {
		c, err := findCalendar(ctx, s, word)
		return c.Value.Name, func() error { return gone(s.DeleteCalendar(ctx, c.Value.ID)) }, err
	})
}
