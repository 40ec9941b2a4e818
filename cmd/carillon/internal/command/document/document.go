// Package document answers: which commands does each kind of documents have?
//
// All kinds have the same commands. A kind brings its names, its columns and the files of its
// secrets, and may add commands of its own.
package document

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Document is a document as the server answers with it.
type Document = apiclient.Doc[apiclient.Document]

// Kind is a kind of documents to the commands.
type Kind struct {
	// Noun is the command, and Path the plural in addresses. Under is the command above it, such
	// as alert; empty: there is none.
	Noun, Under, Path string
	// Short describes the command, and Example shows its use.
	Short, Example string
	// Columns are those of lists, beside name, version and author.
	Columns []Column
	// Secrets are the files of secrets: flags without --, and the secret that each has.
	Secrets []Secret
	// Versioned kinds keep their older versions.
	Versioned bool
	// Note is the field of the spec that says why a version was written; empty: there is none.
	Note string
	// DeleteNote ends the description of delete.
	DeleteNote string
}

// Column shows a value of a document. Path leads to it, such as spec.addresses.
type Column struct {
	Title, Path string
	Right       bool
	Drop        int
	Show        func(any) string // nil: as text; a list with commas
}

// Secret is a secret that a file can hold.
type Secret struct{ Flag, Name, Usage string }

// Command is the command of a kind, with more commands below it.
func Command(a *cli.App, k Kind, more ...*cobra.Command) *cobra.Command {
	below := []*cobra.Command{k.list(a), k.get(a), k.apply(a), k.remove(a), k.restore(a)}
	if k.Versioned {
		below = append(below, k.versions(a), k.revert(a))
	}
	return a.ServerFlags(cli.Group(k.Noun, k.Short, k.Example, append(below, more...)...))
}

// command is the command with the one above it.
func (k Kind) command() string { return strings.TrimSpace(k.Under + " " + k.Noun) }

// Of are the operations of the kind on a server.
func (k Kind) Of(s *cli.Session) apiclient.Documents {
	return apiclient.Documents{Client: s.Client.Client, Path: k.Path}
}

// Find takes an id or a name.
func (k Kind) Find(ctx context.Context, s *cli.Session, word string) (Document, error) {
	of := k.Of(s)
	return cli.Find(ctx, k.Noun, k.command()+" list", word, of.Get, func() ([]Document, error) { return of.List(ctx) },
		func(d apiclient.Document) (id, name string) { return d.ID, d.Name })
}

// View is how documents are shown.
func (k Kind) View(now time.Time) output.View[apiclient.Document] {
	columns := []output.Column[apiclient.Document]{
		{Title: "ID", Value: func(d apiclient.Document) string { return d.ID }, Wide: true},
		{Title: "NAME", Value: func(d apiclient.Document) string { return d.Name }},
	}
	for _, c := range k.Columns {
		columns = append(columns, output.Column[apiclient.Document]{Title: c.Title, Right: c.Right, Drop: c.Drop, Value: func(d apiclient.Document) string {
			value := valueAt(map[string]any{"spec": d.Spec, "status": d.Status}, c.Path)
			if c.Show != nil {
				return c.Show(value)
			}
			return Shown(value)
		}})
	}
	columns = append(columns,
		output.Column[apiclient.Document]{Title: "VERSION", Value: func(d apiclient.Document) string { return cli.Number(d.Version) }, Right: true, Wide: true},
		output.Column[apiclient.Document]{Title: "UPDATED", Value: func(d apiclient.Document) string { return output.When(&d.UpdatedAt, now) }, Drop: 3},
		output.Column[apiclient.Document]{Title: "BY", Value: func(d apiclient.Document) string { return d.UpdatedBy }, Wide: true})
	return output.View[apiclient.Document]{Name: func(d apiclient.Document) string { return d.Name }, Columns: columns}
}

// deletedView is how deleted documents are shown.
func deletedView(now time.Time) output.View[apiclient.Document] {
	return output.View[apiclient.Document]{Name: func(d apiclient.Document) string { return d.Name }, Columns: []output.Column[apiclient.Document]{
		{Title: "ID", Value: func(d apiclient.Document) string { return d.ID }},
		{Title: "NAME", Value: func(d apiclient.Document) string { return d.Name }},
		{Title: "VERSION", Value: func(d apiclient.Document) string { return cli.Number(d.Version) }, Right: true},
		{Title: "DELETED", Value: func(d apiclient.Document) string { return output.When(&d.DeletedAt, now) }},
		{Title: "BY", Value: func(d apiclient.Document) string { return d.DeletedBy }},
	}}
}

func valueAt(from any, path string) any {
	for _, name := range strings.Split(path, ".") {
		members, _ := from.(map[string]any)
		from = members[name]
	}
	return from
}

// Shown is a value as text.
func Shown(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case []any:
		words := make([]string, len(v))
		for i := range v {
			words[i] = Shown(v[i])
		}
		return strings.Join(words, ",")
	}
	return fmt.Sprint(value)
}

func (k Kind) list(a *cli.App) *cobra.Command {
	var deleted bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List " + k.Path, Args: cobra.NoArgs, Example: "  carillon " + k.command() + " list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if deleted {
				return k.ListDeleted(cmd.Context(), a, s)
			}
			list, err := k.Of(s).List(cmd.Context())
			return cli.PrintList(a, s, k.View(a.Now()), list, err, "There are no "+k.Path+".")
		}),
	}
	DeletedFlag(cmd, &deleted)
	return cmd
}

// DeletedFlag is the flag of a list by which ListDeleted takes its place.
func DeletedFlag(cmd *cobra.Command, deleted *bool) {
	cmd.Flags().BoolVar(deleted, "deleted", false, "those that were deleted and can be restored")
}

// ListDeleted shows what can be restored.
func (k Kind) ListDeleted(ctx context.Context, a *cli.App, s *cli.Session) error {
	list, err := k.Of(s).Deleted(ctx)
	return cli.PrintList(a, s, deletedView(a.Now()), list, err, "There are no deleted "+k.Path+".")
}

// FindDeleted finds what can be restored by its name or id.
func (k Kind) FindDeleted(ctx context.Context, s *cli.Session, word string) (Document, error) {
	list, err := k.Of(s).Deleted(ctx)
	return cli.Listed("deleted "+k.Noun, k.command()+" list --deleted", word, list, err, func(d apiclient.Document) (id, name string) { return d.ID, d.Name })
}

func (k Kind) get(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "get " + strings.ToUpper(k.Noun), Short: "Show one " + k.Noun + " and what uses it; all of it with -o yaml", Args: cobra.ExactArgs(1),
		Example: "  carillon " + k.command() + " get NAME -o yaml > " + k.Noun + ".yaml",
		RunE: cli.About(a, k.Find, func(_ *cobra.Command, s *cli.Session, d Document, _ []string) error {
			tellUsers(a, d.Value.UsedBy)
			return output.One(s.Printer, k.View(a.Now()), d)
		}),
	}
}

// tellUsers says what refers to a document.
func tellUsers(a *cli.App, users *apiclient.DocumentUsers) {
	if users == nil {
		return
	}
	names := make([]string, 0, len(users.First)+1)
	for _, u := range users.First {
		names = append(names, u.Kind+" "+output.Clean(u.Name))
	}
	switch rest := users.Count - int64(len(names)); {
	case users.Count == 0:
		a.Say("Used by nothing.")
		return
	case users.More:
		names = append(names, "and more than "+spelling.Count(rest, "other", ""))
	case rest > 0:
		names = append(names, "and "+spelling.Count(rest, "other", ""))
	}
	a.Say("Used by %s.", strings.Join(names, ", "))
}

// Fields are those that a file of a document may have, and readOnly those of an answer.
var (
	fields   = []string{"apiVersion", "kind", "name", "labels", "spec", "secrets"}
	readOnly = []string{"id", "version", "status", "usedBy", "createdAt", "updatedAt", "createdBy", "updatedBy"}
)

func (k Kind) apply(a *cli.App) *cobra.Command {
	var file string
	var from cli.Source
	files := make([]string, len(k.Secrets))
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Create a " + k.Noun + " from a file, or replace the one of that name", Args: cobra.NoArgs,
		Long:    "Creates the " + k.Noun + " of a file, or replaces the one of that name, without a question. The fields are\nthose that \"get -o yaml\" writes, and ${{ env:NAME }} and ${{ file:PATH }} stand for values. carillon apply\nwrites documents of several kinds, and shows what it changes first.",
		Example: "  carillon " + k.command() + " apply -f " + k.Noun + ".yaml",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if file == "" {
				return cli.Usagef("name the %s's file with -f (- is standard input)", k.Noun)
			}
			from.Files = []string{file}
			list, err := from.Read(cmd.Context(), a, s, k.Path)
			if err != nil {
				return err
			}
			body, err := cli.OneObject(list, k.Noun, fields, readOnly)
			if err != nil {
				return err
			}
			if err := k.secrets(a, body, files); err != nil {
				return err
			}
			return cli.Named(k.Apply(cmd.Context(), a, s, body), func(location string) (int, *cli.Placed, string) {
				if path, is := strings.CutPrefix(location, "body."); is {
					return 0, &list[0], path
				}
				return 0, nil, ""
			})
		}),
	}
	from.ValuesFlag(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the "+k.Noun+"; - is standard input")
	for i, secret := range k.Secrets {
		cmd.Flags().StringVar(&files[i], secret.Flag, "", secret.Usage)
	}
	return cmd
}

// secrets puts secrets from files into a body. Without a file the secret stays.
func (k Kind) secrets(a *cli.App, body map[string]json.RawMessage, files []string) error {
	secrets := map[string]string{}
	if raw := body["secrets"]; raw != nil {
		if err := json.Unmarshal(raw, &secrets); err != nil {
			return cli.Usagef("secrets must be texts by name")
		}
	}
	before := len(secrets)
	for i, secret := range k.Secrets {
		if files[i] == "" {
			continue
		}
		raw, err := a.ReadInput(files[i])
		if err != nil {
			return err
		}
		secrets[secret.Name] = strings.TrimRight(string(raw), "\r\n")
		before = -1
	}
	if before == len(secrets) {
		return nil
	}
	raw, err := json.Marshal(secrets)
	body["secrets"] = raw
	return err
}

// Apply creates the document of a body, or replaces the one of its name, and shows it.
func (k Kind) Apply(ctx context.Context, a *cli.App, s *cli.Session, body map[string]json.RawMessage) error {
	d, err := k.put(ctx, s, body)
	if err != nil {
		return err
	}
	return k.Say(a, s, d)
}

// Say shows a document that was written.
func (k Kind) Say(a *cli.App, s *cli.Session, d Document) error {
	a.Say("%s %s is at version %d.", strings.ToUpper(k.Noun[:1])+k.Noun[1:], output.Clean(d.Value.Name), d.Value.Version)
	return output.One(s.Printer, k.View(a.Now()), d)
}

func (k Kind) put(ctx context.Context, s *cli.Session, body map[string]json.RawMessage) (d Document, err error) {
	var name string
	if err := json.Unmarshal(body["name"], &name); err != nil || name == "" {
		return d, cli.Usagef("a %s needs a name", k.Noun)
	}
	of := k.Of(s)
	old, err := of.Get(ctx, name)
	switch {
	case cli.CodeOf(err) == cli.ExitNotFound || err == nil && old.Value.Name != name:
		return of.Create(ctx, body)
	case err != nil:
		return d, err
	}
	return of.Replace(ctx, old.Value.ID, cli.ETag(old.Value.Version), body)
}

func (k Kind) remove(a *cli.App) *cobra.Command {
	return a.DeleteCommand(k.Noun, &cobra.Command{
		Use: "delete " + strings.ToUpper(k.Noun), Short: "Delete a " + k.Noun + k.DeleteNote,
		Example: "  carillon " + k.command() + " delete NAME --yes",
	}, func(ctx context.Context, s *cli.Session, word string) (string, func() error, error) {
		d, err := k.Find(ctx, s, word)
		return d.Value.Name, func() error { return cli.Gone(k.Of(s).Delete(ctx, d.Value.ID)) }, err
	})
}

func (k Kind) restore(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "restore " + strings.ToUpper(k.Noun), Short: "Bring a deleted " + k.Noun + " back, within 30 days", Args: cobra.ExactArgs(1),
		Example: "  carillon " + k.command() + " list --deleted\n  carillon " + k.command() + " restore NAME",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			gone, err := k.FindDeleted(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			d, err := k.Of(s).Restore(cmd.Context(), gone.Value.ID)
			if err != nil {
				return err
			}
			return k.Say(a, s, d)
		}),
	}
}

func (k Kind) versions(a *cli.App) *cobra.Command {
	var diff bool
	cmd := &cobra.Command{
		Use: "versions " + strings.ToUpper(k.Noun) + " [VERSION]", Short: "List the versions of a " + k.Noun + ", newest first, or show one", Args: cobra.RangeArgs(1, 2),
		Long:    "Lists the versions, the newest first. With the number of a version it shows that one, all of it with\n-o yaml. With --diff it shows the values before and after the version, or after the newest one.",
		Example: "  carillon " + k.command() + " versions NAME\n  carillon " + k.command() + " versions NAME 3 -o yaml\n  carillon " + k.command() + " versions NAME 3 --diff",
		RunE: cli.About(a, k.Find, func(cmd *cobra.Command, s *cli.Session, d Document, args []string) (err error) {
			number := d.Value.Version
			if len(args) == 2 {
				if number, err = ReadVersion(args[1]); err != nil {
					return err
				}
			}
			switch {
			case diff:
				return k.difference(cmd.Context(), a, s, d.Value.ID, number)
			case len(args) == 2:
				one, err := k.Of(s).Version(cmd.Context(), d.Value.ID, number)
				if err != nil {
					return err
				}
				return output.One(s.Printer, k.View(a.Now()), one)
			}
			return k.listVersions(cmd.Context(), a, s, d.Value.ID)
		}),
	}
	cmd.Flags().BoolVar(&diff, "diff", false, "show the values before and after the version")
	return cmd
}

func (k Kind) listVersions(ctx context.Context, a *cli.App, s *cli.Session, id string) error {
	list, err := k.Of(s).Versions(ctx, id)
	columns := []output.Column[apiclient.Document]{
		{Title: "VERSION", Value: func(v apiclient.Document) string { return cli.Number(v.Version) }, Right: true},
		{Title: "CREATED", Value: func(v apiclient.Document) string { return output.Stamp(v.CreatedAt) }},
		{Title: "BY", Value: func(v apiclient.Document) string { return v.CreatedBy }},
	}
	if k.Note != "" {
		columns = append(columns, output.Column[apiclient.Document]{
			Title: strings.ToUpper(k.Note), Value: func(v apiclient.Document) string { return cli.FirstLine(Shown(v.Spec[k.Note])) },
		})
	}
	return cli.PrintList(a, s, output.View[apiclient.Document]{Name: func(v apiclient.Document) string { return cli.Number(v.Version) }, Columns: columns}, list, err, "")
}

// difference shows what a version changed.
func (k Kind) difference(ctx context.Context, a *cli.App, s *cli.Session, id string, number int64) error {
	if number == 1 {
		return cli.Usagef("there is no version before version 1")
	}
	var sides [2]Side
	for i := range sides {
		at := number - 1 + int64(i)
		v, err := k.Of(s).Version(ctx, id, at)
		if err != nil {
			return err
		}
		var parts struct{ Spec json.RawMessage }
		if err := json.Unmarshal(v.Raw, &parts); err != nil {
			return fmt.Errorf("read version %d: %w", at, err)
		}
		sides[i] = Side{Number: at, At: v.Value.CreatedAt, By: v.Value.CreatedBy, Spec: parts.Spec}
	}
	return PrintChanges(a, s, "Version", sides[0], sides[1])
}

// ReadVersion reads a number of a version.
func ReadVersion(word string) (int64, error) {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 1 {
		return 0, cli.Usagef("a version is a number from 1, not %q", word)
	}
	return n, nil
}

func (k Kind) revert(a *cli.App) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "revert " + strings.ToUpper(k.Noun) + " VERSION", Short: "Write the contents of an old version of a " + k.Noun + " as a new version", Args: cobra.ExactArgs(2),
		Example: "  carillon " + k.command() + " versions NAME\n  carillon " + k.command() + " revert NAME 3",
		RunE: cli.About(a, k.Find, func(cmd *cobra.Command, s *cli.Session, d Document, args []string) error {
			n, err := ReadVersion(args[1])
			if err != nil {
				return err
			}
			old, err := k.Of(s).Version(cmd.Context(), d.Value.ID, n)
			if err != nil {
				return err
			}
			if k.Note != "" {
				old.Value.Spec[k.Note] = note
			}
			body := map[string]any{"name": d.Value.Name, "labels": old.Value.Labels, "spec": old.Value.Spec}
			written, err := k.Of(s).Replace(cmd.Context(), d.Value.ID, cli.ETag(d.Value.Version), body)
			if err != nil {
				return err
			}
			return k.Say(a, s, written)
		}),
	}
	if k.Note != "" {
		cmd.Flags().StringVar(&note, k.Note, "", "why; kept with the version")
	}
	return cmd
}
