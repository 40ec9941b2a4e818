package broker

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Command is carillon connection with what is below it.
func Command(a *cli.App) *cobra.Command {
	return a.ServerFlags(cli.Group("connection", "Keep connections to message brokers, and try them",
		"  carillon connection apply -f orders.yaml --password-file mq.password\n  carillon connection test orders --exchange shop --routing-key orders.test",
		connectionList(a), connectionGet(a), connectionApply(a), connectionTest(a), connectionDelete(a)))
}

func connectionView(now time.Time) output.View[apiclient.Connection] {
	return output.View[apiclient.Connection]{
		Name: func(c apiclient.Connection) string { return c.Name },
		Columns: []output.Column[apiclient.Connection]{
			{Title: "ID", Value: func(c apiclient.Connection) string { return c.ID }, Wide: true},
			{Title: "NAME", Value: func(c apiclient.Connection) string { return c.Name }},
			{Title: "BROKER", Value: func(c apiclient.Connection) string { return c.Broker }},
			{Title: "ADDRESSES", Value: func(c apiclient.Connection) string { return strings.Join(c.Addresses, ",") }},
			{Title: "TLS", Value: func(c apiclient.Connection) string {
				return map[bool]string{true: "yes"}[c.TLS != nil && c.TLS.Enabled]
			}},
			{Title: "USER", Value: func(c apiclient.Connection) string { return c.Username }, Drop: 2},
			{Title: "VERSION", Value: func(c apiclient.Connection) string { return cli.Number(c.Version) }, Right: true, Wide: true},
			{Title: "UPDATED", Value: func(c apiclient.Connection) string { return output.When(&c.UpdatedAt, now) }, Drop: 3},
			{Title: "BY", Value: func(c apiclient.Connection) string { return c.UpdatedBy }, Wide: true},
		},
	}
}

func listConnections(ctx context.Context, s *cli.Session) ([]apiclient.Doc[apiclient.Connection], error) {
	return apiclient.List[apiclient.Connection](ctx, 0, s.ListConnections, apiclient.ListConnectionsParams{})
}

// findConnection takes an id or a name.
func findConnection(ctx context.Context, s *cli.Session, word string) (apiclient.Doc[apiclient.Connection], error) {
	list, err := listConnections(ctx, s)
	of := func(c apiclient.Connection) (id, name string) { return c.ID, c.Name }
	return cli.Listed("connection", word, list, err, of)
}

func connectionList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List connections", Args: cobra.NoArgs, Example: "  carillon connection list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := listConnections(cmd.Context(), s)
			return cli.PrintList(a, s, connectionView(a.Now()), list, err, "There are no connections.")
		}),
	}
}

func connectionGet(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "get CONNECTION", Short: "Show one connection; all but its secrets with -o yaml", Args: cobra.ExactArgs(1),
		Example: "  carillon connection get orders -o yaml > orders.yaml",
		RunE: cli.About(a, findConnection, func(_ *cobra.Command, s *cli.Session, c apiclient.Doc[apiclient.Connection], _ []string) error {
			return output.One(s.Printer, connectionView(a.Now()), c)
		}),
	}
}

// connectionFields are what a file can hold; secrets are not for files that
// are kept with others.
var (
	connectionFields   = []string{"name", "description", "broker", "addresses", "username", "mechanism", "tls", "virtualHost", "database", "sentinelMaster"}
	connectionReadOnly = []string{"id", "version", "hasPassword", "hasClientKey", "createdAt", "updatedAt", "createdBy", "updatedBy"}
)

func connectionApply(a *cli.App) *cobra.Command {
	var file, password, key string
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Create a connection from a file, or replace the one of that name", Args: cobra.NoArgs,
		Example: "  carillon connection apply -f orders.yaml --password-file mq.password",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			if file == "" {
				return cli.Usagef("name the connection's file with -f (- is standard input)")
			}
			fields, err := a.ReadObject(file, "connection", connectionFields, connectionReadOnly)
			if err != nil {
				return err
			}
			for field, path := range map[string]string{"password": password, "clientKey": key} {
				if path == "" {
					continue // what it has stays
				}
				raw, err := a.ReadInput(path)
				if err != nil {
					return err
				}
				if fields[field], err = json.Marshal(strings.TrimRight(string(raw), "\r\n")); err != nil {
					return err
				}
			}
			c, err := applyConnection(cmd.Context(), s, fields)
			if err != nil {
				return err
			}
			a.Say("Connection %s is at version %d.", output.Clean(c.Value.Name), c.Value.Version)
			return output.One(s.Printer, connectionView(a.Now()), c)
		}),
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file with the connection; - is standard input")
	cmd.Flags().StringVar(&password, "password-file", "", "file with the password, or with NATS credentials; default: the password stays")
	cmd.Flags().StringVar(&key, "client-key-file", "", "file with the private key of tls.certificate; default: the key stays")
	return cmd
}

func applyConnection(ctx context.Context, s *cli.Session, fields map[string]json.RawMessage) (c apiclient.Doc[apiclient.Connection], err error) {
	var name string
	if err := json.Unmarshal(fields["name"], &name); err != nil {
		return c, cli.Usagef("a connection needs a name")
	}
	list, err := listConnections(ctx, s)
	if err != nil {
		return c, err
	}
	for _, found := range list {
		if found.Value.Name == name {
			return s.UpdateConnection(ctx, found.Value.ID, apiclient.UpdateConnectionParams{IfMatch: cli.ETag(found.Value.Version)}, apiclient.ConnectionWrite{}, apiclient.Body(fields))
		}
	}
	return s.CreateConnection(ctx, apiclient.ConnectionWrite{}, apiclient.Body(fields))
}

func connectionTest(a *cli.App) *cobra.Command {
	var in apiclient.MessageTest
	cmd := &cobra.Command{
		Use: "test CONNECTION", Short: "Publish a message and say what the broker answers", Args: cobra.ExactArgs(1),
		Example: "  carillon connection test events --subject orders.test\n  carillon connection test orders --exchange shop --routing-key orders.test\n" +
			"  carillon connection test log --topic orders\n  carillon connection test cache --stream orders --body '{\"id\":7}'",
		RunE: cli.About(a, findConnection, func(cmd *cobra.Command, s *cli.Session, c apiclient.Doc[apiclient.Connection], _ []string) error {
			got, err := s.TestConnection(cmd.Context(), c.Value.ID, in)
			if err != nil {
				return err
			}
			if !got.Value.Delivered {
				return cli.Fail(cli.ExitFailed, errors.New("not delivered: "+output.Clean(got.Value.Message)))
			}
			a.Say("The broker has the message %s, after %d ms.", got.Value.MessageID, got.Value.DurationMs)
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVar(&in.Target.Subject, "subject", "", "NATS: the subject")
	f.StringVar(&in.Target.Exchange, "exchange", "", "RabbitMQ: the exchange; default: the one that routes to the queue of the routing key's name")
	f.StringVar(&in.Target.RoutingKey, "routing-key", "", "RabbitMQ: the routing key")
	f.StringVar(&in.Target.Topic, "topic", "", "Kafka: the topic")
	f.StringVar(&in.Target.PartitionKey, "partition-key", "", "Kafka: what chooses the partition")
	f.StringVar(&in.Target.Stream, "stream", "", "Redis: the stream; NATS: the stream that must have the subject")
	f.BoolVar(&in.Target.Create, "create", false, "Redis: make the stream if it is missing")
	f.StringVar(&in.Body, "body", "", `the message (default {"test":true})`)
	return cmd
}

func connectionDelete(a *cli.App) *cobra.Command {
	return a.DeleteCommand("connection", &cobra.Command{
		Use: "delete CONNECTION", Short: "Delete a connection; what still names it fails",
		Example: "  carillon connection delete old-orders --yes",
	}, func(ctx context.Context, s *cli.Session, word string) (string, func() error, error) {
		c, err := findConnection(ctx, s, word)
		return c.Value.Name, func() error { return cli.Gone(s.DeleteConnection(ctx, c.Value.ID)) }, err
	})
}
