package logship

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A handler that floods: bounded memory, bounded waiting, and the log says
// what is missing.
func TestFloodIsDroppedAndCounted(t *testing.T) {
	inBubble(t, 1<<20, 100_000, func(s *Shipper, a *store) {
		a.change(func() { a.hold = true })
		w := s.Open(1, 1, 1)
		began := time.Now()
		for i := range 10_000 {
			w.say(fmt.Sprint(i))
			require.LessOrEqual(t, s.total, 100_000)
		}
		require.Equal(t, MaxWait, time.Since(began), "one wait, then lines are dropped at once")
		a.change(func() { a.hold = false; a.conn.Close() })
		sleep(10 * time.Second)
		w.say("calm again")
		last := w.Close()
		flush(t, s)

		head := 0
		for a.lines[1][int64(head+1)] != nil {
			head++
		}
		require.EqualValues(t, 10_002, last)
		at := int64(head + 1)
		for a.lines[1][at] == nil {
			at++
		}
		dropped := at - int64(head) - 1
		require.Greater(t, dropped, int64(8000))
		note := a.lines[1][at]
		require.Equal(t, fmt.Sprintf("… %s lines dropped: they came faster than they could be stored", thousands(dropped)), note.GetMessage())
		require.Equal(t, fmt.Sprintf(`{"dropped":%d}`, dropped), string(note.GetAttrs()))
		require.EqualValues(t, 4, note.GetLevel())
		require.Greater(t, last-at, int64(20), "the end of the burst is there")
		for n := at + 1; n < last; n++ {
			require.Equal(t, fmt.Sprint(n-2), a.lines[1][n].GetMessage(), "line %d", n)
		}
		require.Equal(t, "calm again", a.lines[1][last].GetMessage())
	})
}

// Lines that an attempt held back arrive although it writes nothing more.
func TestTheEndOfABurstDoesNotWaitForTheNextLine(t *testing.T) {
	inBubble(t, 1<<20, 100_000, func(s *Shipper, a *store) {
		a.change(func() { a.hold = true })
		w := s.Open(1, 1, 1)
		for range 10_000 {
			w.say("x")
		}
		w.say("the error")
		a.change(func() { a.hold = false; a.conn.Close() })
		sleep(10 * time.Second)
		require.Equal(t, "the error", a.lines[1][10_002].GetMessage())
		require.Empty(t, s.holding)
		require.EqualValues(t, 10_002, w.Close())
	})
}

// Lines that a writer leaves out itself count like dropped ones. The line that
// counts them is kept in a flood too.
func TestLinesThatAreLeftOutAreCounted(t *testing.T) {
	for name, flood := range map[string]int{"calm": 1, "flood": 1000} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1<<20, 10_000, func(s *Shipper, a *store) {
				a.change(func() { a.dialErr = errors.New("not yet") })
				w := s.Open(1, 1, 1)
				for range flood {
					w.say("x")
				}
				w.LeaveOut(time.Now(), 50, "too many")
				w.say("the end")
				last := w.Close()
				a.change(func() { a.dialErr = nil })
				flush(t, s)
				told := 0
				for _, line := range a.lines[1] {
					var n int
					if k, _ := fmt.Sscanf(string(line.GetAttrs()), `{"dropped":%d}`, &n); k == 1 {
						told += n
					}
				}
				require.EqualValues(t, last, len(a.lines[1])+told)
				require.Equal(t, "… 50 lines dropped: too many", a.lines[1][last-1].GetMessage())
				require.Equal(t, "the end", a.lines[1][last].GetMessage())
			})
		})
	}
}

// A burst that is alone has nearly the whole buffer, and leaves some of it to
// those who come while it is full.
func TestABurstHasWhatNobodyElseNeeds(t *testing.T) {
	inBubble(t, 16<<20, 16<<20, func(s *Shipper, a *store) {
		a.change(func() { a.dialErr = errors.New("not yet") })
		text := strings.Repeat("x", 70)
		burst := s.Open(1, 1, 1)
		for range 50_000 {
			burst.say(text)
		}
		_, dropped, _ := s.Counts()
		require.Zero(t, dropped, "50,000 short lines in one go")
		for range 10_000 {
			burst.say(text)
		}
		_, dropped, _ = s.Counts()
		require.NotZero(t, dropped)
		require.LessOrEqual(t, s.total, 16<<20*8/9)
		for id := range int64(10) {
			other := s.Open(2+id, 1, 1)
			for range 100 {
				other.say(text)
			}
			require.Zero(t, other.dropped, "others still have room")
		}
		burst.Close()
		a.change(func() { a.dialErr = nil })
		flush(t, s)
		require.Len(t, a.lines[3], 100)
	})
}

func TestDroppedAtTheEndIsToldToo(t *testing.T) {
	inBubble(t, 1<<20, 1000, func(s *Shipper, a *store) {
		a.change(func() { a.hold = true })
		w := s.Open(1, 1, 1)
		for range 50 {
			w.say("x")
		}
		last := w.Close()
		require.EqualValues(t, 51, last)
		a.change(func() { a.hold = false; a.dialErr = nil })
		flush(t, s)
		require.Contains(t, a.lines[1][50].GetMessage(), "lines dropped")
		require.Equal(t, "x", a.lines[1][51].GetMessage())
	})
}
