package testenv

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecorderWakesTheWaiting(t *testing.T) {
	r := newRecorder[int]()
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for i := range 100 {
				r.add(i)
			}
		})
	}
	require.Len(t, r.wait(t.Context(), t, 800, "numbers"), 800)
	writers.Wait()
}

func TestRecorderSaysWhatIsMissing(t *testing.T) {
	r := newRecorder[int]()
	r.add(1)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("too late"))
	failed := &fatalTB{TB: t}
	done := make(chan struct{}) // closed when wait returned or gave up
	go func() {
		defer close(done)
		r.wait(ctx, failed, 2, "numbers")
	}()
	<-done
	require.Equal(t, "waited for 2 numbers, saw 1: too late", failed.message)
}

// fatalTB keeps the words of Fatalf instead of failing.
type fatalTB struct {
	testing.TB
	message string
}

func (f *fatalTB) Helper() {}

func (f *fatalTB) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit() // as the real one does
}
