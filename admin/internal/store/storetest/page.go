package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// A page ends with the row that reaches domain.MaxPageBytes, and the pages together have
// everything once.
func testLargePages(t *testing.T, f *fixture) {
	const rows = 11
	large := fmt.Appendf(nil, `"%s"`, bytes.Repeat([]byte("x"), 250<<10))
	perPage := domain.MaxPageBytes/len(large) + 1
	// walk collects the numbers on all pages; next reads the page behind a number.
	walk := func(name string, next func(after int64) (numbers []int64, more bool)) {
		t.Helper()
		var all []int64
		for after, more := int64(0), true; more; {
			var page []int64
			if page, more = next(after); len(page) > perPage {
				t.Fatalf("%s: a page of %d rows", name, len(page))
			}
			require.NotEmpty(t, page, name)
			after = page[len(page)-1]
			all = append(all, page...)
		}
		slices.Sort(all)
		want := make([]int64, rows)
		for i := range want {
			want[i] = int64(i) + 1
		}
		require.Equal(t, want, all, name)
	}

	j := f.job(func(s *domain.JobSpec) { s.Input = large })
	for i := range rows - 1 {
		spec := j.Spec
		spec.Description = fmt.Sprint("edit ", i)
		_, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: spec, By: "anna", Next: at(domain.Never)})
		f.ok(err)
	}
	walk("revisions", func(after int64) (numbers []int64, more bool) {
		page, err := f.s.ListRevisions(f.ctx, store.ListRevisionsParams{Tenant: f.tenant, Job: j.ID, Before: after, Limit: 200})
		f.ok(err)
		return domain.Collect(page.Items, func(r *store.Revision) int64 { return r.Revision }), page.More
	})

	for i := range rows {
		days := make([]domain.CalendarDay, 0, 4096)
		for d := range cap(days) {
			days = append(days, domain.CalendarDay{Date: time.Date(2020, 1, 1+d, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), Name: strings.Repeat("x", 60)})
		}
		_, err := f.makeCalendar(domain.CalendarSpec{Name: fmt.Sprintf("c%02d", i+1), Holidays: days})
		f.ok(err)
	}
	walk("calendars", func(after int64) (numbers []int64, more bool) {
		rows, more, err := f.s.CalendarTable().List(f.ctx, f.tenant, fmt.Sprintf("c%02d", after), 200)
		f.ok(err)
		return domain.Collect(rows, func(r *resource.Row) int64 {
			n, err := strconv.ParseInt(r.Name[1:], 10, 64)
			f.ok(err)
			return n
		}), more
	})

	timers := f.timerJob(nil)
	number := map[string]int64{}
	for i := range rows {
		timer := f.timer(timers, fmt.Sprintf("%02d", i+1), f.now().Add(time.Hour), domain.TimerKeep)
		timer.Input = large
		f.setOK(domain.TimerCreated, timer)
		number[timer.Key] = int64(i) + 1
	}
	for _, state := range []store.TimersState{store.TimersPending, store.TimersEnded} {
		var cursor store.TimerCursor
		walk(fmt.Sprint("timers ", state), func(int64) (numbers []int64, more bool) {
			page, err := f.s.ListTimers(f.ctx, store.ListTimersParams{Tenant: f.tenant, Jobs: []domain.JobID{timers.ID}, State: state, After: cursor, Limit: 200})
			f.ok(err)
			for _, v := range page.Timers {
				require.Equal(t, string(large), string(v.Input), v.Key)
				numbers = append(numbers, number[v.Key])
			}
			if page.Next != nil {
				cursor = *page.Next
			}
			return numbers, page.Next != nil
		})
		if state == store.TimersPending {
			for key := range number {
				f.ok(f.s.CancelTimers(f.ctx, store.CancelTimersParams{Tenant: f.tenant, Job: timers.ID, Keys: []string{key}, By: "anna"})[0].Err)
			}
		}
	}

	e := f.run(f.job(nil))
	lines := chunk(e, 1, 1, rows)
	for i := range lines.Lines {
		lines.Lines[i].Message = string(large)
		one := lines
		one.Lines = lines.Lines[i : i+1]
		require.Zero(t, f.appendLogs(f.executor, one))
	}
	for name, next := range map[string]func(after int64) store.ReadLogParams{
		"log": func(after int64) store.ReadLogParams { return store.ReadLogParams{After: after} },
		"log backward": func(before int64) store.ReadLogParams {
			if before == 0 {
				before = rows + 1
			}
			return store.ReadLogParams{Before: before}
		},
	} {
		walk(name, func(after int64) (numbers []int64, more bool) {
			p := next(after)
			p.Tenant, p.Execution, p.Attempt = f.tenant, e.ID, 1
			page, err := f.s.ReadLog(f.ctx, p)
			f.ok(err)
			numbers = domain.Collect(page.Lines, func(l *domain.LogLine) int64 { return l.Number })
			if p.Before != 0 {
				slices.Reverse(numbers)
				return numbers, page.Reached > 1
			}
			return numbers, page.Reached < page.LastLine
		})
	}
}
