package run

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/schedule"
)

func runExplain(a *cli.App) *cobra.Command {
	var lang string
	cmd := &cobra.Command{
		Use: "explain RUN", Short: "Say why a run did or did not start", Args: cobra.ExactArgs(1),
		Example: "  carillon run explain 7301\n  carillon run explain 7301 --lang zh",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			doc, err := s.ExplainRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return writeExplanation(a, s, doc, lang)
		}),
	}
	a.LanguageFlag(cmd, &lang)
	return cmd
}

// JobExplain is carillon job explain.
func JobExplain(a *cli.App) *cobra.Command {
	var lang, at string
	cmd := &cobra.Command{
		Use: "explain JOB [--at INSTANT]", Short: "Say why a job did or did not run at an instant",
		Long: "Says why a job did or did not run at a fire time. Without --at it is the newest run, or the next\nfire time of a job that has none. Of a paused job it is the pause. A clock time such as 02:00 is\nthe last one that has passed in the zone of the job's schedule, '2026-11-21 02:00' one of that day.",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs,
		Example: "  carillon job explain close-day\n  carillon job explain close-day --at 02:00\n  carillon job explain close-day --at 2026-11-21T02:00:00+08:00",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			job, err := cli.FindJob(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			var asked string
			switch {
			case at != "":
				if asked, err = fireTime(at, job.Value.Schedule.Zone, time.Now()); err != nil {
					return err
				}
			case job.Value.State == "paused":
				return explainPaused(cmd, a, s, job.Value, lang)
			case job.Value.State == "paused":
				return explainPaused(cmd, a, s, job.Value, lang)
			case job.Value.LastRun != nil:
				doc, err := s.ExplainRun(cmd.Context(), job.Value.LastRun.ID)
				if err != nil {
					return err
				}
				return writeExplanation(a, s, doc, lang)
			case job.Value.NextFireAt != nil:
				asked = job.Value.NextFireAt.Format(time.RFC3339Nano)
			default:
				return cli.Usagef("the job has neither run nor a next fire time; ask about an instant with --at, for example --at 2026-11-21T02:00:00Z")
			}
			doc, err := s.ExplainFire(cmd.Context(), job.Value.ID, apiclient.ExplainFireParams{At: asked})
			if err != nil {
				return err
			}
			return writeExplanation(a, s, doc, lang)
		}),
	}
	cmd.Flags().StringVar(&at, "at", "", "the fire time asked about: RFC 3339, a clock time such as 02:00, or a day and a clock time")
	a.LanguageFlag(cmd, &lang)
	return cmd
}

// explainPaused explains the next fire time that the pause of a job keeps from running. A job
// without one has the facts of the pause, and its newest run.
func explainPaused(cmd *cobra.Command, a *cli.App, s *cli.Session, job apiclient.Job, lang string) error {
	next, err := s.NextFires(cmd.Context(), job.ID, apiclient.NextFiresParams{})
	if err != nil {
		return err
	}
	if at := slices.IndexFunc(next.Value.Fires, func(f apiclient.Fire) bool { return f.Excluded == "" }); at >= 0 {
		doc, err := s.ExplainFire(cmd.Context(), job.ID, apiclient.ExplainFireParams{At: next.Value.Fires[at].At.Format(time.RFC3339Nano)})
		if err == nil {
			err = writeExplanation(a, s, doc, lang)
		}
		if err == nil && job.LastRun != nil {
			a.Say("Of its newest run: carillon run explain %s", job.LastRun.ID)
		}
		return err
	}
	pause := ""
	if job.PausedBy != "" {
		pause = " by " + job.PausedBy
	}
	if job.PausedAt != nil {
		pause += " since " + output.Stamp(*job.PausedAt)
	}
	if job.PauseNote != "" {
		pause += " (" + job.PauseNote + ")"
	}
	a.Say("The job is paused%s. Its schedule has no fire time to come.", output.Clean(pause))
	if job.LastRun == nil {
		return nil
	}
	doc, err := s.ExplainRun(cmd.Context(), job.LastRun.ID)
	if err != nil {
		return err
	}
	return writeExplanation(a, s, doc, lang)
}

// fireTime reads --at. An instant without an offset is in the zone of the schedule.
func fireTime(text, zone string, now time.Time) (string, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.Format(time.RFC3339Nano), nil
	}
	in, err := schedule.LoadZone(cmp.Or(zone, "UTC"))
	if err != nil {
		return "", fmt.Errorf("zone of the schedule: %w", err)
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if at, err := time.ParseInLocation(layout, text, in); err == nil {
			return at.Format(time.RFC3339Nano), nil
		}
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		clock, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		day := now.In(in)
		at := time.Date(day.Year(), day.Month(), day.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, in)
		if at.After(now) {
			at = time.Date(day.Year(), day.Month(), day.Day()-1, clock.Hour(), clock.Minute(), clock.Second(), 0, in)
		}
		return at.Format(time.RFC3339Nano), nil
	}
	return "", cli.Usagef("--at %q is no instant: write 2026-11-21T02:00:00Z, or 02:00 or '2026-11-21 02:00' in the zone of the schedule (%s)", text, in)
}

// parties are whose doing it is, by the API's codes.
var parties = map[string]apiclient.Bilingual{
	"handler": {En: "handler", Zh: "处理器"}, "executor": {En: "executor", Zh: "执行器"}, "admin": {En: "admin", Zh: "管理节点"},
	"database": {En: "database", Zh: "数据库"}, "person": {En: "person", Zh: "人员操作"}, "job": {En: "settings of the job", Zh: "任务设置"},
}

// in returns a text in a language, English unless it is zh.
func in(language string, text apiclient.Bilingual) string {
	if language == "zh" {
		return text.Zh
	}
	return text.En
}

func writeExplanation(a *cli.App, s *cli.Session, doc apiclient.Doc[apiclient.Explanation], lang string) error {
	if done, err := output.Machine(s.Printer, doc); done {
		return err
	}
	e := doc.Value
	if _, err := fmt.Fprintln(a.Out, output.Clean(in(lang, e.Summary))); err != nil {
		return err
	}
	if who := in(lang, parties[e.Party]); who != "" {
		label := map[string]string{"en": "  cause: ", "zh": "  原因方："}[lang]
		if _, err := fmt.Fprintln(a.Out, label+who); err != nil {
			return err
		}
	}
	for _, step := range e.Steps {
		if _, err := fmt.Fprintf(a.Out, "  %s  %s\n", output.Stamp(step.At), output.Clean(in(lang, step.Text))); err != nil {
			return err
		}
	}
	if len(e.Instances) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	return output.Rows(s.Printer, []output.Column[apiclient.InstanceVerdict]{
		{Title: "INSTANCE", Value: func(v apiclient.InstanceVerdict) string { return v.Instance.Name }},
		{Title: "VERDICT", Value: func(v apiclient.InstanceVerdict) string { return v.Verdict }},
		{Title: "WHY", Value: func(v apiclient.InstanceVerdict) string { return in(lang, v.Text) }, Drop: 1},
	}, e.Instances)
}
