package assistant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/client"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/login"
	"github.com/carillon-sched/carillon/internal/assistant"
)

// Command is carillon mcp.
func Command(a *cli.App) *cobra.Command {
	var writes bool
	cmd := &cobra.Command{
		Use: "mcp", Short: "Let an assistant look at a server and, if allowed, operate it", Args: cobra.NoArgs,
		Long: `Speaks the Model Context Protocol on standard input and output: an assistant
starts this command, and asks what its person wants to know, such as why a job did
not run. It asks the server with the credentials of this command line, so it can do
nothing that these may not; an API key with the role viewer is enough to look.
A server speaks the protocol over HTTP too, at /mcp. docs/guide/assistant.md`,
		Example: "  carillon mcp --context prod\n  carillon mcp --url https://carillon.example.com --api-key-file ~/on-call.key\n  carillon mcp --context prod --allow-writes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.Settings()
			if err != nil {
				return err
			}
			anonymous, err := client.New(a.ClientConfig(s, nil))
			if err != nil {
				return cli.Fail(cli.ExitUsage, err)
			}
			auth, err := a.Authorizer(s, anonymous)
			if err != nil {
				return err
			}
			config := a.ClientConfig(s, &oneAtATime{auth: auth})
			config.UserAgent = assistant.UserAgent + a.Version
			c, err := client.New(config)
			if err != nil {
				return cli.Fail(cli.ExitUsage, err)
			}
			// Standard output is the protocol's; an assistant shows what is told here.
			a.Say("carillon mcp: asks %s, waits for an assistant on standard input.", s.URL)
			server := assistant.New(assistant.Options{
				Client: c.Client, Writes: writes, Version: a.Version, Logger: slog.New(slog.NewTextHandler(a.Err, nil)),
				Refusal: "This connection only looks. Who set it up may allow more: carillon mcp --allow-writes, with credentials whose role is operator or higher.",
			})
			err = server.Run(cmd.Context(), &mcp.IOTransport{Reader: io.NopCloser(a.In), Writer: noCloser{a.Out}, MaxLineLength: assistant.MaxBody})
			if errors.Is(err, io.EOF) || cmd.Context().Err() != nil {
				return nil // the assistant has left, or we were told to stop
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&writes, "allow-writes", false, "also list the tools that run, pause, resume, retry and cancel")
	return a.ServerFlags(cmd)
}

// noCloser is a writer that stays open.
type noCloser struct{ io.Writer }

func (noCloser) Close() error { return nil }

// oneAtATime lets calls go on side by side, of which an Authorizer serves one.
type oneAtATime struct {
	mu   sync.Mutex
	auth client.Authorizer // guarded by mu
}

// Token implements client.Authorizer.
func (o *oneAtATime) Token(ctx context.Context) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	token, err := o.auth.Token(ctx)
	return token, sayLogIn(err)
}

// Renew implements client.Authorizer.
func (o *oneAtATime) Renew(ctx context.Context, expired string) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	token, err := o.auth.Renew(ctx, expired)
	return token, sayLogIn(err)
}

// sayLogIn adds to an error that an assistant shows what its person has to do.
func sayLogIn(err error) error {
	if e, ok := errors.AsType[*login.NotLoggedInError](err); ok {
		return fmt.Errorf("%w: log in with carillon login --url %s, or give this connection an API key (CARILLON_API_KEY, --api-key-file)", err, e.Server)
	}
	return err
}
