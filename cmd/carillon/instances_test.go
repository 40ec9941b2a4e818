package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExecutorInstances(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	r := term.run("executor", "instances")
	require.Equal(t, 0, r.code, r.stderr)
	require.Regexp(t, `shop\s+9\s+pod-1\s+online`, r.stdout)
	require.Regexp(t, `shop\s+8\s+pod-0\s+gone.*its lease ran out`, r.stdout)
	require.Contains(t, term.run("executor", "instances", "-o", "json").stdout, `"web-2"`)
}
