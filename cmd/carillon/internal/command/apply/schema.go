package apply

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/document"
	"github.com/carillon-sched/carillon/internal/spelling"
)

func schemaCommand(a *cli.App) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "schema [KIND]", Short: "Write the JSON schema of a kind of documents, for editors", Args: cobra.MaximumNArgs(1),
		Example: "  carillon schema Job > job.json\n  carillon schema --dir schemas\n\nA file of documents begins with this line then:\n  # yaml-language-server: $schema=schemas/" + document.AnyKind,
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if (dir == "") == (len(args) == 0) {
				return cli.Usagef("name a kind, or a folder for the schemas of all kinds with --dir")
			}
			if dir != "" {
				return writeSchemas(cmd.Context(), a, s, dir)
			}
			raw, err := schemaOf(cmd.Context(), s, args[0])
			if err == nil {
				_, err = a.Out.Write(raw)
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write the schemas of all kinds into this folder, each as KIND.json, and "+document.AnyKind+" for all of them")
	return cmd
}

func schemaOf(ctx context.Context, s *cli.Session, kind string) ([]byte, error) {
	answer, err := s.GetKindSchema(ctx, kind)
	if err != nil {
		return nil, err
	}
	return document.SchemaFile(answer.Raw)
}

func writeSchemas(ctx context.Context, a *cli.App, s *cli.Session, dir string) error {
	kinds, err := s.ListKinds(ctx, apiclient.ListKindsParams{All: true})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	names := []string{}
	for _, k := range kinds.Value.Items {
		raw, err := schemaOf(ctx, s, k.Name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, k.Name+".json"), raw, 0o600); err != nil {
			return err
		}
		names = append(names, k.Name)
	}
	raw, err := document.AnyKindSchema(names)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, document.AnyKind), raw, 0o600); err != nil {
		return err
	}
	a.Say("%s in %s, also those of the kinds that stand in provision files only. A file of documents begins with: # yaml-language-server: $schema=%s", spelling.Count(len(names), "schema is", "schemas are"), dir, filepath.Join(dir, document.AnyKind))
	return nil
}
