package broker

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/document"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

var kind = document.Kind{
	Noun: "connection", Path: "connections", Short: "Keep connections to message brokers, and try them",
	Example:    "  carillon connection apply -f orders.yaml --password-file mq.password\n  carillon connection test orders --exchange shop --routing-key orders.test",
	DeleteNote: "; runs that name it fail",
	Columns: []document.Column{
		{Title: "BROKER", Path: "spec.broker"},
		{Title: "ADDRESSES", Path: "spec.addresses"},
		{Title: "TLS", Path: "spec.tls.enabled", Show: func(v any) string { return map[bool]string{true: "yes"}[v == true] }},
		{Title: "USER", Path: "spec.username", Drop: 2},
	},
	Secrets: []document.Secret{
		{Flag: "password-file", Name: "password", Usage: "file with the password, or with NATS credentials; default: the password stays"},
		{Flag: "client-key-file", Name: "clientKey", Usage: "file with the private key of tls.certificate; default: the key stays"},
	},
}

// Command is carillon connection with what is below it.
func Command(a *cli.App) *cobra.Command { return document.Command(a, kind, connectionTest(a)) }

func connectionTest(a *cli.App) *cobra.Command {
	var in apiclient.MessageTest
	cmd := &cobra.Command{
		Use: "test CONNECTION", Short: "Publish a message and say what the broker answers", Args: cobra.ExactArgs(1),
		Example: "  carillon connection test events --subject orders.test\n  carillon connection test orders --exchange shop --routing-key orders.test\n" +
			"  carillon connection test log --topic orders\n  carillon connection test cache --stream orders --body '{\"id\":7}'",
		RunE: cli.About(a, kind.Find, func(cmd *cobra.Command, s *cli.Session, c document.Document, _ []string) error {
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
