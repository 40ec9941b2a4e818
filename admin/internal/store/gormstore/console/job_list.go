package console

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
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

func (s *Jobs) ListJobs(ctx context.Context, p store.ListJobsParams) (views []store.JobView, err error) {
	sortBy := p.Sort
	if sortBy == "" {
		sortBy = store.SortByName
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
	if owner != "" {
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
	views := make([]store.JobView, len(rows))
	for i, r := range rows {
		spec := specs[keys[i]].Spec
		if spec == nil {
			spec = r.Unreadable(s.specs.Why(keys[i]))
		}
		views[i] = store.JobView{
			Job: r.Job(spec), Written: store.Authorship{At: specs[keys[i]].At, By: specs[keys[i]].By}, ExecutorName: names[r.ExecutorID], NextFireAt: db.Instant(next[r.ID]), AwaitsRun: awaits[r.ID], Recent: newest[r.ID],
			Waiting: piles[r.ID].waiting, PilesUp: piles[r.ID].up,
		}
		if len(views[i].Recent) > 0 {
			views[i].LastRun = &views[i].Recent[0]
		}
	}
	return views, nil
}

func (s *Jobs) ListRevisions(ctx context.Context, p store.ListRevisionsParams) (out store.Page[store.Revision], err error) {
	err = s.Look(ctx, "list revisions", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		g = g.Where("job_id = ? AND tenant_id = ?", int64(p.Job), int64(p.Tenant)).Order("revision DESC")
		if p.Before != 0 {
			g = g.Where("revision < ?", p.Before)
		}
		if !p.Until.IsZero() {
			g = g.Where("created_at <= ?", db.Millis(p.Until))
		}
		rows, more, err := record.FindWithin(g, record.PageSize(p.Limit), func(r *record.RevisionRow) int { return len(r.Spec) })
		if err != nil {
			return err
		}
		if len(rows) == 0 && p.Before == 0 && p.Until.IsZero() {
			return db.NotFound("job", p.Job)
		}
		out = store.Page[store.Revision]{Items: make([]store.Revision, len(rows)), More: more}
		specs := make([]record.CachedSpec, len(rows))
		for i, r := range rows {
			spec, err := record.DecodeSpec([]byte(r.Spec))
			if err != nil {
				spec = &domain.JobSpec{Description: "This revision cannot be read: " + err.Error(), Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone}}
			}
			specs[i] = record.CachedSpec{Tenant: p.Tenant, Spec: spec}
			out.Items[i] = store.Revision{JobID: p.Job, Revision: r.Revision, CreatedAt: db.Instant(r.CreatedAt), CreatedBy: r.CreatedBy}
		}
		err = record.CalendarFiller(p.Brief)(ctx, q, specs)
		for i := range specs {
			out.Items[i].Spec = *specs[i].Spec
		}
		return err
	})
	return out, err
}

// ListJobChanges merges the events of a job, one more than are asked for because
// each is named after the one before it, with its edits.
func (s *Jobs) ListJobChanges(ctx context.Context, tenant domain.TenantID, id domain.JobID, limit int) (out []store.JobChange, err error) {
	limit = record.PageSize(limit)
	err = s.Look(ctx, "list job changes", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		var events, edits []store.JobChange
		scan := func(into *[]store.JobChange) func(*sql.Rows) error {
			return func(rows *sql.Rows) error {
				var e store.JobChange
				var at, number int64
				err := rows.Scan(&number, &e.State, &at, &e.By, &e.Note, &e.Revision)
				e.At = db.Instant(at)
				switch {
				case e.Revision > 0:
					e.What = store.JobEdited
				case number == 1:
					e.What, e.Revision = store.JobCreated, 1
				}
				*into = append(*into, e)
				return err
			}
		}
		err := db.Query(ctx, q, scan(&events), "SELECT number, state, at, created_by, note, 0 FROM job_events WHERE job_id = ? AND tenant_id = ? ORDER BY number DESC LIMIT ?",
			int64(id), int64(tenant), limit+1)
		if err != nil {
			return err
		}
		err = db.Query(ctx, q, scan(&edits), "SELECT 0, 0, created_at, created_by, '', revision FROM job_revisions WHERE job_id = ? AND tenant_id = ? AND revision > 1 ORDER BY revision DESC LIMIT ?",
			int64(id), int64(tenant), limit)
		for i := range events {
			if events[i].What == "" {
				var before domain.JobState
				if i+1 < len(events) {
					before = events[i+1].State
				}
				events[i].What = store.JobEventOf(before, events[i].State)
			}
		}
		out = append(events, edits...)
		slices.SortStableFunc(out, func(a, b store.JobChange) int { return b.At.Compare(a.At) })
		out = out[:min(len(out), limit)]
		return err
	})
	return out, err
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

// TotalJobs implements store.Totals. It takes the ids from an index, and looks at the jobs behind
// them.
func (s *Jobs) TotalJobs(ctx context.Context, p store.ListJobsParams) (total store.Total, err error) {
	states := []int64{int64(domain.JobEnabled), int64(domain.JobPaused)}
	if p.State != 0 {
		states = []int64{int64(p.State)}
	}
	err = s.Look(ctx, "count listed jobs", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		index := "ix_jobs_kind"
		if p.Executor != 0 {
			index = "ix_jobs_executor"
		}
		ids := g.Session(&gorm.Session{NewDB: true}).Table("jobs"+s.Dialect.ByIndex(index)).Select("id").
			Where("tenant_id = ? AND state IN ("+db.IDList(states)+")", int64(p.Tenant)).Limit(examinedJobs + 1)
		if !p.AllKinds {
			ids = ids.Where("kind = ?", int64(p.Kind))
		}
		if p.Executor != 0 {
			ids = ids.Where("executor_id = ?", int64(p.Executor))
		}
		var examined int64
		if err := g.Session(&gorm.Session{NewDB: true}).Table("(?) AS c", ids).Count(&examined).Error; err != nil {
			return err
		}
		matching := filterJobs(g.Table("(?) AS c", ids).Select("1").Joins("JOIN jobs AS j ON j.id = c.id"), p)
		if p.NeverFires {
			matching = matching.Joins("JOIN triggers AS t ON t.job_id = j.id").Where("t.tenant_id = ?", int64(p.Tenant))
		}
		var count int64
		if err := g.Session(&gorm.Session{NewDB: true}).Table("(?) AS m", matching.Limit(store.MaxTotal+1)).Count(&count).Error; err != nil {
			return err
		}
		total = store.Total{Count: min(int(count), store.MaxTotal), More: count > store.MaxTotal || examined > examinedJobs}
		return nil
	})
	return total, err
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
