package logchunk

import (
	"bytes"
	"compress/flate"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// lines makes n lines as a handler writes them, with gaps in the numbers.
func lines(random *rand.Rand, n int) []domain.LogLine {
	var out []domain.LogLine
	number, at := int64(0), time.UnixMilli(1_800_000_000_000).UTC()
	for range n {
		number += 1 + random.Int64N(3)
		at = at.Add(time.Duration(random.IntN(50)-5) * time.Millisecond)
		l := domain.LogLine{
			Number: number, Attempt: 3, At: at, Level: []int{-8, -4, 0, 0, 0, 2, 4, 8}[random.IntN(8)],
			Message: fmt.Sprintf("Order %d of customer %x booked: Überweisung 订单", random.IntN(1e6), random.Uint32()),
		}
		if random.IntN(2) == 0 {
			l.Attrs = fmt.Appendf(nil, `{"order":%d}`, random.IntN(1e6))
		}
		if random.IntN(4) > 0 {
			l.TraceID = fmt.Sprintf("%032x", random.IntN(3))
		}
		out = append(out, l)
	}
	return out
}

func TestLinesComeBackAsTheyWere(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		want := lines(random, 1+random.IntN(2000))
		var got []domain.LogLine
		for _, part := range Split(want) {
			body, s := Encode(part)
			back, err := Decode(body, Format, 3)
			require.NoError(t, err)
			require.Equal(t, part, back)
			require.Equal(t, part[0].Number, s.FirstLine)
			require.Equal(t, part[len(part)-1].Number, s.LastLine)
			require.Equal(t, len(part), s.Lines)
			require.LessOrEqual(t, s.Bytes, MaxBytes)
			for _, l := range part {
				require.False(t, l.At.Before(s.FirstAt) || l.At.After(s.LastAt))
			}
			got = append(got, back...)
		}
		require.Equal(t, want, got)
	}
}

func TestALongLineIsAChunkOfItsOwn(t *testing.T) {
	long := domain.LogLine{Number: 2, Message: strings.Repeat("x", 2*MaxBytes)}
	parts := Split([]domain.LogLine{{Number: 1, Message: "a"}, long, {Number: 3, Message: "b"}})
	require.Len(t, parts, 3)
	require.Empty(t, Split(nil))
}

// A filter never passes over a chunk that has a matching line.
func TestNothingThatMatchesIsPassedOver(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	passed, looked := 0, 0
	for range 100 {
		part := lines(random, 1+random.IntN(300))
		if random.IntN(4) == 0 {
			part[0].Message += " 300 \u212a, \u0130zmir, ẞ 10.0.0.17, \xff42"
		}
		body, s := Encode(part)
		for range 30 {
			l := part[random.IntN(len(part))]
			text := []string{l.Message, string(l.Attrs), l.TraceID, "no such text anywhere", "Customer", "zzz", "300 k", "zmir", "ß 10.0.0.17"}[random.IntN(9)]
			if len(text) > 0 {
				from := random.IntN(len(text))
				text = text[from : from+1+random.IntN(len(text)-from)]
			}
			f := NewFilter([]int{math.MinInt, -4, 0, 4, 8}[random.IntN(5)], strings.ToUpper(strings.ToValidUTF8(text, "")))
			matches := 0
			for i := range part {
				if f.Match(&part[i]) {
					matches++
				}
			}
			may := f.MayHold(s.Levels, s.Aid, Format)
			found, err := Find(body, Format, 3, &f)
			require.NoError(t, err)
			if matches > 0 {
				require.True(t, may, "%q", f.text)
				require.Equal(t, part, found, "%q", f.text)
				continue
			}
			anywhere := NewFilter(math.MinInt, f.text)
			if len(f.text) > 5 && !slices.ContainsFunc(part, func(l domain.LogLine) bool { return anywhere.Match(&l) }) {
				looked++
				if !may {
					passed++
				}
			}
		}
	}
	require.Greater(t, passed, looked*9/10, "%d of %d", passed, looked)
}

func TestTheAidIsSmall(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for _, n := range []int{1, 10, 100, 600} {
		body, s := Encode(lines(random, n))
		t.Logf("%d lines: %d bytes, body %d, aid %d", n, s.Bytes, len(body), len(s.Aid))
		require.LessOrEqual(t, len(s.Aid), 1+maxAidBytes)
		require.Less(t, len(s.Aid), len(body)/2+2*minAidBytes)
	}
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte('!' + random.IntN(90))
	}
	_, s := Encode([]domain.LogLine{{Number: 1, Message: string(noise)}})
	require.Empty(t, s.Aid, "an aid that is full does not help")
	f := NewFilter(math.MinInt, "needle 12345")
	require.True(t, f.MayHold(s.Levels, s.Aid, Format))
}

func TestLevels(t *testing.T) {
	_, s := Encode([]domain.LogLine{{Number: 1, Level: 2}, {Number: 2, Level: -8}})
	for level, want := range map[int]bool{math.MinInt: true, -8: true, -4: true, 0: true, 2: true, 4: false, 8: false, 100: false} {
		f := NewFilter(level, "")
		require.Equal(t, want, f.MayHold(s.Levels, s.Aid, Format), level)
	}
	f := NewFilter(100, "")
	require.True(t, f.MayHold(AllLevels, nil, 0))
}

func TestDamageIsAnError(t *testing.T) {
	body, _ := Encode([]domain.LogLine{{Number: 1, Message: "hello"}})
	_, err := Decode(body[:len(body)-4], Format, 1)
	require.Error(t, err)
	_, err = Decode(body, 9, 1)
	require.ErrorIs(t, err, errDamaged)
	var bomb bytes.Buffer
	w, err := flate.NewWriter(&bomb, flate.BestSpeed)
	require.NoError(t, err)
	_, err = w.Write(make([]byte, maxInflated+1))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	_, err = Decode(bomb.Bytes(), Format, 1)
	require.ErrorIs(t, err, errDamaged)
}

// Whatever stands in the table, reading it ends with lines or an error.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 2, 0, 0, 3, 'a', 'b', 'c', 0})
	f.Add(appendLine(nil, &domain.LogLine{Number: 1, Message: "m", Attrs: []byte("{}"), TraceID: "t"}, &noLine))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := decode(raw, 1)
		if err != nil {
			return
		}
		var again []byte
		before := noLine
		for i := range got {
			again = appendLine(again, &got[i], &before)
			before = got[i]
		}
		back, err := decode(again, 1)
		require.NoError(t, err)
		require.Equal(t, got, back)
	})
}

func BenchmarkEncode(b *testing.B) {
	part := Split(lines(rand.New(rand.NewPCG(1, 1)), 2000))[0]
	_, s := Encode(part)
	b.SetBytes(int64(s.Bytes))
	for b.Loop() {
		Encode(part)
	}
}

func BenchmarkDecode(b *testing.B) {
	part := Split(lines(rand.New(rand.NewPCG(1, 1)), 2000))[0]
	body, s := Encode(part)
	b.SetBytes(int64(s.Bytes))
	for b.Loop() {
		if _, err := Decode(body, Format, 1); err != nil {
			b.Fatal(err)
		}
	}
}
