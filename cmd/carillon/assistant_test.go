package main

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// connect starts carillon mcp as an assistant does.
func (term *terminal) connect(args ...string) *mcp.ClientSession {
	term.t.Helper()
	cmd := term.command(context.Background(), append([]string{"mcp"}, args...)...)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(term.t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	require.NoError(term.t, err)
	term.t.Cleanup(func() { _ = session.Close() })
	return session
}

func callTool(t *testing.T, session *mcp.ClientSession, tool string, in map[string]any) (text string, failed bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: in})
	require.NoError(t, err)
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

// TestMCP: a real process of the command line, at a real server.
func TestMCP(t *testing.T) {
	s := startServer(t, "sqlite:"+filepath.Join(t.TempDir(), "c.db"))
	term := newTerminal(t)
	ready := term.run("ready", "--http", strings.TrimPrefix(s.url, "http://"), "--wait", "60s")
	require.Zero(t, ready.code, ready.stderr)

	stranger := term.connect("--url", s.url)
	text, failed := callTool(t, stranger, "list_jobs", nil)
	require.True(t, failed)
	require.Contains(t, text, "not logged in at "+s.url)
	require.Contains(t, text, "carillon login --url "+s.url)

	r := term.pipe("tower-bell-64\n", "login", "--url", s.url, "--username", "admin", "--password-stdin")
	require.Zero(t, r.code, r.stderr)
	for _, args := range [][]string{{"executor", "create", "shop"}} {
		r = term.run(args...)
		require.Zero(t, r.code, r.stderr)
	}
	r = term.pipe(`{name: nightly-report, executor: {name: shop}, handler: report, schedule: {kind: cron, expr: "0 2 * * *", zone: Asia/Shanghai}}`, "job", "create", "-f", "-", "--allow-unknown-handler")
	require.Zero(t, r.code, r.stderr)

	looks := term.connect()
	require.Contains(t, looks.InitializeResult().Instructions, "data")
	text, failed = callTool(t, looks, "explain_job", map[string]any{"job": "nightly"})
	require.False(t, failed, text)
	require.Contains(t, text, `No instance of the executor "shop" is online`)
	text, failed = callTool(t, looks, "pause_job", map[string]any{"job": "nightly"})
	require.True(t, failed)
	require.Contains(t, text, "carillon mcp --allow-writes")

	works := term.connect("--allow-writes")
	list, err := works.ListTools(t.Context(), nil)
	require.NoError(t, err)
	for _, tool := range list.Tools {
		require.NotEmpty(t, tool.Description)
		require.NotNil(t, tool.OutputSchema)
		require.Equal(t, tool.Name == "cancel_run" || tool.Name == "pause_job", *tool.Annotations.DestructiveHint, tool.Name)
		require.Equal(t, !strings.Contains("run_job pause_job resume_job retry_run cancel_run", tool.Name), tool.Annotations.ReadOnlyHint, tool.Name)
	}
	text, failed = callTool(t, works, "pause_job", map[string]any{"job": "nightly", "note": "stock-taking"})
	require.False(t, failed, text)
	r = term.run("job", "get", "nightly-report")
	require.Contains(t, r.stdout, "admin via mcp")
	require.Contains(t, r.stdout, "stock-taking")

	require.NoError(t, looks.Close()) // standard input ends
	unreachable := term.connect("--url", "http://127.0.0.1:1", "--api-key-file", keyFile(t))
	text, failed = callTool(t, unreachable, "list_jobs", nil)
	require.True(t, failed)
	require.Contains(t, text, "Is it running, and is this its address?")
}

// TestMCPBounds: a message without an end is not read without end, and whoever
// starts the command by hand is told what it waits for.
func TestMCPBounds(t *testing.T) {
	term := newTerminal(t, "CARILLON_API_KEY=ck_good", "CARILLON_URL=http://127.0.0.1:1")
	r := term.run("mcp")
	require.Zero(t, r.code, r.stderr)
	require.Empty(t, r.stdout)
	require.Contains(t, r.stderr, "waits for an assistant on standard input")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := term.command(ctx, "mcp")
	endless := &endless{}
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = endless, &stderr
	cmd.WaitDelay = time.Second // its input would never end
	err := cmd.Run()
	require.NoError(t, ctx.Err(), "it does not end")
	require.Error(t, err)
	require.Less(t, endless.n, 64<<20)
	require.IsType(t, &exec.ExitError{}, err, stderr.String())
}

// endless is one message that never ends.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	if e.n == 0 {
		copy(p, `{"a":"`)
	}
	e.n += len(p)
	return len(p), nil
}
