package lab

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheLongestStallOfAWindow(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var l stallList
	for _, s := range [][2]int{{0, 90}, {100, 104}, {200, 230}, {300, 350}} {
		l.begins(at(s[0]))
		l.ends(at(s[1]))
	}
	l.begins(at(400))
	for name, c := range map[string]struct{ from, to, want int }{
		"all":                          {0, 400, 90},
		"one that reached into it":     {80, 210, 90},
		"one that began in it":         {240, 301, 50},
		"none":                         {95, 199, 0},
		"too short to count":           {99, 105, 0},
		"the one under way":            {210, 480, 80},
		"the one under way, too short": {360, 404, 0},
	} {
		require.Equal(t, time.Duration(c.want)*time.Millisecond, l.longest(at(c.from), at(c.to)), name)
	}
}

func TestStallsAreWatchedUntilTheEnd(t *testing.T) {
	dir := t.TempDir()
	w, err := WatchStalls(t.Context(), dir)
	require.NoError(t, err)
	for name, l := range map[string]*stallList{"disk": &w.disk, "processor": &w.processor} {
		require.Eventually(t, func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.waits > 1
		}, 10*time.Second, time.Millisecond, name)
	}
	require.NoError(t, w.Close())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is left behind")
}
