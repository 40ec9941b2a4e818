package script

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/agent"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Command is carillon script with what is below it.
func Command(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("script", "Keep scripts that agents run, and say what agents may do",
		"  carillon script push report -f report.sh --note 'first version'\n  carillon script diff report\n  carillon script policy --languages shell,python",
		scriptList(a), scriptShow(a), scriptPush(a), scriptRevisions(a), scriptDiff(a), scriptRestore(a), scriptDelete(a),
		scriptPolicy(a), scriptKey(a), callbackSecret(a)))
}

func scriptView(now time.Time) output.View[apiclient.Script] {
	return output.View[apiclient.Script]{
		Name: func(s apiclient.Script) string { return s.Name },
		Columns: []output.Column[apiclient.Script]{
			{Title: "ID", Value: func(s apiclient.Script) string { return s.ID }, Wide: true},
			{Title: "NAME", Value: func(s apiclient.Script) string { return s.Name }},
			{Title: "LANGUAGE", Value: func(s apiclient.Script) string { return s.Language }},
			{Title: "REVISION", Value: func(s apiclient.Script) string { return cli.Number(s.Revision) }, Right: true},
			{Title: "UPDATED", Value: func(s apiclient.Script) string { return output.When(&s.UpdatedAt, now) }, Drop: 2},
			{Title: "BY", Value: func(s apiclient.Script) string { return s.UpdatedBy }, Drop: 3},
		},
	}
}

func listScripts(ctx context.Context, s *cli.Session) ([]apiclient.Doc[apiclient.Script], error) {
	return apiclient.List[apiclient.Script](ctx, 0, s.ListScripts, apiclient.ListScriptsParams{})
}

// findScript takes an id or a name.
func findScript(ctx context.Context, s *cli.Session, word string) (apiclient.Doc[apiclient.Script], error) {
	return cli.Find(ctx, "script", word, s.GetScript, func() ([]apiclient.Doc[apiclient.Script], error) { return listScripts(ctx, s) },
		func(c apiclient.Script) (id, name string) { return c.ID, c.Name })
}

// onScript is a command about one script.
func onScript(a *cli.App, cmd *cobra.Command, do func(ctx context.Context, s *cli.Session, script apiclient.Script, args []string) error) *cobra.Command {
	cmd.RunE = cli.About(a, findScript, func(cmd *cobra.Command, s *cli.Session, script apiclient.Doc[apiclient.Script], args []string) error {
		return do(cmd.Context(), s, script.Value, args[1:])
	})
	return cmd
}

func scriptList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List scripts", Args: cobra.NoArgs, Example: "  carillon script list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := listScripts(cmd.Context(), s)
			return cli.PrintList(a, s, scriptView(a.Now()), list, err, "There are no scripts.")
		}),
	}
}

func scriptShow(a *cli.App) *cobra.Command {
	var revision int64
	cmd := onScript(a, &cobra.Command{
		Use: "show SCRIPT", Short: "Print a script's content", Args: cobra.ExactArgs(1),
		Example: "  carillon script show report > report.sh\n  carillon script show report --revision 3",
	}, func(ctx context.Context, s *cli.Session, script apiclient.Script, _ []string) error {
		content := script.Content
		if revision != 0 {
			r, err := s.GetScriptRevision(ctx, script.ID, revision)
			if err != nil {
				return err
			}
			content = r.Value.Content
		}
		_, err := fmt.Fprint(a.Out, content)
		return err
	})
	cmd.Flags().Int64Var(&revision, "revision", 0, "of this revision (default: the newest)")
	return cmd
}

var scriptLanguages = []string{"shell", "python", "node", "php", "powershell"}

// languageOf tells a script's language by its file's name.
var languageOf = map[string]string{".sh": "shell", ".bash": "shell", ".py": "python", ".js": "node", ".php": "php", ".ps1": "powershell"}

func scriptPush(a *cli.App) *cobra.Command {
	var file, language, note string
	cmd := &cobra.Command{
		Use: "push NAME -f FILE", Short: "Write a new revision of a script, or create it", Args: cobra.ExactArgs(1),
		Example: "  carillon script push report -f report.sh --note 'skips empty days'",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if file == "" {
				return cli.Usagef("name the script's file with -f (- is standard input)")
			}
			raw, err := a.ReadInput(file)
			if err != nil {
				return err
			}
			found, err := findScript(cmd.Context(), s, args[0])
			before := found.Value.Revision
			switch {
			case err == nil:
				found, err = s.UpdateScript(cmd.Context(), found.Value.ID, apiclient.UpdateScriptParams{IfMatch: cli.ETag(found.Value.Revision)},
					apiclient.ScriptWrite{Content: string(raw), Note: note})
			case cli.CodeOf(err) == cli.ExitNotFound && !cli.IsID(args[0]):
				if language == "" {
					language = languageOf[strings.ToLower(filepath.Ext(file))]
				}
				if language == "" {
					return cli.Usagef("say which language it is: --language %s", cli.OrList(scriptLanguages))
				}
				found, err = s.CreateScript(cmd.Context(), apiclient.ScriptCreate{Name: args[0], Language: language, Content: string(raw), Note: note})
			}
			if err != nil {
				return err
			}
			if found.Value.Revision == before {
				a.Say("Script %s stays at revision %d: it has this content already.", output.Clean(found.Value.Name), before)
			} else {
				a.Say("Script %s is at revision %d.", output.Clean(found.Value.Name), found.Value.Revision)
			}
			if hint := agent.WindowsHint(found.Value.Language, string(raw)); hint != "" {
				a.Say("Warning: %s.", hint)
			}
			return output.One(s.Printer, scriptView(a.Now()), found)
		}),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the script; - is standard input")
	cli.ChoiceFlag(cmd, &language, "language", "", scriptLanguages, "of a new script: "+cli.OrList(scriptLanguages)+" (default: by the file's name)")
	cmd.Flags().StringVar(&note, "note", "", "why; kept with the revision")
	return cmd
}

func scriptRevisions(a *cli.App) *cobra.Command {
	return onScript(a, &cobra.Command{
		Use: "revisions SCRIPT", Short: "List a script's revisions, newest first", Args: cobra.ExactArgs(1),
		Example: "  carillon script revisions report",
	}, func(ctx context.Context, s *cli.Session, script apiclient.Script, _ []string) error {
		list, err := apiclient.ListOf[apiclient.ScriptRevision](ctx, 0, s.ListScriptRevisions, script.ID, apiclient.ListScriptRevisionsParams{})
		return cli.PrintList(a, s, output.View[apiclient.ScriptRevision]{
			Name: func(r apiclient.ScriptRevision) string { return cli.Number(r.Revision) },
			Columns: []output.Column[apiclient.ScriptRevision]{
				{Title: "REVISION", Value: func(r apiclient.ScriptRevision) string { return cli.Number(r.Revision) }, Right: true},
				{Title: "CREATED", Value: func(r apiclient.ScriptRevision) string { return output.Stamp(r.CreatedAt) }},
				{Title: "BY", Value: func(r apiclient.ScriptRevision) string { return r.CreatedBy }},
				{Title: "NOTE", Value: func(r apiclient.ScriptRevision) string { return cli.FirstLine(r.Note) }},
				{Title: "SHA-256", Value: func(r apiclient.ScriptRevision) string { return r.Sha256 }, Wide: true},
			},
		}, list, err, "")
	})
}

func scriptRestore(a *cli.App) *cobra.Command {
	var note string
	cmd := onScript(a, &cobra.Command{
		Use: "restore SCRIPT REVISION", Short: "Make an old revision's content the newest, as a new revision", Args: cobra.ExactArgs(2),
		Example: "  carillon script restore report 3 --note 'the new one was too slow'",
	}, func(ctx context.Context, s *cli.Session, script apiclient.Script, args []string) error {
		revision, err := readRevision(args[0])
		if err != nil {
			return err
		}
		d, err := s.RestoreScript(ctx, script.ID, apiclient.ScriptRestore{Revision: revision, Note: note})
		if err != nil {
			return err
		}
		a.Say("Script %s is at revision %d, with the content of revision %d.", output.Clean(d.Value.Name), d.Value.Revision, revision)
		return output.One(s.Printer, scriptView(a.Now()), d)
	})
	cmd.Flags().StringVar(&note, "note", "", "why; kept with the revision")
	return cmd
}

func readRevision(word string) (int64, error) {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 1 {
		return 0, cli.Usagef("a revision is a number from 1, not %q", word)
	}
	return n, nil
}

func scriptDelete(a *cli.App) *cobra.Command {
	return a.DeleteCommand("script", &cobra.Command{
		Use: "delete SCRIPT", Short: "Delete a script that no job uses", Example: "  carillon script delete old-report --yes",
	}, func(ctx context.Context, s *cli.Session, word string) (string, func() error, error) {
		c, err := findScript(ctx, s, word)
		return c.Value.Name, func() error { return cli.Gone(s.DeleteScript(ctx, c.Value.ID)) }, err
	})
}
