package gateway

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWatchLooksWhenItWasAsked, never later, however often it is asked, and not
// after it was stopped.
func TestWatchLooksWhenItWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watch
		began := time.Now()
		var looks []time.Duration
		inside := func() {}
		w.start(func() time.Duration {
			looks = append(looks, time.Since(began))
			inside()
			return 10 * time.Second
		})
		for range 10 { // asks that follow each other put nothing off
			w.within(time.Second)
			time.Sleep(300 * time.Millisecond)
		}
		synctest.Wait()
		require.Equal(t, []time.Duration{0, time.Second, 2200 * time.Millisecond}, looks)
		looks = nil
		inside = func() { inside = func() {}; w.within(time.Second) } // asked while it looks
		w.within(0)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Equal(t, []time.Duration{3 * time.Second, 4 * time.Second, 14 * time.Second}, looks)
		w.stop()
		w.within(0)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, looks, 3)
	})
}
