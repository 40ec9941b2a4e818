package lab

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/verify"
)

// late returns runs of some jobs that fire once a second, of which each starts
// as late as a function of its second says; negative: not at all.
func late(jobs, seconds int, of func(job, second int) time.Duration) (runs []verify.Run) {
	for s := range seconds {
		for j := range jobs {
			if d := of(j, s); d >= 0 {
				at := verify.Time(s)*verify.Span(time.Second) + verify.Time(j*1000)
				runs = append(runs, verify.Run{Job: strconv.Itoa(j), FireAt: at, Start: at + verify.Span(d)})
			}
		}
	}
	return runs
}

func TestOnTimeAgain(t *testing.T) {
	const after = 10 * time.Second
	for name, c := range map[string]struct {
		of   func(job, second int) time.Duration
		want time.Duration
		ok   bool
	}{
		"at once":                  {func(int, int) time.Duration { return time.Millisecond }, 0, true},
		"never":                    {func(int, int) time.Duration { return 2 * time.Second }, 0, false},
		"after seven seconds":      {func(_, s int) time.Duration { return max(0, 18500*time.Millisecond-time.Duration(s)*time.Second) }, 8 * time.Second, true},
		"one job is never on time": {func(j, _ int) time.Duration { return time.Duration(j) * time.Second }, 0, false},
		"one is not started once": {func(j, s int) time.Duration {
			if j == 1 && s == 13 {
				return -1
			}
			return 0
		}, 4 * time.Second, true},
		"a good moment now and then": {func(_, s int) time.Duration { return time.Duration(s%5/4) * 3 * time.Second }, 0, false},
		"good before, not after": {func(_, s int) time.Duration {
			if s < 12 {
				return 0
			}
			return -1
		}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			took, ok := OnTimeAgain(late(3, 30, c.of), verify.At(time.UnixMicro(0).Add(after)), 3)
			require.Equal(t, c.ok, ok)
			require.Equal(t, c.want, took)
		})
	}
	twice := append(late(1, 20, func(int, int) time.Duration { return 0 }), late(1, 20, func(int, int) time.Duration { return 0 })...)
	_, ok := OnTimeAgain(twice, 0, 2)
	require.False(t, ok, "a fire time that started twice is not two")
}

// A tail sees what comes after it began, in old and in new files, each line once
// it is whole.
func TestATailSeesWhatIsAdded(t *testing.T) {
	dir := t.TempDir()
	first, err := verify.CreateFile(dir, "first")
	require.NoError(t, err)
	run := func(key string) *verify.Run {
		now := verify.At(time.Now())
		return &verify.Run{Job: "1", Key: key, Fence: 1, Boot: "b", Tenant: "1", Start: now, Attempt: 1, FireAt: now}
	}
	require.NoError(t, first.Append(run("before")))
	tail, err := Follow(dir)
	require.NoError(t, err)
	keys := func() (list []string) {
		runs, err := tail.Runs()
		require.NoError(t, err)
		for _, r := range runs {
			list = append(list, r.Key)
		}
		return list
	}
	require.Empty(t, keys())
	require.NoError(t, first.Append(run("after")))
	require.Equal(t, []string{"after"}, keys())

	second, err := verify.CreateFile(dir, "second")
	require.NoError(t, err)
	require.NoError(t, second.Append(run("new file")))
	require.NoError(t, second.Close())
	require.Equal(t, []string{"after", "new file"}, keys())

	require.NoError(t, first.Append(run("torn")))
	require.NoError(t, first.Close())
	files, err := filepath.Glob(filepath.Join(dir, "first*"))
	require.NoError(t, err)
	whole, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(files[0], whole[:len(whole)-9], 0o600))
	require.Equal(t, []string{"after", "new file"}, keys(), "its end is not there yet")
	require.NoError(t, os.WriteFile(files[0], whole, 0o600))
	require.Equal(t, []string{"after", "new file", "torn"}, keys())
}
