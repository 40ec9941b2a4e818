package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/document"
)

func exportCommand(a *cli.App) *cobra.Command {
	var declared, whole, all bool
	cmd := &cobra.Command{
		Use: "export [KIND…]", Short: "Write all documents as YAML that apply takes", Args: cobra.ArbitraryArgs,
		Long: `Writes the jobs, calendars, executors and other documents of the tenant as YAML, for a
repository or another server. KIND is a kind as in the documents, such as Job. Secrets are
written as fingerprints: an apply to the same server keeps them.`,
		Example: "  carillon export > shop.yaml\n  carillon export --all-tenants > cluster.yaml\n  carillon export Calendar Job | carillon apply -f - --context staging",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			var documents []json.RawMessage
			var err error
			if all {
				documents, err = exportAll(cmd.Context(), a, s, args, declared)
			} else {
				documents, err = export(cmd.Context(), s, args, declared, whole, "")
			}
			if err != nil {
				return err
			}
			if s.Printer.Format == output.JSON {
				list := json.NewEncoder(a.Out)
				list.SetIndent("", "  ")
				list.SetEscapeHTML(false)
				return list.Encode(append([]json.RawMessage{}, documents...)) // an empty list, not null
			}
			for _, raw := range documents {
				fmt.Fprintln(a.Out, "---")
				if err := document.WriteYAML(a.Out, raw); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&whole, "whole", false, "also the tenant itself (quotas, limit, retention), its members, and the cells")
	cmd.Flags().BoolVar(&all, "all-tenants", false, "the whole cluster: all tenants with their settings and members, as a platform administrator")
	cmd.Flags().BoolVar(&declared, "declared", false, "also jobs that the code of an application declares")
	return cmd
}

// wholeKinds are left out of an export unless they are asked for: an export is often applied to
// another tenant, which has settings and members of its own.
var wholeKinds = []string{"Tenant", "Member", "Cell"}

// export reads the documents of all kinds, or of those that are named. They name their tenant
// unless it is empty.
func export(ctx context.Context, s *cli.Session, only []string, declared, whole bool, tenant string) (out []json.RawMessage, err error) {
	kinds, err := s.ListKinds(ctx, apiclient.ListKindsParams{})
	if err != nil {
		return nil, err
	}
	known := []string{}
	for _, k := range kinds.Value.Items {
		known = append(known, k.Name)
		if len(only) > 0 && !slices.Contains(only, k.Name) || len(only) == 0 && slices.Contains(wholeKinds, k.Name) && !whole {
			continue
		}
		from := apiclient.Documents{Client: s.Client.Client, Path: k.Path}
		if declared && k.Name == "Job" {
			from.Query = url.Values{"declared": {"true"}}
		}
		list, err := from.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, d := range list {
			if k.Brief {
				if d, err = from.Get(ctx, d.Value.ID); err != nil {
					return nil, err
				}
			}
			of := tenant
			if k.Name == "Tenant" || k.Name == "Cell" {
				of = "" // they belong to the cluster
			}
			raw, err := written(d.Raw, of)
			if err != nil {
				return nil, err
			}
			out = append(out, raw)
		}
	}
	for _, name := range only {
		if !slices.Contains(known, name) {
			return nil, cli.Usagef("%q is no kind: use %s", name, cli.OrList(known))
		}
	}
	return out, nil
}

// written are the parts of an answer that a document has.
func written(answer json.RawMessage, tenant string) (json.RawMessage, error) {
	var d struct {
		APIVersion json.RawMessage `json:"apiVersion"`
		Kind       json.RawMessage `json:"kind"`
		Name       json.RawMessage `json:"name"`
		Tenant     string          `json:"tenant,omitempty"`
		Labels     json.RawMessage `json:"labels,omitempty"`
		Spec       json.RawMessage `json:"spec"`
		Secrets    json.RawMessage `json:"secrets,omitempty"`
	}
	if err := json.Unmarshal(answer, &d); err != nil {
		return nil, err
	}
	if string(d.Secrets) == "{}" {
		d.Secrets = nil
	}
	d.Tenant = tenant
	return json.Marshal(d)
}
