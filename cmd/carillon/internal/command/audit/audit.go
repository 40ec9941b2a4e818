// Package audit answers: who changed what, and did somebody change the record of it?
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

var view = output.View[apiclient.AuditEntry]{
	Name: func(e apiclient.AuditEntry) string { return e.ID },
	Columns: []output.Column[apiclient.AuditEntry]{
		{Title: "TIME", Value: func(e apiclient.AuditEntry) string { return output.Stamp(e.At) }},
		{Title: "ACTOR", Value: func(e apiclient.AuditEntry) string { return e.Actor }},
		{Title: "OPERATION", Value: func(e apiclient.AuditEntry) string { return e.Operation }},
		{Title: "OUTCOME", Value: outcome},
		{Title: "KIND", Value: func(e apiclient.AuditEntry) string { return e.Kind }, Drop: 2},
		{Title: "OBJECT", Value: object},
		{Title: "ADDRESS", Value: func(e apiclient.AuditEntry) string { return e.Address }, Drop: 1},
	},
}

// outcome marks an entry that no node has written.
func outcome(e apiclient.AuditEntry) string {
	if e.Seq < 0 {
		return e.Outcome + ", FORGED"
	}
	return e.Outcome
}

func object(e apiclient.AuditEntry) string {
	if e.ObjectName != "" {
		return e.ObjectName
	}
	return e.ObjectID
}

// Command is carillon audit with what is below it.
func Command(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("audit", "Read the audit log, and verify that nobody changed it",
		"  carillon audit list --object nightly\n  carillon audit verify --head audit-heads.json",
		list(a), export(a), verify(a)))
}

// filters adds the flags that choose entries.
func filters(a *cli.App, cmd *cobra.Command, p *apiclient.ListAuditEntriesParams) (complete func() error) {
	var outcome, from, to string
	f := cmd.Flags()
	f.BoolVar(&p.Cluster, "cluster", false, "the log of the cluster instead of the tenant's (platform administrators)")
	f.StringVar(&p.Actor, "actor", "", "only of this user, or of key:NAME")
	f.StringVar(&p.Operation, "operation", "", "only this operation, such as delete-job")
	f.StringVar(&p.Kind, "kind", "", "only about this kind, such as job")
	f.StringVar(&p.Object, "object", "", "only about the object with this id or name")
	f.StringVar(&from, "from", "", "only since then: 24h ago, or an instant such as 2026-11-21T04:00:00Z")
	f.StringVar(&to, "to", "", "only before then, likewise")
	cli.ChoiceFlag(cmd, &outcome, "outcome", "", []string{"done", "refused"}, "only what was done, or only what was refused")
	return func() (err error) {
		p.Outcome = outcome
		if from != "" {
			if p.From, err = a.InstantBefore("--from", from); err != nil {
				return err
			}
		}
		if to != "" {
			p.To, err = a.InstantBefore("--to", to)
		}
		return err
	}
}

func list(a *cli.App) *cobra.Command {
	var p apiclient.ListAuditEntriesParams
	var limit int
	var complete func() error
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List who has changed what, the newest first", Args: cobra.NoArgs,
		Example: "  carillon audit list\n  carillon audit list --actor anna --from 24h\n  carillon audit list --outcome refused",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if err := complete(); err != nil {
				return err
			}
			entries, err := apiclient.List[apiclient.AuditEntry](cmd.Context(), limit, s.ListAuditEntries, p)
			return cli.PrintList(a, s, view, entries, err, "No entries.")
		}),
	}
	complete = filters(a, cmd, &p)
	cli.LimitFlag(cmd, &limit, 50, "at most this many")
	return cmd
}

func export(a *cli.App) *cobra.Command {
	var p apiclient.ListAuditEntriesParams
	var complete func() error
	cmd := &cobra.Command{
		Use: "export", Short: "Write entries as JSON lines, the newest first", Args: cobra.NoArgs,
		Example: "  carillon audit export --from 720h > audit.jsonl",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if err := complete(); err != nil {
				return err
			}
			count, lines := 0, json.NewEncoder(a.Out)
			for p.Limit = 200; ; {
				page, err := s.ListAuditEntries(cmd.Context(), p)
				if err != nil {
					return err
				}
				for _, e := range page.Value.Items {
					if err := lines.Encode(e); err != nil {
						return err
					}
				}
				count += len(page.Value.Items)
				if page.Value.NextCursor == nil {
					a.Say("Exported %s.", spelling.Count(count, "entry", ""))
					return nil
				}
				p.Cursor = *page.Value.NextCursor
			}
		}),
	}
	complete = filters(a, cmd, &p)
	return cmd
}

func verify(a *cli.App) *cobra.Command {
	var p apiclient.VerifyAuditLogParams
	var file string
	cmd := &cobra.Command{
		Use: "verify", Short: "Look for entries that were deleted, changed or moved", Args: cobra.NoArgs,
		Long: `Walks along the chain of keyed hashes, from the oldest entry on. The server has the key, the
database does not. An end that was cut off together with the row of the chain's ends shows
only against a head that was kept elsewhere: audit-heads.json of the data directory of a
node, a copy of it, or the head that verify prints.`,
		Example: "  carillon audit verify\n  carillon audit verify --head /backup/audit-heads.json",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if file != "" {
				tenant := "0"
				if !p.Cluster {
					me, err := s.Me(cmd.Context())
					if err != nil {
						return err
					}
					tenant = me.Value.Tenant.ID
				}
				head, err := readHead(file, tenant)
				if err != nil {
					return err
				}
				p.HeadSeq, p.HeadHash = head.Seq, head.Hash
			}
			checked, faults := 0, 0
			for {
				step, err := s.VerifyAuditLog(cmd.Context(), p)
				if err != nil {
					return err
				}
				v := step.Value
				for _, f := range v.Faults {
					a.Say("%s: %s", f.Kind, output.Clean(f.Message))
				}
				checked, faults, p.After = checked+int(v.Checked), faults+len(v.Faults), v.Last
				if !v.Done {
					continue
				}
				if v.Unchained > 0 {
					a.Say("%s not chained yet, and will be within seconds.", spelling.Count(v.Unchained, "newer entry is", "newer entries are"))
				}
				if faults > 0 {
					a.Say("Looked at %s. The head, which is not that of a log without faults:", spelling.Count(checked, "entry", ""))
				} else {
					a.Say("Verified %s. The head, to be kept elsewhere:", spelling.Count(checked, "entry", ""))
				}
				if err := json.NewEncoder(a.Out).Encode(v.Head); err != nil {
					return err
				}
				if faults > 0 {
					return cli.Fail(cli.ExitFailed, fmt.Errorf("the audit log has %s", spelling.Count(faults, "fault", "")))
				}
				return nil
			}
		}),
	}
	cmd.Flags().BoolVar(&p.Cluster, "cluster", false, "the log of the cluster instead of the tenant's (platform administrators)")
	cmd.Flags().StringVar(&file, "head", "", "file with a head that was kept: that of verify, or audit-heads.json of a node")
	return cmd
}

type head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// readHead reads a head, or that of a tenant in the file of a node.
func readHead(file, tenant string) (head, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return head{}, cli.Usagef("--head: %v", err)
	}
	var one head
	var all map[string]head
	if err := json.Unmarshal(raw, &one); err == nil && one.Seq > 0 {
		return one, nil
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return head{}, cli.Usagef("--head %s has no head: use a file with {\"seq\": …, \"hash\": …}, or audit-heads.json", file)
	}
	one, found := all[tenant]
	if !found {
		return head{}, cli.Fail(cli.ExitFailed, errors.New("--head "+file+" has no head of this tenant"))
	}
	return one, nil
}
