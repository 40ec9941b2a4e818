package metrics_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/metrics"
)

func durations(upTo ...uint64) executor.Durations {
	return executor.Durations{
		Bounds: []time.Duration{time.Millisecond, time.Second}, UpTo: upTo[:2], Count: upTo[2], Sum: 1500 * time.Millisecond,
	}
}

// The text is what a scrape gets, to the letter (testdata/executor.txt).
func TestWrite(t *testing.T) {
	var b strings.Builder
	require.NoError(t, metrics.Write(&b, executor.Stats{
		Name: "shop", Version: "1.2", SDKVersion: "0.1.0", Ready: true, Slots: 8, Running: 3, Sessions: 2, SessionsOpened: 5,
		ResultsOwed: 4, JournalSyncs: durations(7, 8, 9), LogLines: 100, LogLinesDropped: 6, LogBuffered: 4096,
		Refused: map[string]uint64{"draining": 1, "busy": 2},
		Handlers: []executor.HandlerStats{{
			Name: "close \"day\"\\\n", Ended: map[string]uint64{"succeeded": 10, "failed": 1}, Took: durations(3, 10, 11),
		}},
	}))
	want, err := os.ReadFile("testdata/executor.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestWriteTellsThatItCouldNot(t *testing.T) {
	require.EqualError(t, metrics.Write(broken{}, executor.Stats{}), "gone")
}
