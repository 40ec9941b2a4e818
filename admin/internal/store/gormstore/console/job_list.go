package console

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

func (s *Jobs) FindJob(ctx context.Context, tenant domain.TenantID, id domain.JobID) (store.JobView, error) {
	return s.findJob(ctx, "find job", "id = ? AND tenant_id = ? AND state <> ?", int64(id), int64(tenant), int64(domain.JobDeleted))
}

func (s *Jobs) FindJobByName(ctx context.Context, tenant domain.TenantID, name string) (store.JobView, error) {
	return s.findJob(ctx, "find job", "tenant_id = ? AND name = ? AND state <> ?", int64(tenant), name, int64(domain.JobDeleted))
}

func (s *Jobs) findJob(ctx context.Context, step, where string, args ...any) (view store.JobView, err error) {
	err = s.Look(ctx, step, func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var row record.JobRow
		if err := g.Where(where, args...).Take(&row).Error; err != nil {
			return err
		}
		views, err := s.jobViews(ctx, q, []record.JobRow{row}, store.RecentRuns, s.specs.Load)
		if err == nil {
			view = views[0]
		}
		return err
	})
	return view, err
}

// jobOrder is how a sort order reads its index; the condition continues after
// the cursor (value, value, id).
type jobOrder struct{ condition, by string }

var jobOrders = map[store.JobSort]jobOrder{
	store.SortByName:     {"j.name >= ? AND (j.name > ? OR j.id > ?)", "j.name, j.id"},
	store.SortByNextFire: {"t.next_fire_at >= ? AND (t.next_fire_at > ? OR t.job_id > ?)", "t.next_fire_at, t.job_id"},
	store.SortByUpdated:  {"j.updated_at <= ? AND (j.updated_at < ? OR j.id < ?)", "j.updated_at DESC, j.id DESC"},
}

// weekOrders are the columns of job_weeks by which lists are sorted, and their indexes.
var weekOrders = map[store.JobSort]struct{ column, index string }{
	store.SortByFailures: {"failed", "ix_job_weeks_failed"}, store.SortByLateness: {"late_ms", "ix_job_weeks_late"}, store.SortByP95: {"took_ms", "ix_job_weeks_took"},
}

// rankedJob is a job with its value in the order of a list.
type rankedJob struct {
	record.JobRow `gorm:"embedded"`
	ListRank      int64 `gorm:"column:list_rank"`
}

// rankedJobs reads an index of job_weeks from its end. Behind it come the jobs that have no row
// there, by name.
func (s *Jobs) rankedJobs(g *gorm.DB, p store.ListJobsParams) (rows []rankedJob, err error) {
	by, limit := weekOrders[p.Sort], record.PageSize(p.Limit)
	if p.Cursor.ID == 0 || p.Cursor.Rank != store.Unranked {
		q := filterJobs(g.Table("job_weeks AS o"+s.Dialect.ByIndex(by.index)).Select("j.*, o."+by.column+" AS list_rank").
			Joins(s.Dialect.InOrder()+"jobs AS j"+s.Dialect.ByPrimary()+" ON j.id = o.job_id"), p).Where("o.tenant_id = ?", int64(p.Tenant))
		if p.Cursor.ID != 0 {
			q = q.Where("o."+by.column+" <= ? AND (o."+by.column+" < ? OR o.job_id < ?)", p.Cursor.Rank, p.Cursor.Rank, int64(p.Cursor.ID))
		}
		if err := planned(q, p).Order("o." + by.column + " DESC, o.job_id DESC").Limit(limit).Find(&rows).Error; err != nil || len(rows) == limit {
			return rows, err
		}
		p.Cursor = store.JobCursor{}
	}
	q := filterJobs(g.Table("jobs AS j").Select("j.*, "+strconv.Itoa(store.Unranked)+" AS list_rank"), p).
		Where("NOT EXISTS (SELECT 1 FROM job_weeks AS o WHERE o.tenant_id = j.tenant_id AND o.job_id = j.id)")
	if p.Cursor.ID != 0 {
		q = q.Where(jobOrders[store.SortByName].condition, p.Cursor.Name, p.Cursor.Name, int64(p.Cursor.ID))
	}
	var others []rankedJob
	err = planned(q, p).Order(jobOrders[store.SortByName].by).Limit(limit - len(rows)).Find(&others).Error
	return append(rows, others...), err
}

// planned joins what the filter for jobs that never fire looks at.
func planned(g *gorm.DB, p store.ListJobsParams) *gorm.DB {
	if !p.NeverFires {
		return g
	}
	return g.Joins("JOIN triggers AS t ON t.job_id = j.id").Where("t.tenant_id = ?", int64(p.Tenant))
}

func (s *Jobs) listRanked(ctx context.Context, p store.ListJobsParams) (views []store.JobView, err error) {
	err = s.Look(ctx, "list ranked jobs", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		ranked, err := s.rankedJobs(g, p)
		if err != nil {
			return err
		}
		rows := domain.Collect(ranked, func(r *rankedJob) record.JobRow { return r.JobRow })
		views, err = s.jobViews(ctx, q, rows, cmp.Or(p.Recent, store.RecentRuns), s.specs.LoadLight)
		for i := range views {
			views[i].Rank = ranked[i].ListRank
		}
		return err
	})
	return views, err
}

func (s *Jobs) ListJobs(ctx context.Context, p store.ListJobsParams) (views []store.JobView, err error) {
	sortBy := p.Sort
	if sortBy == "" {
		sortBy = store.SortByName
	}
	if _, ranked := weekOrders[sortBy]; ranked {
		return s.listRanked(ctx, p)
	}
	order, ok := jobOrders[sortBy]
	if !ok {
		return nil, domain.Invalid("sort", "unknown order %q", p.Sort)
	}
	err = s.Look(ctx, "list jobs", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		g = filterJobs(g.Table("jobs AS j").Select("j.*"), p)
		if sortBy == store.SortByNextFire || p.NeverFires {
			g = g.Joins("JOIN triggers AS t ON t.job_id = j.id").Where("t.tenant_id = ?", int64(p.Tenant))
		}
		if p.Cursor.ID != 0 {
			var after any = db.Millis(p.Cursor.At)
			if sortBy == store.SortByName {
				after = p.Cursor.Name
			}
			g = g.Where(order.condition, after, after, int64(p.Cursor.ID))
		}
		var rows []record.JobRow
		if err := g.Order(order.by).Limit(record.PageSize(p.Limit)).Find(&rows).Error; err != nil {
			return err
		}
		views, err = s.jobViews(ctx, q, rows, cmp.Or(p.Recent, store.RecentRuns), s.specs.LoadLight)
		return err
	})
	return views, err
}

// healths are conditions on the week of a job.
var healths = map[store.JobHealth]string{
	store.JobFailing: "w.bad_at > 0 AND w.bad_at >= w.good_at", store.JobLate: "w.late_at > 0 AND w.late_at >= w.punctual_at",
}

func filterJobs(g *gorm.DB, p store.ListJobsParams) *gorm.DB {
	g = within(g.Where("j.tenant_id = ?", int64(p.Tenant)), "j.executor_id", p.Within)
	if !p.AllKinds {
		g = g.Where("j.kind = ?", int64(p.Kind))
	}
	if p.NeverFires {
		// What nobody plans, by ix_triggers_next, less what was not to be planned.
		g = g.Where("t.next_fire_at >= ? AND j.state = ?", db.Millis(domain.Never), int64(domain.JobEnabled)).
			Where("NOT EXISTS (SELECT 1 FROM trigger_waits AS w WHERE w.job_id = j.id)").
			Where("NOT EXISTS (SELECT 1 FROM job_revisions AS r WHERE r.job_id = j.id AND r.revision = j.revision AND r.spec LIKE ? ESCAPE '!')",
				db.Contains(`"schedule":{"kind":"none"`))
	}
	if p.State != 0 {
		g = g.Where("j.state = ?", int64(p.State))
	} else {
		g = g.Where("j.state <> ?", int64(domain.JobDeleted))
	}
	if p.Health != "" {
		g = g.Where("j.state = ? AND EXISTS (SELECT 1 FROM job_weeks AS w WHERE w.tenant_id = j.tenant_id AND w.job_id = j.id AND "+healths[p.Health]+")", int64(domain.JobEnabled))
	}
	if p.Query != "" {
		where, args := db.TextIn(p.Query, "j.name", "j.description")
		g = g.Where(where, args...)
	}
	if len(p.IDs) > 0 {
		g = g.Where("j.id IN (" + db.IDList(p.IDs) + ")")
	}
	if p.Executor != 0 {
		g = g.Where("j.executor_id = ?", int64(p.Executor))
	}
	if p.Handler != "" {
		g = g.Where("j.handler = ?", p.Handler)
	}
	if p.PausedVia != "" {
		g = g.Where("j.paused_by LIKE ? ESCAPE '!'", "%"+db.Literal(domain.Via+p.PausedVia))
	}
	for _, c := range jobConditions(p.Name, p.Label, p.Owner) {
		g = g.Where(c.where, c.args...)
	}
	return g
}

// condition is a part of a WHERE.
type condition struct {
	where string
	args  []any
}

// jobConditions are those of a pattern of the name, labels and an owner of jobs AS j.
func jobConditions(name, label, owner string) (out []condition) {
	if name != "" {
		out = append(out, condition{"LOWER(j.name) LIKE LOWER(?) ESCAPE '!'", []any{strings.ReplaceAll(db.Literal(name), "*", "%")}})
	}
	labels, _ := domain.ParseFilter(label) // the API has checked it
	labels.Terms(func(key string, values []string, not bool) { out = append(out, labelCondition(key, values, not)) })
	if whole, exact := strings.CutPrefix(owner, "="); exact {
		out = append(out, condition{"j.owner = ?", []any{whole}})
	} else if owner != "" {
		where, args := db.TextIn(owner, "j.owner")
		out = append(out, condition{where, args})
	}
	return out
}

// labelCondition is a term of a selector. The column has each label as a line.
func labelCondition(key string, values []string, not bool) condition {
	begin := "\n" + key + "="
	c := condition{"j.labels LIKE ? ESCAPE '!'", []any{db.Contains(begin)}}
	for i, value := range values {
		if text := db.Contains(begin + value + "\n"); i == 0 {
			c.args[0] = text
		} else {
			c.where, c.args = c.where+" OR j.labels LIKE ? ESCAPE '!'", append(c.args, text)
		}
	}
	if c.where = "(" + c.where + ")"; not {
		c.where = "NOT " + c.where
	}
	return c
}

// loadSpecs is record.SpecCache.Load, or LoadLight for lists.
type loadSpecs func(context.Context, db.Querier, []record.RevisionKey) (map[record.RevisionKey]record.CachedSpec, error)

// jobViews adds to jobs what stands in other tables, one query per table, and the newest
// recent runs of each.
func (s *shared) jobViews(ctx context.Context, q db.Querier, rows []record.JobRow, recent int, load loadSpecs) ([]store.JobView, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	keys := make([]record.RevisionKey, len(rows))
	ids := make([]int64, len(rows))
	executors := make([]int64, len(rows))
	for i, r := range rows {
		keys[i], ids[i], executors[i] = record.RevisionKey{Job: domain.JobID(r.ID), Revision: r.Revision}, r.ID, r.ExecutorID
	}
	specs, err := load(ctx, q, keys)
	if err != nil {
		return nil, err
	}
	names, err := executorNames(ctx, q, executors)
	if err != nil {
		return nil, err
	}
	next, err := db.Pairs[int64, int64](ctx, q, "SELECT job_id, next_fire_at FROM triggers"+s.Dialect.ByPrimary()+" WHERE job_id IN ("+db.IDList(ids)+")")
	if err != nil {
		return nil, err
	}
	awaits, err := engine.AwaitedRuns(ctx, q, specs, next, ids)
	if err != nil {
		return nil, err
	}
	newest, err := s.recentRuns(ctx, q, rows[0].TenantID, ids, recent, specs)
	if err != nil {
		return nil, err
	}
	piles, err := s.piles(ctx, q, ids, func(job int64) *domain.JobSpec {
		for i := range rows {
			if rows[i].ID == job {
				return specs[keys[i]].Spec
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	weeks, err := s.weeks(ctx, q, rows[0].TenantID, ids)
	if err != nil {
		return nil, err
	}
	views := make([]store.JobView, len(rows))
	for i, r := range rows {
		spec := specs[keys[i]].Spec
		if spec == nil {
			spec = r.Unreadable(s.specs.Why(keys[i]))
		}
		views[i] = store.JobView{
			Job: r.Job(spec), Written: store.Authorship{At: specs[keys[i]].At, By: specs[keys[i]].By}, ExecutorName: names[r.ExecutorID], NextFireAt: db.Instant(next[r.ID]), AwaitsRun: awaits[r.ID], Recent: newest[r.ID],
			Waiting: piles[r.ID].waiting, PilesUp: piles[r.ID].up, Week: weeks[r.ID],
		}
		if len(views[i].Recent) > 0 {
			views[i].LastRun = &views[i].Recent[0]
		}
	}
	return views, nil
}

func (s *Jobs) CountJobs(ctx context.Context, tenant domain.TenantID, within domain.Reach) (enabled, paused int, err error) {
	err = s.Look(ctx, "count jobs", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var state, n int
			err := rows.Scan(&state, &n)
			switch domain.JobState(state) {
			case domain.JobEnabled:
				enabled = n
			case domain.JobPaused:
				paused = n
			}
			return err
		}, "SELECT state, COUNT(*) FROM jobs WHERE tenant_id = ? AND kind = ? AND "+db.InReach("executor_id", within)+" GROUP BY state", int64(tenant), int64(domain.JobPlain))
	})
	return enabled, paused, err
}

// examinedJobs bounds the jobs that one count reads.
const examinedJobs = 50_000

// examinedOf are the ids of the jobs that a count looks at, from an index, and their number.
func (s *Jobs) examinedOf(g *gorm.DB, p store.ListJobsParams) (ids *gorm.DB, examined int64, err error) {
	states := []int64{int64(domain.JobEnabled), int64(domain.JobPaused)}
	if p.State != 0 {
		states = []int64{int64(p.State)}
	}
	index := "ix_jobs_kind"
	if p.Executor != 0 {
		index = "ix_jobs_executor"
	}
	ids = g.Session(&gorm.Session{NewDB: true}).Table("jobs"+s.Dialect.ByIndex(index)).Select("id").
		Where("tenant_id = ? AND state IN ("+db.IDList(states)+")", int64(p.Tenant)).Limit(examinedJobs + 1)
	if !p.AllKinds {
		ids = ids.Where("kind = ?", int64(p.Kind))
	}
	if p.Executor != 0 {
		ids = ids.Where("executor_id = ?", int64(p.Executor))
	}
	err = g.Session(&gorm.Session{NewDB: true}).Table("(?) AS c", ids).Count(&examined).Error
	return ids, examined, err
}

// examine selects from jobs AS j that a count looks at, in this order: by another index SQLite went
// through all ids for each job.
func (s *Jobs) examine(g, ids *gorm.DB, p store.ListJobsParams, columns string) *gorm.DB {
	jobs := s.Dialect.InOrder() + "jobs AS j" + s.Dialect.ByPrimary() + " ON j.id = c.id"
	return planned(filterJobs(g.Session(&gorm.Session{NewDB: true}).Table("(?) AS c", ids).Select(columns).Joins(jobs), p), p)
}

// TotalJobs implements store.Totals. It takes the ids from an index, and looks at the jobs behind
// them.
func (s *Jobs) TotalJobs(ctx context.Context, p store.ListJobsParams) (total store.Total, err error) {
	err = s.Look(ctx, "count listed jobs", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		ids, examined, err := s.examinedOf(g, p)
		if err != nil {
			return err
		}
		var count int64
		if err := g.Session(&gorm.Session{NewDB: true}).Table("(?) AS m", s.examine(g, ids, p, "1").Limit(store.MaxTotal+1)).Count(&count).Error; err != nil {
			return err
		}
		total = store.Total{Count: min(int(count), store.MaxTotal), More: count > store.MaxTotal || examined > examinedJobs}
		return nil
	})
	return total, err
}

// CountJobHealth implements store.Totals. It looks at each job once, and at those without a next
// fire time once more.
func (s *Jobs) CountJobHealth(ctx context.Context, p store.ListJobsParams) (out store.JobCounts, err error) {
	p.State, p.Health, p.NeverFires = 0, "", false
	columns := fmt.Sprintf("COUNT(*), COALESCE(SUM(CASE WHEN j.state = %d THEN 1 ELSE 0 END), 0)", domain.JobPaused)
	for _, health := range []store.JobHealth{store.JobFailing, store.JobLate} {
		columns += fmt.Sprintf(", COALESCE(SUM(CASE WHEN j.state = %d AND %s THEN 1 ELSE 0 END), 0)", domain.JobEnabled, healths[health])
	}
	err = s.Look(ctx, "count jobs by health", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		ids, examined, err := s.examinedOf(g, p)
		if err != nil {
			return err
		}
		out = store.JobCounts{More: examined > examinedJobs}
		counted := s.examine(g, ids, p, columns).Joins("LEFT JOIN job_weeks AS w ON w.tenant_id = j.tenant_id AND w.job_id = j.id")
		if err := counted.Row().Scan(&out.All, &out.Paused, &out.Failing, &out.Late); err != nil {
			return err
		}
		never := p
		never.NeverFires = true
		return s.examine(g, ids, never, "COUNT(*)").Row().Scan(&out.NeverFires)
	})
	return out, err
}

// GroupJobs implements store.Totals.
func (s *Jobs) GroupJobs(ctx context.Context, p store.ListJobsParams, by store.JobGrouping, limit int) (groups []store.JobGroup, more bool, err error) {
	column, ok := map[store.JobGrouping]string{store.JobsByExecutor: "j.executor_id", store.JobsByOwner: "j.owner", store.JobsByLabel: "j.labels"}[by]
	if !ok {
		return nil, false, domain.Invalid("query.groupBy", "unknown group %q", by)
	}
	err = s.Look(ctx, "group jobs", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		groups = nil
		ids, _, err := s.examinedOf(g, p)
		if err != nil {
			return err
		}
		rows, err := s.examine(g, ids, p, column+", COUNT(*)").Group(column).Rows()
		if err != nil {
			return err
		}
		defer rows.Close()
		count := map[string]int{}
		for rows.Next() {
			var value string
			var n int
			if err := rows.Scan(&value, &n); err != nil {
				return err
			}
			if by != store.JobsByLabel {
				count[value] = n
				continue
			}
			labels := record.JobRow{Labels: value}
			for key, value := range labels.LabelMap() {
				count[key+"="+value] += n
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for value, n := range count {
			group := store.JobGroup{Name: value, Jobs: n}
			if by == store.JobsByExecutor {
				id, _ := strconv.ParseInt(value, 10, 64)
				group.Executor = domain.ExecutorID(id)
			}
			groups = append(groups, group)
		}
		if by == store.JobsByExecutor {
			names, err := executorNames(ctx, q, domain.Collect(groups, func(g *store.JobGroup) int64 { return int64(g.Executor) }))
			if err != nil {
				return err
			}
			for i := range groups {
				groups[i].Name = names[int64(groups[i].Executor)]
			}
		}
		slices.SortFunc(groups, func(a, b store.JobGroup) int { return cmp.Or(cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Name, b.Name)) })
		more = len(groups) > limit
		groups = groups[:min(len(groups), limit)]
		return nil
	})
	return groups, more, err
}

// weeks reads how the runs of jobs ended in the last 7 days.
func (s *shared) weeks(ctx context.Context, q db.Querier, tenant int64, jobs []int64) (map[int64]*store.JobWeek, error) {
	out := make(map[int64]*store.JobWeek, len(jobs))
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var id int64
		var late, took []byte
		w := &store.JobWeek{}
		err := rows.Scan(&id, &w.Ended, &w.Failed, &late, &took)
		if err == nil {
			w.Late, err = domain.SpreadOf(late)
		}
		if err == nil {
			w.Took, err = domain.SpreadOf(took)
		}
		out[id] = w
		return err
	}, fmt.Sprintf("SELECT job_id, ended, failed, late, took FROM job_weeks%s WHERE tenant_id = %d AND job_id IN (%s)", s.Dialect.ByPrimary(), tenant, db.IDList(jobs)))
	return out, err
}

func (s *Jobs) ListNextFires(ctx context.Context, tenant domain.TenantID, reach domain.Reach, limit int) (views []store.JobView, err error) {
	err = s.Look(ctx, "list next fires", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var rows []record.JobRow
		err := within(g.Table("triggers AS t"), "t.executor_id", reach).Select("j.*").Joins("JOIN jobs AS j ON j.id = t.job_id").
			Where("t.tenant_id = ? AND t.next_fire_at < ?", int64(tenant), db.Millis(domain.Never)).
			Order("t.next_fire_at, t.job_id").Limit(record.PageSize(limit)).Find(&rows).Error
		if err != nil {
			return err
		}
		views, err = s.jobViews(ctx, q, rows, store.RecentRuns, s.specs.LoadLight)
		return err
	})
	return views, err
}

// executorNames maps ids to names; the ids come from rows of the tenant.
func executorNames(ctx context.Context, q db.Querier, ids []int64) (map[int64]string, error) {
	return namesOf(ctx, q, "executors", ids)
}

func namesOf(ctx context.Context, q db.Querier, table string, ids []int64) (map[int64]string, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if len(ids) == 0 {
		return nil, nil
	}
	return db.Pairs[int64, string](ctx, q, "SELECT id, name FROM "+table+" WHERE id IN ("+db.IDList(ids)+")")
}
