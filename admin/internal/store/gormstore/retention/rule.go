package retention

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type retentionRow struct {
	TenantID  int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	JobID     int64  `gorm:"column:job_id;primaryKey;autoIncrement:false"`
	RunDays   int    `gorm:"column:run_days"`
	LogDays   int    `gorm:"column:log_days"`
	RunCount  int    `gorm:"column:run_count"`
	Version   int64  `gorm:"column:version"`
	ChangedAt int64  `gorm:"column:changed_at"`
	ChangedBy string `gorm:"column:changed_by"`
	RunsFrom  int64  `gorm:"column:runs_from"`
	LogsFrom  int64  `gorm:"column:logs_from"`
}

// isRule is the condition of rows that are more than a note of what was deleted.
const isRule = "(run_days > 0 OR log_days > 0 OR run_count > 0)"

func (retentionRow) TableName() string { return "retention_rules" }

func (r *retentionRow) rule() domain.RetentionRule {
	return domain.RetentionRule{
		TenantID: domain.TenantID(r.TenantID), JobID: domain.JobID(r.JobID), Retention: r.retention(),
		Version: r.Version, ChangedAt: db.Instant(r.ChangedAt), ChangedBy: r.ChangedBy,
	}
}

func (r *retentionRow) retention() domain.Retention {
	return domain.Retention{RunDays: r.RunDays, LogDays: r.LogDays, RunCount: r.RunCount}
}

func (r *retentionRow) view(tenant domain.Retention) store.RetentionView {
	return store.RetentionView{RetentionRule: r.rule(), Effective: r.retention().Under(tenant), RunsFrom: db.Instant(r.RunsFrom)}
}

// FindRetention reads the rule and that of the tenant.
func (s *Rules) FindRetention(ctx context.Context, tenant domain.TenantID, job domain.JobID) (v store.RetentionView, err error) {
	rows, err := db.FindAll[retentionRow](ctx, s.DB, "find retention", "job_id", "tenant_id = ? AND job_id IN (0, ?)", int64(tenant), int64(job))
	if err != nil {
		return v, err
	}
	own, above := retentionRow{TenantID: int64(tenant), JobID: int64(job)}, domain.Retention{}
	for _, r := range rows {
		if r.JobID == 0 {
			above = r.retention()
		}
		if r.JobID == int64(job) {
			own = r
		}
	}
	v = own.view(above)
	return v, s.nameRetentions(ctx, tenant, []*store.RetentionView{&v})
}

// ListRetention implements store.RetentionRules.
func (s *Rules) ListRetention(ctx context.Context, tenant domain.TenantID, after domain.JobID, limit int) (list []store.RetentionView, err error) {
	above, err := s.FindRetention(ctx, tenant, 0)
	if err != nil {
		return nil, err
	}
	if after == 0 && above.Retention != (domain.Retention{}) {
		list = append(list, above)
	}
	err = s.Look(ctx, "list retention", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		var rows []retentionRow
		if err := g.Where("tenant_id = ? AND job_id > ? AND "+isRule, int64(tenant), int64(after)).Order("job_id").Limit(limit - len(list)).Find(&rows).Error; err != nil {
			return err
		}
		for _, r := range rows {
			list = append(list, r.view(above.Retention))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	named := make([]*store.RetentionView, len(list))
	for i := range list {
		named[i] = &list[i]
	}
	return list, s.nameRetentions(ctx, tenant, named)
}

// nameRetentions fills in the names of jobs.
func (s *Rules) nameRetentions(ctx context.Context, tenant domain.TenantID, list []*store.RetentionView) error {
	var ids []domain.JobID
	for _, v := range list {
		if v.JobID != 0 {
			ids = append(ids, v.JobID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	names, err := db.LookPairs[domain.JobID, string](ctx, s.DB, "find names of jobs",
		"SELECT id, name FROM jobs"+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(ids)+") AND tenant_id = ?", int64(tenant))
	for _, v := range list {
		v.JobName = names[v.JobID]
	}
	return err
}

// SetRetention implements store.RetentionRules.
func (s *Rules) SetRetention(ctx context.Context, p store.SetRetentionParams) (store.RetentionView, error) {
	written := false
	err := s.RunRepeatable(ctx, "set retention", func(t *db.Tx) error {
		if err := retentionSubject(t, p.Tenant, p.Job); err != nil {
			return err
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		row := retentionRow{TenantID: int64(p.Tenant), JobID: int64(p.Job)}
		var rows []retentionRow
		if err := t.Gorm.Clauses(t.Locking()...).Where("tenant_id = ? AND job_id = ?", row.TenantID, row.JobID).Find(&rows).Error; err != nil {
			return err
		}
		if len(rows) > 0 {
			row = rows[0]
		}
		if row.retention() == p.Retention && (written || p.IfVersion == 0 || row.Version == p.IfVersion) {
			return nil // the same again, or of a commit whose answer was lost
		}
		if p.IfVersion != 0 && row.Version != p.IfVersion {
			return domain.Errorf(domain.CodeRevisionMismatch, "the retention is at version %d, not %d: somebody changed it", row.Version, p.IfVersion)
		}
		written = true // of all tries
		t.AuditedChange(domain.AuditObject{}, retentionFacts(row.retention()), retentionFacts(p.Retention))
		row.RunDays, row.LogDays, row.RunCount = p.Retention.RunDays, p.Retention.LogDays, p.Retention.RunCount
		row.Version, row.ChangedAt, row.ChangedBy = row.Version+1, db.Millis(now), record.Clip(p.By, record.NameSize)
		return t.Gorm.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error // a key of 0 is a value, too
	})
	if err != nil {
		return store.RetentionView{}, err
	}
	return s.FindRetention(ctx, p.Tenant, p.Job)
}

func retentionFacts(r domain.Retention) db.Facts {
	return db.Facts{"runDays": r.RunDays, "logDays": r.LogDays, "runCount": r.RunCount}
}

// retentionSubject finds a tenant, or a job of it that keeps runs of its own, and locks
// it until the commit, so that it does not go meanwhile.
func retentionSubject(t *db.Tx, tenant domain.TenantID, job domain.JobID) error {
	if job == 0 {
		found, err := record.TenantExists(t, tenant, t.Dialect.ForShare())
		if err == nil && !found {
			err = db.NotFound("tenant", tenant)
		}
		return err
	}
	found := false
	err := db.Query(t.Ctx, t.Conn, func(*sql.Rows) error { found = true; return nil },
		fmt.Sprintf("SELECT 1 FROM jobs%s WHERE id = %d AND tenant_id = %d AND kind <> %d AND state <> %d%s",
			t.Dialect.ByPrimary(), job, tenant, domain.JobTimer, domain.JobDeleted, t.Dialect.ForShare()))
	if err == nil && !found {
		err = db.NotFound("job", job)
	}
	return err
}

// ApplyRetentionRules goes from tenant to tenant that has a rule: through all its jobs
// if the tenant has one, else through those that do. A job costs one look into
// uq_executions_occurrence, whatever it has stored.
func (s *Retention) ApplyRetentionRules(ctx context.Context, limit int) (runs, chunks int64, err error) {
	var rules []retentionRow
	rows, err := db.FindAll[retentionRow](ctx, s.DB, "list retention", "tenant_id, job_id", isRule)
	if err != nil {
		return 0, 0, err
	}
	for i := range rows {
		rules = append(rules, rows[i])
		if i+1 < len(rows) && rows[i+1].TenantID == rows[i].TenantID {
			continue
		}
		r, c, err := s.applyRetention(ctx, rules, limit)
		if runs, chunks = runs+r, chunks+c; err != nil {
			return runs, chunks, err
		}
		rules = nil
	}
	return runs, chunks, nil
}

// applyRetention applies the rules of one tenant, its own first if there is one.
func (s *Retention) applyRetention(ctx context.Context, rules []retentionRow, limit int) (runs, chunks int64, err error) {
	tenant, above := domain.TenantID(rules[0].TenantID), domain.Retention{}
	jobs := map[domain.JobID]*retentionRow{}
	if rules[0].JobID == 0 {
		above = rules[0].retention()
	}
	now, err := s.clock(ctx)
	if err != nil {
		return 0, 0, err
	}
	if above.LogDays > 0 {
		for n := int64(1); n > 0 && ctx.Err() == nil; chunks += n {
			if n, _, err = s.deleteOldLogs(ctx, tenant, below(now.Add(-domain.Days(above.LogDays))), pruneBytes, pruneLimit); err != nil {
				return 0, chunks, err
			}
		}
	}
	ids, err := s.jobsOf(ctx, tenant, 0)
	if err != nil {
		return 0, chunks, err
	}
	for i := range rules {
		jobs[domain.JobID(rules[i].JobID)] = &rules[i]
	}
	for _, id := range ids {
		rule := jobs[id]
		if rule == nil && above == (domain.Retention{LogDays: above.LogDays}) {
			continue
		}
		r, c, err := s.applyToJob(ctx, tenant, id, rule, above, now, limit)
		if runs, chunks = runs+r, chunks+c; err != nil {
			return runs, chunks, err
		}
	}
	return runs, chunks, ctx.Err()
}

func (s *Retention) applyToJob(ctx context.Context, tenant domain.TenantID, job domain.JobID, rule *retentionRow, above domain.Retention, now time.Time, limit int) (runs, chunks int64, err error) {
	keep := above
	if rule != nil {
		keep = rule.retention().Under(above)
	}
	latest := now.Add(-domain.RetentionGrace)
	var cuts []prune
	if keep.RunDays > 0 {
		before := now.Add(-domain.Days(keep.RunDays))
		cuts = append(cuts, prune{tenant, job, before, before})
	}
	if keep.RunCount > 0 {
		before, ok, err := s.newestKept(ctx, job, keep.RunCount)
		if err != nil {
			return 0, 0, err
		}
		if ok {
			cuts = append(cuts, prune{tenant, job, before, latest})
		}
	}
	for _, cut := range cuts {
		r, c, err := s.pruneRuns(ctx, cut, limit, ctx.Err, func(*db.Tx, int64) error { return nil })
		if runs, chunks = runs+r, chunks+c; err != nil {
			return runs, chunks, err
		}
	}
	if rule == nil || rule.LogDays == 0 {
		return runs, chunks, nil // those of the tenant have gone
	}
	c, err := s.pruneLogsOfJob(ctx, prune{tenant, job, now.Add(-domain.Days(keep.LogDays)), latest}, rule.LogsFrom)
	return runs, chunks + c, err
}

// pruneLogsOfJob goes on where it ended the last time. Logs of a run that had not
// ended then go with those of the tenant.
func (s *Retention) pruneLogsOfJob(ctx context.Context, p prune, from int64) (chunks int64, err error) {
	at := pruneAt{fire: from}
	for more := true; more; {
		var list []prunable
		if list, at, more, err = s.nextPrunable(ctx, p, at); err != nil {
			return chunks, err
		}
		c, err := s.pruneLogs(ctx, p.tenant, list)
		if chunks += c; err != nil {
			return chunks, err
		}
		err = s.RunRepeatable(ctx, "note deleted logs", func(t *db.Tx) error {
			_, err := t.Exec(t.Ctx, "UPDATE retention_rules SET logs_from = ? WHERE tenant_id = ? AND job_id = ? AND logs_from < ?", at.fire, int64(p.tenant), int64(p.job), at.fire)
			return err
		})
		if err != nil {
			return chunks, err
		}
	}
	return chunks, nil
}

// jobsOf returns the jobs of a tenant that keep runs of their own, deleted ones too,
// after one.
func (s shared) jobsOf(ctx context.Context, tenant domain.TenantID, after domain.JobID) (ids []domain.JobID, err error) {
	return db.LookColumn[domain.JobID](ctx, s.DB, "list jobs", JobsOfTenant(s.Dialect, tenant, after))
}

// JobsOfTenant reads an index alone.
func JobsOfTenant(d db.Dialect, tenant domain.TenantID, after domain.JobID) string {
	return fmt.Sprintf("SELECT id FROM jobs%s WHERE tenant_id = %d AND kind < %d AND id > %d", d.ByIndex("ix_jobs_kind"), tenant, domain.JobTimer, after)
}

// clock reads the database's clock.
func (s shared) clock(ctx context.Context) (now time.Time, err error) {
	err = s.LookRows(ctx, "read clock", func(rows *sql.Rows) error {
		var ms int64
		err := rows.Scan(&ms)
		now = db.Instant(ms)
		return err
	}, "SELECT "+s.Dialect.Clock())
	return now, err
}
