package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
)

func newProvisionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "provision",
		Short: "Check a provision file, and make the secrets that it names",
		Long: `A provision file has documents as "carillon apply" takes them, and those of accounts, join
tokens and API keys. "carillon server --provision FILE" makes the missing ones at its start
(docs/guide/provision.md). Secrets are in files or variables that it names.`,
		Example: "  carillon provision secret join-token > secrets/shop_join_token\n  carillon provision check provision.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newProvisionCheckCommand(), newProvisionSecretCommand())
	return cmd
}

func newProvisionCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Judge a provision file and the secrets that it names, without a server",
		Long: `Reads a provision file, or a folder of such files, and the files and variables that it
names. It makes the documents on an empty database in a temporary folder, as a server that
starts does first. Exit code 2: there are mistakes, which are told with their lines.`,
		Example: "  carillon provision check /etc/carillon/provision.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("name one provision file, or one folder of such files: carillon provision check /etc/carillon/provision.yaml")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			summary, err := admin.CheckProvision(cmd.Context(), args[0], "")
			if err != nil {
				return asUsage(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s declares %s.\n", args[0], summary)
			return err
		},
	}
}

func newProvisionSecretCommand() *cobra.Command {
	kinds := admin.SecretKinds()
	return &cobra.Command{
		Use:       "secret " + strings.Join(kinds, "|"),
		Short:     "Print a new random secret, for a file or a secret store",
		Long:      "Prints a secret that nobody has seen yet and that is kept nowhere: the place it is\nwritten to is the only one.",
		Example:   "  (umask 077; carillon provision secret join-token > secrets/shop_join_token)",
		Args:      cobra.ExactArgs(1),
		ValidArgs: kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			secret, err := admin.NewSecret(args[0])
			if err != nil {
				return cli.Fail(cli.ExitUsage, err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), secret)
			return err
		},
	}
}
