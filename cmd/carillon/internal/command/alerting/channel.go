package alerting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

func channelCommand(a *cli.App) *cobra.Command {
	return cli.Group("channel", "Keep alert channels: mail, webhooks and chat products",
		"  carillon alert channel create on-call --kind slack --url-file slack.url\n  carillon alert channel test on-call\n"+
			"  carillon alert channel preview on-call --alert run_lost",
		channelList(a), channelShow(a), channelWrite(a, "create"), channelWrite(a, "update"), channelDelete(a), channelTest(a), channelPreview(a))
}

func channelView(now time.Time) output.View[apiclient.AlertChannel] {
	return output.View[apiclient.AlertChannel]{
		Name: func(c apiclient.AlertChannel) string { return c.Name },
		Columns: []output.Column[apiclient.AlertChannel]{
			{Title: "ID", Value: func(c apiclient.AlertChannel) string { return c.ID }, Wide: true},
			{Title: "NAME", Value: func(c apiclient.AlertChannel) string { return c.Name }},
			{Title: "KIND", Value: func(c apiclient.AlertChannel) string { return c.Kind }},
			{Title: "ENABLED", Value: func(c apiclient.AlertChannel) string { return map[bool]string{true: "yes", false: "no"}[c.Enabled] }},
			{Title: "RECEIVER", Value: channelReceiver, Drop: 1},
			{Title: "LANGUAGE", Value: func(c apiclient.AlertChannel) string { return c.Language }, Wide: true},
			{Title: "VERSION", Value: func(c apiclient.AlertChannel) string { return cli.Number(c.Version) }, Right: true, Wide: true},
			{Title: "UPDATED", Value: func(c apiclient.AlertChannel) string { return output.When(&c.UpdatedAt, now) }, Drop: 3},
			{Title: "BY", Value: func(c apiclient.AlertChannel) string { return c.UpdatedBy }, Wide: true},
		},
	}
}

func channelReceiver(c apiclient.AlertChannel) string {
	switch {
	case len(c.Emails) > 0:
		return strings.Join(c.Emails, ",")
	case c.ChatID != "":
		return "chat " + c.ChatID
	case c.Host != "":
		return c.Host
	}
	return c.BaseURL
}

// findChannel takes an id or a name.
func findChannel(ctx context.Context, s *cli.Session, word string) (apiclient.Doc[apiclient.AlertChannel], error) {
	list, err := apiclient.List[apiclient.AlertChannel](ctx, 0, s.ListAlertChannels, apiclient.ListAlertChannelsParams{})
	of := func(c apiclient.AlertChannel) (id, name string) { return c.ID, c.Name }
	return cli.Listed("alert channel", word, list, err, of)
}

func channelList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List alert channels", Args: cobra.NoArgs, Example: "  carillon alert channel list",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, _ []string) error {
			list, err := apiclient.List[apiclient.AlertChannel](cmd.Context(), 0, s.ListAlertChannels, apiclient.ListAlertChannelsParams{})
			return cli.PrintList(a, s, channelView(a.Now()), list, err, "There are no alert channels.")
		}),
	}
}

func channelShow(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "show CHANNEL", Short: "Show one alert channel; all but its secrets with -o yaml", Args: cobra.ExactArgs(1),
		Example: "  carillon alert channel show on-call -o yaml > on-call.yaml",
		RunE: cli.About(a, findChannel, func(_ *cobra.Command, s *cli.Session, c apiclient.Doc[apiclient.AlertChannel], _ []string) error {
			return output.One(s.Printer, channelView(a.Now()), c)
		}),
	}
}

// channelFields are what a file can hold; secrets are not for files that are kept
// with others.
var (
	channelFields = []string{
		"name", "description", "kind", "enabled", "language", "emails", "baseUrl", "chatId", "threadId", "mentions", "mentionAll", "templates",
	}
	channelReadOnly = []string{"id", "version", "host", "hasSecret", "hasToken", "createdAt", "updatedAt", "createdBy", "updatedBy"}
)

// channelFlags are settings that need no file.
type channelFlags struct {
	file, name, kind, language, baseURL, chatID, url, secret, token string
	emails, mentions                                                []string
	threadID                                                        int64
	enabled, mentionAll                                             bool
}

func (f *channelFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "file with settings and templates, as show -o yaml writes them; - is standard input. Flags come after it")
	flags.StringVar(&f.kind, "kind", "", "email, webhook, dingtalk, feishu, wecom, slack, teams, telegram, pagerduty or opsgenie")
	flags.StringVar(&f.language, "language", "", "of its texts, en or zh (default: the server's)")
	flags.BoolVar(&f.enabled, "enabled", true, "whether it is used")
	flags.StringSliceVar(&f.emails, "email", nil, "email: an address; several with commas or by several flags")
	flags.StringVar(&f.url, "url-file", "", "webhook, dingtalk, feishu, wecom, slack, teams: file with the address, which has a key in it")
	flags.StringVar(&f.secret, "secret-file", "", "webhook, dingtalk, feishu: file with what signs messages")
	flags.StringVar(&f.token, "token-file", "", "telegram, pagerduty, opsgenie, webhook: file with bot token, routing key, API key or bearer token")
	flags.StringVar(&f.baseURL, "base-url", "", "telegram, pagerduty, opsgenie: where its interface is (default: the product's own)")
	flags.StringVar(&f.chatID, "chat", "", "telegram: number of the chat, or @name")
	flags.Int64Var(&f.threadID, "thread", 0, "telegram: topic of the group")
	flags.StringSliceVar(&f.mentions, "mention", nil, "who is called by name, by the product's ids")
	flags.BoolVar(&f.mentionAll, "mention-all", false, "call everybody")
}

// fields are those of a file, and of flags that were given.
func (f *channelFlags) fields(a *cli.App, cmd *cobra.Command, into map[string]json.RawMessage) error {
	if f.file != "" {
		read, err := a.ReadObject(f.file, "alert channel", channelFields, channelReadOnly)
		if err != nil {
			return err
		}
		for name, value := range read {
			into[name] = value
		}
	}
	given := map[string]any{}
	for flag, field := range map[string]struct {
		name  string
		value any
	}{
		"name": {"name", f.name}, "kind": {"kind", f.kind}, "language": {"language", f.language}, "enabled": {"enabled", f.enabled}, "email": {"emails", f.emails},
		"base-url": {"baseUrl", f.baseURL}, "chat": {"chatId", f.chatID}, "thread": {"threadId", f.threadID}, "mention": {"mentions", f.mentions},
		"mention-all": {"mentionAll", f.mentionAll},
	} {
		if cmd.Flags().Changed(flag) {
			given[field.name] = field.value
		}
	}
	for field, path := range map[string]string{"url": f.url, "secret": f.secret, "token": f.token} {
		if path == "" {
			continue // what it has stays
		}
		raw, err := a.ReadInput(path)
		if err != nil {
			return err
		}
		given[field] = strings.TrimRight(string(raw), "\r\n")
	}
	for name, value := range given {
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		into[name] = raw
	}
	return nil
}

// channelWrite is create or update.
func channelWrite(a *cli.App, verb string) *cobra.Command {
	var f channelFlags
	cmd := &cobra.Command{Args: cobra.ExactArgs(1)}
	if verb == "create" {
		cmd.Use, cmd.Short = "create NAME", "Create an alert channel from flags, a file, or both"
		cmd.Example = "  carillon alert channel create on-call --kind slack --url-file slack.url\n" +
			"  carillon alert channel create night --kind dingtalk --url-file robot.url --secret-file robot.secret --language zh --mention 13800000000\n" +
			"  carillon alert channel create team --kind email --email ann@example.com,bob@example.com"
	} else {
		cmd.Use, cmd.Short = "update CHANNEL", "Change what flags and a file name; the rest stays"
		cmd.Example = "  carillon alert channel update on-call --enabled=false\n  carillon alert channel update on-call -f on-call.yaml --token-file new.token"
	}
	cmd.RunE = a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) (err error) {
		fields := map[string]json.RawMessage{}
		var c apiclient.Doc[apiclient.AlertChannel]
		if verb == "create" {
			if err := f.fields(a, cmd, fields); err != nil {
				return err
			}
			if fields["name"], err = json.Marshal(args[0]); err != nil {
				return err
			}
			c, err = s.CreateAlertChannel(cmd.Context(), apiclient.AlertChannelWrite{}, apiclient.Body(fields))
		} else {
			if c, err = findChannel(cmd.Context(), s, args[0]); err != nil {
				return err
			}
			if err := json.Unmarshal(c.Raw, &fields); err != nil {
				return err
			}
			for name := range fields {
				if !slices.Contains(channelFields, name) {
					delete(fields, name)
				}
			}
			if err := f.fields(a, cmd, fields); err != nil {
				return err
			}
			c, err = s.UpdateAlertChannel(cmd.Context(), c.Value.ID, apiclient.UpdateAlertChannelParams{IfMatch: cli.ETag(c.Value.Version)}, apiclient.AlertChannelWrite{}, apiclient.Body(fields))
		}
		if err != nil {
			return err
		}
		word := c.Value.Name
		if strings.ContainsAny(word, " '\"$\\") {
			word = c.Value.ID
		}
		a.Say("Alert channel %s is at version %d. Try it: carillon alert channel test %s", output.Clean(c.Value.Name), c.Value.Version, output.Clean(word))
		return output.One(s.Printer, channelView(a.Now()), c)
	})
	f.register(cmd)
	if verb == "update" {
		cmd.Flags().StringVar(&f.name, "name", "", "another name")
	}
	return cmd
}

func channelDelete(a *cli.App) *cobra.Command {
	return a.DeleteCommand("alert channel", &cobra.Command{
		Use: "delete CHANNEL", Short: "Delete an alert channel; what is to go through it yet fails",
		Example: "  carillon alert channel delete on-call --yes",
	}, func(ctx context.Context, s *cli.Session, word string) (string, func() error, error) {
		c, err := findChannel(ctx, s, word)
		return c.Value.Name, func() error { return cli.Gone(s.DeleteAlertChannel(ctx, c.Value.ID)) }, err
	})
}

func channelTest(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "test CHANNEL", Short: "Send a test message and say what the receiver answers", Args: cobra.ExactArgs(1),
		Example: "  carillon alert channel test on-call",
		RunE: cli.About(a, findChannel, func(cmd *cobra.Command, s *cli.Session, c apiclient.Doc[apiclient.AlertChannel], _ []string) error {
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
	var in apiclient.ChannelPreview
	var file string
	cmd := &cobra.Command{
		Use: "preview [CHANNEL]", Short: "Show what would be sent of a sample or a run", Args: cobra.MaximumNArgs(1),
		Example: "  carillon alert channel preview on-call --alert run_lost\n  carillon alert channel preview --kind webhook -f templates.yaml --run 9007199254740993",
		RunE: a.WithSession(func(cmd *cobra.Command, s *cli.Session, args []string) error {
			if len(args) == 1 {
				c, err := findChannel(cmd.Context(), s, args[0])
				if err != nil {
					return err
				}
				in.ChannelID = c.Value.ID
			}
			if file != "" {
				fields, err := a.ReadObject(file, "set of templates", []string{"title", "text", "html", "body", "contentType"}, nil)
				if err != nil {
					return err
				}
				raw, err := json.Marshal(fields)
				if err != nil {
					return err
				}
				if err := json.Unmarshal(raw, &in.Templates); err != nil {
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
	f.StringVar(&in.Kind, "kind", "", "by which means, without a channel")
	f.StringVar(&in.Language, "language", "", "en or zh")
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
