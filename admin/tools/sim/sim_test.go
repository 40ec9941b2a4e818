package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "first seed of the swarm")
	seedsFlag = flag.Uint64("seeds", 40, "how many seeds the swarm has")
	forFlag   = flag.Duration("for", 0, "go on with more seeds for so long")
	keepFlag  = flag.Bool("keep", false, "write what is found to testdata/regress")
)

// TestSwarm lets many seeds happen, each with other faults.
func TestSwarm(t *testing.T) {
	began := time.Now()
	var next, seeds, steps, runs, starts, faults atomic.Uint64
	next.Store(*seedFlag)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !t.Failed() {
				seed := next.Add(1) - 1
				if seed >= *seedFlag+*seedsFlag && time.Since(began) >= *forFlag {
					return
				}
				c := Case{Seed: seed, Shards: seed%2 == 1, Timers: seed%4 > 1}
				o, err := Run(c)
				if err != nil {
					t.Error(err)
					return
				}
				seeds.Add(1)
				steps.Add(uint64(o.Steps))
				runs.Add(uint64(o.Runs))
				starts.Add(uint64(o.Starts))
				faults.Add(uint64(len(o.Injected)))
				if len(o.Broken) > 0 {
					t.Error(report(c, o))
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	t.Logf("%d seeds, %d runs, %d starts, %d faults, %d steps in %s: %.0f steps/s",
		seeds.Load(), runs.Load(), starts.Load(), faults.Load(), steps.Load(), took.Round(time.Millisecond), float64(steps.Load())/took.Seconds())
}

// report makes a failing case small and says how to see it again.
func report(c Case, o Outcome) string {
	finding := Finding(o.Broken)
	c.Note = o.Broken[0]
	small := Shrink(c, o.Injected, 400, func(c Case) (bool, []string) {
		o, err := Run(c)
		return err == nil && Finding(o.Broken) == finding, o.Injected
	})
	o, _ = Run(small)
	file, _ := json.MarshalIndent(small, "", "  ")
	if *keepFlag {
		_ = os.WriteFile(filepath.Join("testdata", "regress", fmt.Sprintf("seed-%d.json", c.Seed)), append(file, '\n'), 0o600)
	}
	return fmt.Sprintf("seed %d (%s)\n%s\nregression file:\n%s\nwhat happened last:\n%s",
		c.Seed, strings.Join(o.Kinds, " "), strings.Join(o.Broken, "\n"), file, strings.Join(o.Last, "\n"))
}

// TestRegressions repeats what was found once.
func TestRegressions(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "regress", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			var c Case
			require.NoError(t, json.Unmarshal(data, &c))
			require.NotEmpty(t, c.Note)
			o, err := Run(c)
			require.NoError(t, err)
			require.Empty(t, o.Broken)
			require.NotEmpty(t, o.Injected, "the faults of this file have other names now")
		})
	}
}

// TestASeedDecidesEverything: again and again the same.
func TestASeedDecidesEverything(t *testing.T) {
	hashes := map[uint64]bool{}
	for _, seed := range []uint64{4, 9, 12, 13, 18} { // short ones, with many kinds of faults
		first, err := Run(Case{Seed: seed})
		require.NoError(t, err)
		for range 3 {
			again, err := Run(Case{Seed: seed})
			require.NoError(t, err)
			require.Equal(t, first.Hash, again.Hash, "seed %d", seed)
			require.Equal(t, first.Steps, again.Steps)
			require.Equal(t, first.Injected, again.Injected)
		}
		hashes[first.Hash] = true
		// The names of all its faults are the case, too.
		named, err := Run(Case{Seed: seed, Only: append([]string{}, first.Injected...)})
		require.NoError(t, err)
		require.Equal(t, first.Hash, named.Hash)
	}
	require.Len(t, hashes, 5, "other seeds, other stories")
}

func TestWithoutFaultsEverythingRuns(t *testing.T) {
	o, err := Run(Case{Seed: 3, Only: []string{}})
	require.NoError(t, err)
	require.Empty(t, o.Broken)
	require.Empty(t, o.Injected)
	require.Positive(t, o.Starts)
	require.GreaterOrEqual(t, o.Runs, o.Starts)
}
