package script

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/agent"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/document"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
)

var kind = document.Kind{
	Noun: "script", Path: "scripts", Versioned: true, Note: "note", Short: "Keep scripts that agents run, and say what agents may do",
	Example:    "  carillon script push report -f report.sh --note 'first version'\n  carillon script diff report\n  carillon script policy --languages shell,python",
	DeleteNote: " that no job uses",
	Columns:    []document.Column{{Title: "LANGUAGE", Path: "spec.language"}},
}

// Command is carillon script with what is below it.
func Command(a *cli.App) *cobra.Command {
	return document.Command(a, kind, scriptShow(a), scriptPush(a), scriptDiff(a), scriptPolicy(a), scriptKey(a), callbackSecret(a))
}

// word is a text of a document's spec.
func word(d document.Document, field string) string {
	text, _ := d.Value.Spec[field].(string)
	return text
}

func scriptShow(a *cli.App) *cobra.Command {
	var version int64
	cmd := &cobra.Command{
		Use: "show SCRIPT", Short: "Print a script's content", Args: cobra.ExactArgs(1),
		Example: "  carillon script show report > report.sh\n  carillon script show report --version 3",
		RunE: cli.About(a, kind.Find, func(cmd *cobra.Command, s *cli.Session, d document.Document, _ []string) (err error) {
			if version != 0 {
				d, err = kind.Of(s).Version(cmd.Context(), d.Value.ID, version)
			} else {
				d, err = kind.Of(s).Get(cmd.Context(), d.Value.ID)
			}
			if err == nil {
				_, err = fmt.Fprint(a.Out, word(d, "content"))
			}
			return err
		}),
	}
	cmd.Flags().Int64Var(&version, "version", 0, "of this version (default: the newest)")
	return cmd
}

var scriptLanguages = []string{"shell", "python", "node", "php", "powershell"}

// languageOf tells a script's language by its file's name.
var languageOf = map[string]string{".sh": "shell", ".bash": "shell", ".py": "python", ".js": "node", ".php": "php", ".ps1": "powershell"}

func scriptPush(a *cli.App) *cobra.Command {
	var file, language, note string
	cmd := &cobra.Command{
		Use: "push NAME -f FILE", Short: "Write a new version of a script, or create it", Args: cobra.ExactArgs(1),
		Example: "  carillon script push report -f report.sh --note 'skips empty days'",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if file == "" {
				return cli.Usagef("name the script's file with -f (- is standard input)")
			}
			raw, err := a.ReadInput(file)
			if err != nil {
				return err
			}
			if language == "" {
				language = languageOf[strings.ToLower(filepath.Ext(file))]
			}
			return push(cmd.Context(), a, s, args[0], map[string]any{"language": language, "content": string(raw), "note": note})
		}),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the script; - is standard input")
	cli.ChoiceFlag(cmd, &language, "language", "", scriptLanguages, "of a new script: "+cli.OrList(scriptLanguages)+" (default: by the file's name)")
	cmd.Flags().StringVar(&note, "note", "", "why; kept with the version")
	return cmd
}

// push writes a script, unless it has the content already.
func push(ctx context.Context, a *cli.App, s *cli.Session, name string, spec map[string]any) error {
	of := kind.Of(s)
	d, err := of.Get(ctx, name)
	switch {
	case err == nil && word(d, "content") == spec["content"]:
		a.Say("Script %s stays at version %d: it has this content already.", output.Clean(d.Value.Name), d.Value.Version)
		return output.One(s.Printer, kind.View(a.Now()), d)
	case err == nil:
		spec["language"], spec["description"] = word(d, "language"), word(d, "description")
		d, err = of.Replace(ctx, d.Value.ID, cli.ETag(d.Value.Version), map[string]any{"name": d.Value.Name, "labels": d.Value.Labels, "spec": spec})
	case cli.CodeOf(err) == cli.ExitNotFound && !cli.IsID(name):
		if spec["language"] == "" {
			return cli.Usagef("say which language it is: --language %s", cli.OrList(scriptLanguages))
		}
		d, err = of.Create(ctx, map[string]any{"name": name, "spec": spec})
	}
	if err != nil {
		return err
	}
	if hint := agent.WindowsHint(word(d, "language"), word(d, "content")); hint != "" {
		a.Say("Warning: %s.", hint)
	}
	return kind.Say(a, s, d)
}
