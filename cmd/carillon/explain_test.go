package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplain(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("run", "explain", "70", "--lang", "en")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "started 7s late.\n  cause: admin\n  2026-11-21T02:00:00.000Z  Its fire time.\n")
	require.Regexp(t, `till-1\s+chosen\s+It was chosen\.`, r.stdout)
	r = term.run("run", "explain", "70", "--lang", "zh")
	require.Contains(t, r.stdout, "运行成功，延迟 7s 开始。\n  原因方：管理节点\n")
	require.Equal(t, 2, term.run("run", "explain", "70", "--lang", "fr").code)
	require.Contains(t, term.run("run", "explain", "70", "-o", "json").stdout, `"verdict"`)

	r = term.run("job", "explain", "close-day", "--at", "2026-11-21T02:00:00Z", "--lang", "en")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "at=2026-11-21T02%3A00%3A00Z", server.lastQuery("GET /jobs/{id}/explain"))
	require.Equal(t, 2, term.run("job", "explain", "close-day", "--at", "yesterday").code)
	r = term.run("job", "explain", "close-day", "--at", "02:00", "--lang", "en")
	require.Equal(t, 0, r.code, r.stderr)
	require.Regexp(t, `^at=20.*T02%3A00%3A00`, server.lastQuery("GET /jobs/{id}/explain"))
	r = term.run("job", "explain", "close-day", "--lang", "en")
	require.Equal(t, 0, r.code, r.stderr)

	// Of a paused job the fire time is explained that the pause keeps from running.
	require.Equal(t, 0, term.run("job", "pause", "close-day", "--note", "audit").code)
	r = term.run("job", "explain", "close-day", "--lang", "en")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "at=2026-11-21T18%3A00%3A00Z", server.lastQuery("GET /jobs/{id}/explain"))
}
