package logchunk

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// numbered makes a chunk as loud handlers write it: every run of three digits
// is somewhere in it.
func numbered(random *rand.Rand) []domain.LogLine {
	var all []domain.LogLine
	for n := range int64(1000) {
		all = append(all, domain.LogLine{
			Number: n + 1, Attrs: fmt.Appendf(nil, `{"amount":%d,"from":"10.%d.%d.%d"}`, random.IntN(1e6), random.IntN(256), random.IntN(256), random.IntN(256)),
			Message: fmt.Sprintf("order %d of customer %08x reconciled", 500_000+n, random.Uint32()),
		})
	}
	return Split(all)[0]
}

// Most chunks need not be inflated for a number or an id that is not in them,
// whatever digits they have.
func TestTheAidTellsNumbersApart(t *testing.T) {
	const chunks, texts = 20, 100
	random := rand.New(rand.NewPCG(5, 1))
	kinds := map[string]struct {
		text func() string
		most int // percent of chunks that may be inflated in vain
	}{
		"order": {func() string { return fmt.Sprintf("order %d ", random.IntN(400_000)+100_000) }, 20},
		"six":   {func() string { return fmt.Sprint(random.IntN(900_000) + 100_000) }, 20},
		"ten":   {func() string { return fmt.Sprint(random.IntN(9e9) + 1e9) }, 1},
		"hex":   {func() string { return fmt.Sprintf("customer %08x", random.Uint32()) }, 5},
		"address": {func() string {
			return fmt.Sprintf("172.%d.%d.%d", random.IntN(256), random.IntN(256), random.IntN(256))
		}, 5},
		"words": {func() string { return "connection refused" }, 1},
	}
	vain := map[string]int{}
	aids, bodies := 0, 0
	for range chunks {
		part := numbered(random)
		body, s := Encode(part)
		aids, bodies = aids+len(s.Aid), bodies+len(body)
		for name, k := range kinds {
			for range texts {
				f := NewFilter(math.MinInt, k.text())
				if !f.MayHold(s.Levels, s.Aid, Format) {
					continue
				}
				if found, err := Find(body, Format, 1, &f); err != nil || found == nil {
					require.NoError(t, err)
					vain[name]++
				}
			}
		}
	}
	t.Logf("an aid is %d %% of its body", 100*aids/bodies)
	require.Less(t, aids, bodies/4)
	for name, k := range kinds {
		t.Logf("%s: %.1f %%", name, 100*float64(vain[name])/chunks/texts)
		require.LessOrEqual(t, 100*vain[name], k.most*chunks*texts, name)
	}
}

// Where numbers are few, short ones are told apart as well.
func TestTheAidTellsFewShortNumbersApart(t *testing.T) {
	var all []domain.LogLine
	for n := range int64(50) {
		all = append(all, domain.LogLine{Number: n + 1, Message: fmt.Sprintf("%s answers %d", []string{"Oslo", "München"}[n%2], 200+n)})
	}
	_, s := Encode(all)
	vain := 0
	for code := range 700 {
		f := NewFilter(math.MinInt, fmt.Sprint(300+code))
		if f.MayHold(s.Levels, s.Aid, Format) {
			vain++
		}
	}
	require.Less(t, vain, 700/3)
	f := NewFilter(math.MinInt, "217")
	require.True(t, f.MayHold(s.Levels, s.Aid, Format))
}

// Whatever an aid of any version is, asking it does no harm.
func FuzzAid(f *testing.F) {
	f.Add([]byte{1}, "12345", Format)
	f.Add(make([]byte, 65), "order 12345", Format)
	f.Add(make([]byte, 64), "order", Format+1)
	f.Fuzz(func(_ *testing.T, aid []byte, text string, format int) {
		filter := NewFilter(math.MinInt, text)
		filter.MayHold(AllLevels, aid, format)
	})
}
