package executor_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// While the journal cannot be written the executor takes nothing, says so to
// its nodes, its log and Health; when the journal can be written, it goes on by
// itself.
func TestAJournalThatCannotBeWritten(t *testing.T) {
	// Each process begins a segment, and the one that forgets earlier boots
	// another: where a folder lies in its way, there will be none.
	for name, segment := range map[string]string{"at the start": "00000002", "when it runs": "00000003"} {
		t.Run(name, func(t *testing.T) { testUnwritable(t, segment) })
	}
}

func testUnwritable(t *testing.T, segment string) {
	dir := t.TempDir()
	in := func(c *executor.Config) { c.JournalDir = dir }
	admin := startAdmin(t, &fakeadmin.Admin{})
	register := func(ex *executor.Executor) {
		executor.HandleFunc(ex, "quick", func(context.Context) error { return nil })
	}
	earlier := start(t, admin, register, in) // whose boot the next process has to forget
	session(t, admin, 1)
	require.NoError(t, earlier.stop())

	obstacle := filepath.Join(dir, "1", segment+".journal.tmp")
	require.NoError(t, os.Mkdir(obstacle, 0o700))
	app := start(t, admin, register, in)
	s := session(t, admin, 2)
	full := func(seen fakeadmin.Seen) bool { return last(seen.Heartbeats).GetRefusing() }
	saw(t, admin, full)
	require.ErrorContains(t, app.Health(), "begin journal segment")
	require.True(t, app.Stats().JournalFailing)
	require.Contains(t, app.log.String(), "no runs are taken until it can")
	require.NoError(t, s.Offer(offer(1, "quick"), offer(2, "quick", granted)))
	seen := saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Answers) == 2 })
	for _, a := range seen.Answers {
		require.False(t, a.GetAccepted())
		require.Equal(t, "journal_unavailable", a.GetRejectCode())
	}

	require.NoError(t, os.Remove(obstacle))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return !last(seen.Heartbeats).GetRefusing() })
	require.Contains(t, app.log.String(), "the journal can be written again")
	require.NoError(t, s.Offer(offer(3, "quick")))
	seen = saw(t, admin, results(1))
	require.Equal(t, "SUCCEEDED", brief(resultOf(seen, 3)))
}

func last(beats []*proto.Heartbeat) *proto.Heartbeat {
	if len(beats) == 0 {
		return nil
	}
	return beats[len(beats)-1]
}
