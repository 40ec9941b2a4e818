package command

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/client"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
)

func (a *App) calendarCommand() *cobra.Command {
	return a.serverFlags(group("calendar", "Keep holidays, make-up days and blackouts",
		"  carillon calendar import cn-holidays -f holidays.ics\n  carillon calendar get cn-holidays -o yaml",
		a.calendarList(), a.calendarGet(), a.calendarApply(), a.calendarImport(), a.calendarVersions(), a.calendarDelete()))
}

func calendarView(now time.Time) output.View[client.Calendar] {
	number := func(n client.Count) string { return strconv.Itoa(int(n)) }
	return output.View[client.Calendar]{
		Name: func(c client.Calendar) string { return c.Name },
		Columns: []output.Column[client.Calendar]{
			{Title: "ID", Value: func(c client.Calendar) string { return c.ID }, Wide: true},
			{Title: "NAME", Value: func(c client.Calendar) string { return c.Name }},
			{Title: "VERSION", Value: func(c client.Calendar) string { return strconv.FormatInt(c.Version, 10) }, Right: true},
			{Title: "ZONE", Value: func(c client.Calendar) string { return c.Zone }, Drop: 3},
			{Title: "HOLIDAYS", Value: func(c client.Calendar) string { return number(c.Holidays) }, Right: true},
			{Title: "MAKE-UP", Value: func(c client.Calendar) string { return number(c.MakeUpDays) }, Right: true},
			{Title: "BLACKOUTS", Value: func(c client.Calendar) string { return number(c.Blackouts) }, Right: true},
			{Title: "UPDATED", Value: func(c client.Calendar) string { return output.When(&c.UpdatedAt, now) }, Drop: 2},
			{Title: "BY", Value: func(c client.Calendar) string { return c.UpdatedBy }, Wide: true},
		},
	}
}

// findCalendar takes an id or a name; names win.
func findCalendar(ctx context.Context, s *session, word string) (client.Doc[client.Calendar], error) {
	list, err := s.Calendars(ctx)
	if err != nil {
		return client.Doc[client.Calendar]{}, err
	}
	near := []string{}
	for _, c := range list {
		if c.Value.Name == word {
			return s.Calendar(ctx, c.Value.ID)
		}
		near = append(near, c.Value.Name)
	}
	if isID(word) {
		return s.Calendar(ctx, word)
	}
	return client.Doc[client.Calendar]{}, notFound("calendar", word, near)
}

func (a *App) calendarList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List calendars", Args: cobra.NoArgs, Example: "  carillon calendar list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			list, err := s.Calendars(cmd.Context())
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
			return output.One(s.Printer, calendarView(a.now()), c)
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
			return output.One(s.Printer, calendarView(a.now()), c)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the calendar; - is standard input")
	return cmd
}

func (a *App) applyCalendar(ctx context.Context, s *session, file string) (c client.Doc[client.Calendar], err error) {
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
	list, err := s.Calendars(ctx)
	if err != nil {
		return c, err
	}
	for _, found := range list {
		if found.Value.Name == name {
			return s.ReplaceCalendar(ctx, found.Value.ID, found.Value.Version, fields)
		}
	}
	return s.CreateCalendar(ctx, fields)
}

func (a *App) calendarImport() *cobra.Command {
	var file string
	var in client.CalendarImport
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
			in.ICal = string(raw)
			s, err := a.connect()
			if err != nil {
				return err
			}
			c, err := a.importCalendar(cmd.Context(), s, args[0], in)
			if err != nil {
				return err
			}
			a.say("Calendar %s is at version %d.", output.Clean(c.Value.Name), c.Value.Version)
			return output.One(s.Printer, calendarView(a.now()), c)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "iCalendar file; - is standard input")
	choiceFlag(cmd, &in.As, "as", "", []string{"auto", "holidays", "make_up_days", "blackouts"}, "auto, holidays, make_up_days or blackouts (default: auto)")
	cmd.Flags().BoolVar(&in.Replace, "replace", false, "remove what the calendar has of that kind first")
	return cmd
}

// importCalendar leaves no empty calendar behind when the file is refused.
func (a *App) importCalendar(ctx context.Context, s *session, word string, in client.CalendarImport) (client.Doc[client.Calendar], error) {
	c, err := findCalendar(ctx, s, word)
	created := codeOf(err) == exitNotFound && !isID(word)
	if created {
		c, err = s.CreateCalendar(ctx, map[string]string{"name": word})
	}
	if err != nil {
		return c, err
	}
	filled, err := s.ImportCalendar(ctx, c.Value.ID, c.Value.Version, in)
	if err != nil && created {
		err = errors.Join(err, s.DeleteCalendar(ctx, c.Value.ID))
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
			list, err := s.CalendarVersions(cmd.Context(), c.Value.ID)
			if err != nil {
				return err
			}
			return output.List(s.Printer, output.View[client.CalendarVersion]{
				Name: func(v client.CalendarVersion) string { return strconv.FormatInt(v.Version, 10) },
				Columns: []output.Column[client.CalendarVersion]{
					{Title: "VERSION", Value: func(v client.CalendarVersion) string { return strconv.FormatInt(v.Version, 10) }, Right: true},
					{Title: "CREATED", Value: func(v client.CalendarVersion) string { return output.Stamp(v.CreatedAt) }},
					{Title: "BY", Value: func(v client.CalendarVersion) string { return v.CreatedBy }},
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
		return c.Value.Name, func() error { return s.DeleteCalendar(ctx, c.Value.ID) }, err
	})
}
