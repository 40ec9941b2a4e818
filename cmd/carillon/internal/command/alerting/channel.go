package alerting

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/document"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

var channelKind = document.Kind{
	Noun: "channel", Under: "alert", Path: "alert-channels", Short: "Keep alert channels: mail, webhooks and chat products",
	Example: "  carillon alert channel apply -f on-call.yaml --url-file slack.url\n  carillon alert channel test on-call\n" +
		"  carillon alert channel preview on-call --alert run_lost",
	DeleteNote: "; refused while rules name it",
	Columns: []document.Column{
		{Title: "KIND", Path: "spec.kind"},
		enabledColumn,
		{Title: "RECEIVER", Path: "spec", Drop: 1, Show: channelReceiver},
	},
	Secrets: []document.Secret{
		{Flag: "url-file", Name: "url", Usage: "webhook, dingtalk, feishu, wecom, slack, teams: file with the address, which has a key in it; default: it stays"},
		{Flag: "secret-file", Name: "secret", Usage: "webhook, dingtalk, feishu: file with the key that signs messages; default: it stays"},
		{Flag: "token-file", Name: "token", Usage: "telegram, pagerduty, opsgenie, webhook: file with bot token, routing key, API key or bearer token; default: it stays"},
	},
}

func channelCommand(a *cli.App) *cobra.Command {
	return document.Command(a, channelKind, channelTest(a), channelPreview(a))
}

// channelReceiver is the first value of a channel that says where it leads.
func channelReceiver(v any) string {
	spec, _ := v.(map[string]any)
	for _, field := range []string{"emails", "chatId", "host", "baseUrl"} {
		if text := document.Shown(spec[field]); text != "" {
			return text
		}
	}
	return ""
}

func channelTest(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "test CHANNEL", Short: "Send a test message and say what the receiver answers", Args: cobra.ExactArgs(1),
		Example: "  carillon alert channel test on-call",
		RunE: cli.About(a, channelKind.Find, func(cmd *cobra.Command, s *cli.Session, c document.Document, _ []string) error {
			got, err := s.TestAlertChannel(cmd.Context(), c.Value.ID)
			if err != nil {
				return err
			}
			if !got.Value.Delivered {
				return cli.Fail(cli.ExitFailed, errors.New("not delivered: "+output.Clean(got.Value.Message)))
			}
			a.Say("The receiver has taken it, after %d ms.", got.Value.DurationMs)
			return nil
		}),
	}
}

func channelPreview(a *cli.App) *cobra.Command {
	in := apiclient.ChannelPreview{Spec: &apiclient.ChannelPreviewSpec{}}
	var file string
	cmd := &cobra.Command{
		Use: "preview [CHANNEL]", Short: "Show what would be sent of a sample or a run", Args: cobra.MaximumNArgs(1),
		Example: "  carillon alert channel preview on-call --alert run_lost\n  carillon alert channel preview --kind webhook -f templates.yaml --run 9007199254740993",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if len(args) == 1 {
				c, err := channelKind.Find(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				in.Channel = c.Value.ID
			}
			if file != "" {
				fields, err := a.ReadObject(file, "set of templates", []string{"title", "text", "html", "body", "contentType"})
				if err != nil {
					return err
				}
				raw, err := json.Marshal(fields)
				if err != nil {
					return err
				}
				if err := json.Unmarshal(raw, &in.Spec.Templates); err != nil {
					return cli.Usagef("%s: %w", file, err)
				}
			}
			got, err := s.PreviewAlertChannel(cmd.Context(), in)
			if err != nil {
				return err
			}
			r := got.Value
			for _, part := range []struct{ title, text string }{{"Title", r.Title}, {"Content-Type", r.ContentType}} {
				if part.text != "" {
					fmt.Fprintf(a.Out, "%s: %s\n", part.title, output.Clean(part.text))
				}
			}
			for _, text := range []string{r.Body, r.HTML} {
				if text != "" {
					fmt.Fprintf(a.Out, "\n%s\n", cleanLines(text))
				}
			}
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVar(&in.Spec.Kind, "kind", "", "by which means, without a channel")
	f.StringVar(&in.Spec.Language, "language", "", "en or zh")
	f.StringVar(&in.Alert, "alert", "", "kind of the sample: run_failed, run_timed_out, run_lost, run_missed, no_executor, test, executor_flapping, instance_gone (default run_failed)")
	f.StringVar(&in.RunID, "run", "", "id of a run instead of a sample")
	f.StringVarP(&file, "templates", "f", "", "file with templates: title, text, html, body, contentType; - is standard input")
	return cmd
}

// cleanLines is Clean for a text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := range lines {
		lines[i] = output.Clean(lines[i])
	}
	return strings.Join(lines, "\n")
}
