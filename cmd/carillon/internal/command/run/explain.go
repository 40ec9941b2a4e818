package run

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
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
		Use: "explain JOB --at INSTANT", Short: "Say why a job did or did not run at an instant",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs,
		Example: "  carillon job explain close-day --at 2026-11-21T02:00:00+08:00",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if at == "" {
				return cli.Usagef("which fire time? Give it with --at, for example --at 2026-11-21T02:00:00Z")
			}
			job, err := cli.FindJob(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			doc, err := s.ExplainFire(cmd.Context(), job.Value.ID, apiclient.ExplainFireParams{At: at})
			if err != nil {
				return err
			}
			return writeExplanation(a, s, doc, lang)
		}),
	}
	cmd.Flags().StringVar(&at, "at", "", "the fire time asked about, RFC 3339")
	a.LanguageFlag(cmd, &lang)
	return cmd
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
