package main

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRowsPlayInLanes: two meet, which they cannot unless both run; a row that
// compares figures runs when all others have ended; the order stays.
func TestRowsPlayInLanes(t *testing.T) {
	rows := []row{{id: "F37"}, {id: "F01"}, {id: "F03"}, {id: "F04"}}
	meet := make(chan struct{})
	var ended, before atomic.Int32
	results := play(rows, 2, func(r row) *result {
		defer ended.Add(1)
		switch r.id {
		case "F01":
			meet <- struct{}{}
		case "F03":
			<-meet
		case "F04":
			return nil // interrupted
		default:
			before.Store(ended.Load())
		}
		return &result{ID: r.id}
	})
	require.EqualValues(t, 3, before.Load())
	require.Equal(t, []result{{ID: "F37"}, {ID: "F01"}, {ID: "F03"}}, results)
}

func TestLongRowsBeginFirst(t *testing.T) {
	var began []string
	play([]row{{id: "F01"}, {id: "F37"}, {id: "F12"}, {id: "F03"}}, 1, func(r row) *result {
		began = append(began, r.id)
		return nil
	})
	require.Equal(t, []string{"F12", "F01", "F03", "F37"}, began)
}
