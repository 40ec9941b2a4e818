package bulk

import (
	"context"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Selection reads the items of operations in pages.
type Selection struct {
	Table Table
	Jobs  addon.Jobs
	Runs  addon.Runs
}

// page is the next items of an operation, with the place behind them.
type page struct {
	items  []Item // without answers
	cursor int64
	// read is how many rows were looked at.
	read int64
	last bool
}

// next reads the page behind an operation's cursor. It looks at limit rows at most. Items
// that were made after the operation do not count.
func (s *Selection) next(ctx context.Context, o *Operation, limit int) (page, error) {
	switch {
	case o.RetryOf != 0:
		items, err := s.Table.Items(ctx, o.Tenant, o.RetryOf, ItemFailed, o.Cursor, limit)
		for i := range items {
			items[i] = Item{ID: items[i].ID, Name: items[i].Name}
		}
		return pageOf(items, o.Cursor, limit), err
	case o.Action.OnRuns():
		return s.nextRuns(ctx, o, limit)
	}
	p := o.jobs()
	p.Limit = limit
	ids, err := s.Jobs.ListIDs(ctx, p, domain.JobID(o.Cursor), domain.JobID(o.ID))
	return pageOf(domain.Collect(ids, func(id *domain.JobID) Item { return Item{ID: int64(*id)} }), o.Cursor, limit), err
}

// pageOf is a page of which each row is an item.
func pageOf(items []Item, cursor int64, limit int) page {
	if len(items) > 0 {
		cursor = items[len(items)-1].ID
	}
	return page{items: items, cursor: cursor, read: int64(len(items)), last: len(items) < limit}
}

// nextRuns reads the newest runs first, as the list of runs does.
func (s *Selection) nextRuns(ctx context.Context, o *Operation, limit int) (page, error) {
	p := o.Filter.runs(o.Tenant)
	p.Limit, p.Before = limit, domain.ExecutionID(o.Cursor)
	if p.Before == 0 && p.Job == 0 { // the list of a job is in the order of fire times
		p.Before = domain.ExecutionID(o.ID)
	}
	rows, err := s.Runs.List(ctx, p)
	if err != nil {
		return page{}, err
	}
	out := page{cursor: o.Cursor, read: int64(len(rows)), last: len(rows) < limit}
	if len(rows) > 0 {
		out.cursor = int64(rows[len(rows)-1].ID)
	}
	rows = slices.DeleteFunc(rows, func(e domain.Execution) bool {
		return e.ID >= domain.ExecutionID(o.ID) || e.Cause == domain.CauseRetry && o.leavesRetries() || !o.Filter.fits(&e)
	})
	var jobs []domain.JobID
	for i := range rows {
		jobs = append(jobs, rows[i].JobID)
	}
	slices.Sort(jobs)
	filter := o.Filter
	if !filter.asksJobs() {
		filter = Filter{}
	}
	filter.IDs, filter.Executor = nil, 0 // of the runs
	names, err := s.Jobs.Match(ctx, filter.jobs(o.Tenant), slices.Compact(jobs))
	if err != nil {
		return page{}, err
	}
	for i := range rows {
		if name, matches := names[rows[i].JobID]; matches || !o.Filter.asksJobs() {
			out.items = append(out.items, Item{ID: int64(rows[i].ID), Name: name})
		}
	}
	return out, nil
}

// countPage is how many rows are read at once to count runs.
const countPage = 1000

// count counts the items of a new operation, up to MaxItems + 1, and returns the first ones.
func (s *Selection) count(ctx context.Context, o *Operation, firstOnes int) (n int64, first []Item, err error) {
	if o.RetryOf == 0 && !o.Action.OnRuns() {
		if n, err = s.Jobs.Count(ctx, o.jobs(), domain.JobID(o.ID), MaxItems+1); err != nil || firstOnes == 0 {
			return n, nil, err
		}
		p, err := s.next(ctx, o, firstOnes)
		if err != nil {
			return 0, nil, err
		}
		names, err := s.Jobs.Match(ctx, (&Filter{}).jobs(o.Tenant), domain.Collect(p.items, func(it *Item) domain.JobID { return domain.JobID(it.ID) }))
		for i := range p.items {
			p.items[i].Name = names[domain.JobID(p.items[i].ID)]
		}
		return n, p.items, err
	}
	at := *o
	for n <= MaxItems {
		p, err := s.next(ctx, &at, countPage)
		if err != nil {
			return 0, nil, err
		}
		n += int64(len(p.items))
		first = append(first, p.items[:min(len(p.items), max(0, firstOnes-len(first)))]...)
		if at.Cursor, at.Read = p.cursor, at.Read+p.read; p.last {
			break
		}
		if at.Read >= MaxRead {
			return 0, nil, domain.Invalid("body.filter", "more than %d runs have to be read to find those that match; narrow it by state, executorId, jobId or from", MaxRead)
		}
	}
	return n, first, nil
}
