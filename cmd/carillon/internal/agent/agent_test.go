package agent

import (
	"testing"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

func TestAnAgentDoesNothingUnlessToldTo(t *testing.T) {
	config := executor.Config{Name: "agent", Addresses: []string{"127.0.0.1:1"}, Token: "cjt_x", JournalDir: t.TempDir()}
	refuse := func(want string, opt Options) {
		t.Helper()
		opt.Executor = config
		a, err := New(t.Context(), opt)
		require.ErrorContains(t, err, want)
		require.Nil(t, a)
	}
	refuse("nothing is allowed here", Options{})
	refuse(`there are no scripts in "perl"`, Options{Scripts: []string{"shell", "perl"}, RunAs: scriptUser(), WorkDir: t.TempDir()})
	refuse("has an interpreter", Options{Scripts: []string{"shell"}, Path: t.TempDir(), RunAs: scriptUser(), WorkDir: t.TempDir()})
	refuse("is no host", Options{HTTPHosts: []string{"http://x"}})
	refuse("no-such-user", Options{Scripts: []string{"shell"}, RunAs: "no-such-user", WorkDir: t.TempDir()})
	config.Slots = MaxSlots + 1
	refuse("slots must be from 1 to 64", Options{HTTPHosts: []string{"*"}})
	config.Slots = 0

	a, err := New(t.Context(), Options{Executor: config, HTTPHosts: []string{"*"}})
	require.NoError(t, err)
	require.Nil(t, a.work, "without scripts nobody needs a folder")
	require.NoError(t, a.Close())
	a, err = New(t.Context(), Options{Executor: config, Scripts: []string{"shell", "python"}, RunAs: scriptUser(), WorkDir: t.TempDir()})
	require.NoError(t, err)
	dir := a.work.dir
	require.DirExists(t, dir)
	require.NoError(t, a.Close())
	require.NoDirExists(t, dir)
}
