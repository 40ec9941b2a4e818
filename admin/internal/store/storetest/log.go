package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func chunk(e domain.Execution, attempt int, from, to int64) domain.LogChunk {
	c := domain.LogChunk{TenantID: e.TenantID, ExecutionID: e.ID, Attempt: attempt, FirstLine: from}
	for n := from; n <= to; n++ {
		c.Lines = append(c.Lines, domain.LogLine{
			Number: n, Attempt: attempt, At: time.UnixMilli(1800000000000 + n).UTC(), Level: int(n % 3), Message: fmt.Sprintf("line %d %s", n, strings.Repeat("é", 20)),
			Attrs: []byte(fmt.Sprintf(`{"n":%d}`, n)),
		})
	}
	return c
}

func (f *fixture) appendLogs(executor domain.ExecutorID, chunks ...domain.LogChunk) (dropped int) {
	f.t.Helper()
	dropped, err := f.s.AppendLogs(f.ctx, []store.LogAppend{{Tenant: f.tenant, Executor: executor, Chunks: chunks}})
	f.ok(err)
	return dropped
}

func testLogs(t *testing.T, f *fixture) {
	e := f.run(f.job(nil))
	add := func(chunks ...domain.LogChunk) int {
		t.Helper()
		return f.appendLogs(f.executor, chunks...)
	}
	read := func(p store.ReadLogParams) store.LogPage {
		t.Helper()
		p.Tenant, p.Execution = f.tenant, e.ID
		page, err := f.s.ReadLog(f.ctx, p)
		f.ok(err)
		return page
	}
	require.Empty(t, read(store.ReadLogParams{Attempt: 1}).Lines)
	require.Zero(t, add(chunk(e, 1, 4, 6), chunk(e, 1, 1, 3), chunk(e, 2, 1, 1)))
	require.Zero(t, add(chunk(e, 1, 1, 3)), "a resend")
	require.Zero(t, add(chunk(e, 1, 5, 9)), "a resend that was cut differently")
	page := read(store.ReadLogParams{Attempt: 1})
	require.Equal(t, chunk(e, 1, 1, 9).Lines, page.Lines)
	require.EqualValues(t, 9, page.LastLine)
	page = read(store.ReadLogParams{Attempt: 1, After: 2, Limit: 3})
	require.Equal(t, chunk(e, 1, 3, 5).Lines, page.Lines)
	require.EqualValues(t, 9, page.LastLine)
	require.Empty(t, read(store.ReadLogParams{Attempt: 1, After: 9}).Lines)
	require.Equal(t, chunk(e, 2, 1, 1).Lines, read(store.ReadLogParams{Attempt: 2}).Lines)

	stranger := chunk(e, 1, 20, 21)
	stranger.ExecutionID = domain.ExecutionID(ids.Next())
	require.Equal(t, 1, add(stranger, chunk(e, 1, 10, 10)))
	require.Equal(t, 1, f.appendLogs(f.executor+1, chunk(e, 1, 11, 11)), "another executor's run")
	require.EqualValues(t, 10, read(store.ReadLogParams{Attempt: 1}).LastLine)

	race(4, func(int) {
		if _, err := f.s.AppendLogs(f.ctx, []store.LogAppend{{Tenant: f.tenant, Executor: f.executor, Chunks: []domain.LogChunk{chunk(e, 1, 11, 15)}}}); err != nil {
			t.Errorf("append: %v", err)
		}
	})
	require.Equal(t, chunk(e, 1, 1, 15).Lines, read(store.ReadLogParams{Attempt: 1}).Lines)
}
