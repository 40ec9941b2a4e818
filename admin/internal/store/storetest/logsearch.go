package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// spoken makes lines with texts of many words, gaps in their numbers and now
// and then a long one.
func spoken(random *rand.Rand, n int) (all []domain.LogLine) {
	number, at := int64(0), time.UnixMilli(1800000000000)
	for range n {
		if number++; random.IntN(40) == 0 {
			number += random.Int64N(30)
		}
		at = at.Add(time.Duration(random.IntN(20)) * time.Millisecond)
		l := domain.LogLine{
			Number: number, Attempt: 1, At: at.UTC(), Level: []int{-4, 0, 0, 0, 0, 0, 0, 0, 4, 8}[random.IntN(10)],
			Message: fmt.Sprintf("Order %d of %s", random.IntN(2000), []string{"München", "上海", "Oslo"}[random.IntN(3)]),
		}
		if random.IntN(3) == 0 {
			l.Attrs = fmt.Appendf(nil, `{"customer":"C-%d"}`, random.IntN(100))
			l.TraceID = fmt.Sprintf("%032x", random.IntN(5))
		}
		if random.IntN(200) == 0 {
			l.Message += strings.Repeat(" and more", 4000)
		}
		all = append(all, l)
	}
	return all
}

// pieces cuts lines into chunks as batches bring them: with consecutive numbers.
func pieces(e domain.Execution, lines []domain.LogLine, most int) (out []domain.LogChunk) {
	for start := 0; start < len(lines); {
		end := start + 1
		for end < len(lines) && end-start < most && lines[end].Number == lines[end-1].Number+1 {
			end++
		}
		out = append(out, domain.LogChunk{TenantID: e.TenantID, ExecutionID: e.ID, Attempt: 1, FirstLine: lines[start].Number, Lines: lines[start:end]})
		start = end
	}
	return out
}

// Whatever way a log is read, the lines are those that a plain search finds.
func testLogSearch(t *testing.T, f *fixture) {
	random := rand.New(rand.NewPCG(11, 1))
	e := f.run(f.job(nil))
	all := spoken(random, 1000)
	chunks := pieces(e, all, 120)
	for part := range slices.Chunk(chunks, 5) {
		require.Zero(t, f.appendLogs(f.executor, part...))
	}
	warn, failure := 4, 8
	for _, p := range []store.ReadLogParams{
		{}, {Limit: 5000}, {Limit: 7}, {MinLevel: &warn}, {MinLevel: &failure, Limit: 3}, {Text: "ORDER 77 "}, {Text: "上海", Limit: 50}, {Text: "C-7\"", MinLevel: &warn},
		{Text: "nothing like it"}, {Text: "x"}, {Text: "münchen", Limit: 1}, {Text: all[50].TraceID}, {Text: "and more and more"},
	} {
		name := fmt.Sprintf("%q limit %d", p.Text, p.Limit)
		var want []domain.LogLine
		for _, l := range all {
			if (p.MinLevel == nil || l.Level >= *p.MinLevel) && strings.Contains(strings.ToLower(l.Message+"\x00"+string(l.Attrs)+"\x00"+l.TraceID), strings.ToLower(p.Text)) {
				want = append(want, l)
			}
		}
		require.Equal(t, want, f.walk(e, p, false), name)
		require.Equal(t, want, f.walk(e, p, true), name)
	}
	for range 30 { // a page from anywhere, both ways
		at := random.IntN(len(all))
		p := store.ReadLogParams{Tenant: f.tenant, Execution: e.ID, Attempt: 1, After: all[at].Number, Limit: 10}
		page, err := f.s.ReadLog(f.ctx, p)
		f.ok(err)
		require.Equal(t, append([]domain.LogLine(nil), all[at+1:min(at+11, len(all))]...), page.Lines)
		p.After, p.Before = 0, all[at].Number
		page, err = f.s.ReadLog(f.ctx, p)
		f.ok(err)
		require.Equal(t, append([]domain.LogLine(nil), all[max(at-10, 0):at]...), page.Lines)
		require.Equal(t, all[len(all)-1].Number, page.LastLine)
	}
}

// walk reads all that is asked for, a page after the other, and returns it from
// the first line to the last.
func (f *fixture) walk(e domain.Execution, p store.ReadLogParams, back bool) []domain.LogLine {
	f.t.Helper()
	p.Tenant, p.Execution, p.Attempt = f.tenant, e.ID, 1
	if back {
		p.Before = 1 << 60
	}
	var pages [][]domain.LogLine
	for range 10_000 {
		page, err := f.s.ReadLog(f.ctx, p)
		f.ok(err)
		pages = append(pages, page.Lines)
		if back {
			if p.Before = page.Reached; p.Before == 0 || p.Before == 1 {
				slices.Reverse(pages)
				return slices.Concat(pages...)
			}
			continue
		}
		if p.After = page.Reached; p.After >= page.LastLine {
			return slices.Concat(pages...)
		}
	}
	f.t.Fatal("the walk does not end")
	return nil
}

// A log that grows by small appends has few chunks all the same; LogEnd follows.
func testLogGrowth(t *testing.T, f *fixture) {
	e := f.run(f.job(nil))
	_, err := f.s.DeleteLogsBefore(f.ctx, time.Now().Add(time.Hour), 1<<20) // those of other tests
	f.ok(err)
	attempt, line, err := f.s.LogEnd(f.ctx, f.tenant, e.ID)
	f.ok(err)
	require.Zero(t, attempt)
	require.Zero(t, line)
	for n := int64(1); n <= 300; n++ {
		require.Zero(t, f.appendLogs(f.executor, chunk(e, 1, n, n)))
	}
	page, err := f.s.ReadLog(f.ctx, store.ReadLogParams{Tenant: f.tenant, Execution: e.ID, Attempt: 1})
	f.ok(err)
	require.Equal(t, chunk(e, 1, 1, 300).Lines, page.Lines)
	require.Zero(t, f.appendLogs(f.executor, chunk(e, 3, 1, 2)))
	attempt, line, err = f.s.LogEnd(f.ctx, f.tenant, e.ID)
	f.ok(err)
	require.Equal(t, 3, attempt)
	require.EqualValues(t, 2, line)
	attempt, _, err = f.s.LogEnd(f.ctx, f.tenant+1, e.ID)
	f.ok(err)
	require.Zero(t, attempt)
	n, err := f.s.DeleteLogsBefore(f.ctx, time.Now().Add(time.Hour), 1000)
	f.ok(err)
	require.LessOrEqual(t, n, int64(12), "chunks of 302 lines in 301 appends")
}
