package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/testenv"
)

func testBench(t *testing.T) *bench {
	return &bench{
		o:      Options{Dir: t.TempDir(), MySQL: testenv.Database(t), Say: t.Logf},
		report: &Report{}, floors: map[floorKey]*floor{}, steadyFloors: map[string]*Spread{},
	}
}

// small cuts lives into few transactions.
func small() shape {
	s := fullShape()
	s.claim, s.offer, s.finish = 50, 20, 50
	return s
}

// The floor does the work of the lives it was recorded from: every statement
// changes as many rows as it did then (replay checks that), and no stage is
// left out.
func TestFloorRepeatsWholeLives(t *testing.T) {
	b := testBench(t)
	for _, kind := range []string{MySQL, SQLite} {
		for handler, stages := range map[string][]string{
			handlerOnce: {stageClaim, stageOffer, stageGrant, stageFinish}, handlerIdempotent: {stageClaim, stageOffer, stageFinish},
		} {
			t.Run(kind+" "+handler, func(t *testing.T) {
				f, err := b.measureFloor(t.Context(), floorPlan{kind: kind, handler: handler, shape: small(), lives: 400})
				require.NoError(t, err)
				require.Positive(t, f.perSecond())
				transactions := map[string]int{stageClaim: 8, stageOffer: 20, stageGrant: 20, stageFinish: 8}
				var got []string
				for _, s := range f.stages() {
					got = append(got, s.Name)
					require.Equal(t, transactions[s.Name], s.Transactions, s.Name)
					require.GreaterOrEqual(t, s.Statements, s.Transactions, s.Name)
				}
				require.Equal(t, stages, got)
			})
		}
	}
}

func TestFloorOfABurstClaimsEverythingFirst(t *testing.T) {
	b := testBench(t)
	f, err := b.measureFloor(t.Context(), floorPlan{kind: SQLite, handler: handlerOnce, shape: small(), lives: 100, ahead: true})
	require.NoError(t, err)
	late := f.lateness()
	require.Equal(t, 100, late.Count)
	require.Positive(t, late.P50, "every grant is after the last claim")
}

// A floor of statements that change nothing would be a very good one.
func TestReplayRefusesADatabaseInAnotherState(t *testing.T) {
	b := testBench(t)
	p := floorPlan{kind: SQLite, handler: handlerOnce, shape: small(), lives: 100}
	seed := newFloorSeed(p)
	steps, err := b.recordLives(t.Context(), t.TempDir(), seed, p)
	require.NoError(t, err)
	seed.jobs = seed.jobs[:50]
	_, err = b.repeatLives(t.Context(), t.TempDir(), seed, steps, p)
	require.ErrorContains(t, err, "rows instead of")
}
