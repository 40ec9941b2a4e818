package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
)

func newBackupCommand() *cobra.Command {
	var o admin.BackupOptions
	var format string
	var flags *pflag.FlagSet
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the SQLite database into a file while the server works",
		Long: `Copies the database of --data as it is at one instant, while a server goes on with
it, and checks the copy. FILE appears when it is whole and on disk, with FILE.sha256
beside it (sha256sum -c). An existing FILE is left alone without --force.

FILE holds hashes of passwords and tokens, inputs, results and logs: only its owner
may read it. The sealing key, which opens the secrets of connections, webhooks and
certificates in it, is not in it: keep a copy of it somewhere else, or have it put
beside FILE with --with-sealing-key where nobody else reads.

A database on a server is copied by its own tools: docs/guide/backup.md.`,
		Example: `  carillon backup /backup/carillon-$(date +%F).db --data /var/lib/carillon
  carillon backup /backup/carillon.db --config /etc/carillon/server.yaml --force -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := serverConfig(cmd.ErrOrStderr(), flags)
			if err != nil {
				return err
			}
			if _, err := os.Stat(config.DataDir); config.Database == "" && err != nil { // it is not made for a path that is wrong
				return fmt.Errorf("no database: %w", err)
			}
			began := time.Now()
			o.File = args[0]
			made, err := admin.MakeBackup(cmd.Context(), config, o)
			if err != nil {
				return asUsage(err)
			}
			return sayBackup(cmd.OutOrStdout(), cmd.ErrOrStderr(), format, made, time.Since(began))
		},
	}
	flags = someServerFlags(cmd, "config", "data", "database", "sealing-key-file")
	cmd.Flags().BoolVar(&o.Replace, "force", false, "write over a file of that name")
	cmd.Flags().BoolVar(&o.SealingKey, "with-sealing-key", false, "put the sealing key beside it, as FILE.sealing.key")
	cli.FormatFlag(cmd, &format)
	return cmd
}

func newRestoreCommand() *cobra.Command {
	var o admin.RestoreOptions
	var loaded bool
	var format string
	var flags *pflag.FlagSet
	cmd := &cobra.Command{
		Use:   "restore FILE | --loaded",
		Short: "Put a backup in the place of the SQLite database of a stopped server",
		Long: `Compares FILE with FILE.sha256 if that is there, checks the database in it and its
version, and puts it in the place of the database of --data, which no process may
have open. The one that was there is kept beside it.

What ran after the backup is not known to it. So the next start fires nothing until
an operator has said that this database is the right one (carillon cluster
accept-history); until then jobs can be looked at and paused. --accept-history says
so now.

With --loaded the database is one on a server into which its own tools have loaded a
backup: its nodes are told so.`,
		Example: `  carillon restore /backup/carillon-2026-11-26.db --data /var/lib/carillon
  carillon restore --loaded --database 'mysql://carillon:…@db:3306/carillon'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if loaded == (len(args) == 1) {
				return cli.Usagef("give a FILE, or --loaded for a database on a server")
			}
			config, err := serverConfig(cmd.ErrOrStderr(), flags)
			if err != nil {
				return err
			}
			if loaded {
				at, err := admin.DoubtRestored(cmd.Context(), config, o.AcceptHistory)
				if err != nil {
					return asUsage(err)
				}
				return sayRestored(cmd.OutOrStdout(), cmd.ErrOrStderr(), format, admin.Restoration{At: at, Held: !o.AcceptHistory, Notes: []string{}})
			}
			o.File = args[0]
			restored, err := admin.Restore(cmd.Context(), config, o)
			if err != nil {
				return asUsage(err)
			}
			return sayRestored(cmd.OutOrStdout(), cmd.ErrOrStderr(), format, restored)
		},
	}
	flags = someServerFlags(cmd, "config", "data", "database", "sealing-key-file")
	cmd.Flags().BoolVar(&loaded, "loaded", false, "a backup was loaded into the database server: hold its nodes until an operator accepts it")
	cmd.Flags().BoolVar(&o.AcceptHistory, "accept-history", false, "let the next start fire at once, though runs since the backup may be repeated")
	cli.FormatFlag(cmd, &format)
	return cmd
}

// sayBackup prints the file's name, for scripts, and the rest for people.
func sayBackup(out, talk io.Writer, format string, b admin.Backup, took time.Duration) error {
	if format == "json" {
		return printJSON(out, b)
	}
	fmt.Fprintf(talk, "%s holds all that was committed before %s: %.1f MB in %s, checked.\n",
		b.File, b.At.Format(time.RFC3339), float64(b.Bytes)/1e6, took.Round(10*time.Millisecond))
	if b.SealingKey == "" {
		fmt.Fprintln(talk, "The sealing key is not in it. Keep a copy of it somewhere else: without it the server does not start with this backup.")
	} else {
		fmt.Fprintf(talk, "%s opens all secrets in it: keep them apart.\n", b.SealingKey)
	}
	_, err := fmt.Fprintln(out, b.File)
	return err
}

func sayRestored(out, talk io.Writer, format string, r admin.Restoration) error {
	if format == "json" {
		return printJSON(out, r)
	}
	if r.Database != "" {
		fmt.Fprintf(talk, "%s is the backup of %s now.\n", r.Database, r.At.Format(time.RFC3339))
	} else {
		fmt.Fprintf(talk, "The last sign of life in the database is of %s.\n", r.At.Format(time.RFC3339))
	}
	if r.Aside != "" {
		fmt.Fprintf(talk, "The database that was there is %s.\n", r.Aside)
	}
	if r.SealingKey != "" {
		fmt.Fprintf(talk, "The sealing key that lay beside the backup is %s now.\n", r.SealingKey)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(talk, "Note: %s.\n", note)
	}
	if r.Held {
		fmt.Fprintln(talk, "Next: start the server. It fires nothing until you say that this database is the right one: carillon cluster accept-history\n"+
			"Before that, pause the jobs that must not be repeated: carillon job pause JOB. See docs/guide/backup.md.")
	} else {
		fmt.Fprintln(talk, "Next: start the server. It fires at once; what is due since the backup goes by each job's misfire policy.")
	}
	return nil
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
