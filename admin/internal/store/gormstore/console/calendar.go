package console

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type calendarRow struct {
	ID        int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID  int64  `gorm:"column:tenant_id"`
	State     int64  `gorm:"column:state"`
	Name      string `gorm:"column:name"`
	Version   int64  `gorm:"column:version"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	UpdatedAt int64  `gorm:"column:updated_at;autoUpdateTime:false"`
	CreatedBy string `gorm:"column:created_by"`
	UpdatedBy string `gorm:"column:updated_by"`
}

func (calendarRow) TableName() string { return "calendars" }

type calendarVersionRow struct {
	CalendarID int64  `gorm:"column:calendar_id;primaryKey;autoIncrement:false"`
	Version    int64  `gorm:"column:version;primaryKey;autoIncrement:false"`
	TenantID   int64  `gorm:"column:tenant_id"`
	Spec       string `gorm:"column:spec"`
	CreatedAt  int64  `gorm:"column:created_at;autoCreateTime:false"`
	CreatedBy  string `gorm:"column:created_by"`
}

func (calendarVersionRow) TableName() string { return "calendar_versions" }

const (
	calendarLive    = 1
	calendarDeleted = record.CalendarDeleted
)

func (r *calendarRow) calendar(spec *domain.CalendarSpec) domain.Calendar {
	return domain.Calendar{
		ID: domain.CalendarID(r.ID), TenantID: domain.TenantID(r.TenantID), Version: r.Version, Spec: *spec,
		CreatedAt: db.Instant(r.CreatedAt), UpdatedAt: db.Instant(r.UpdatedAt), CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy,
	}
}

func (s *Calendars) CreateCalendar(ctx context.Context, c domain.Calendar) (domain.Calendar, error) {
	err := s.RunAt(ctx, "create calendar", func(t *db.Tx, now time.Time) error {
		row := calendarRow{
			ID: int64(c.ID), TenantID: int64(c.TenantID), State: calendarLive, Name: c.Spec.Name, Version: 1,
			CreatedAt: db.Millis(now), UpdatedAt: db.Millis(now), CreatedBy: c.CreatedBy, UpdatedBy: c.CreatedBy,
		}
		if err := t.Gorm.Create(&row).Error; err != nil {
			return db.NameTaken(err, "calendar", c.Spec.Name)
		}
		return insertCalendarVersion(t, &row, &c.Spec)
	})
	if err != nil {
		return domain.Calendar{}, err
	}
	return s.FindCalendar(ctx, c.TenantID, c.ID)
}

func insertCalendarVersion(t *db.Tx, row *calendarRow, spec *domain.CalendarSpec) error {
	text, err := record.EncodeCalendar(spec)
	if err != nil {
		return fmt.Errorf("encode calendar: %w", err)
	}
	err = t.Gorm.Create(&calendarVersionRow{
		CalendarID: row.ID, Version: row.Version, TenantID: row.TenantID, Spec: text, CreatedAt: row.UpdatedAt, CreatedBy: row.UpdatedBy,
	}).Error
	if err != nil {
		return err
	}
	return calendarHistory.store(t, row.TenantID, row.ID, row.Version, text, fmt.Sprintf("SELECT version FROM job_calendars WHERE calendar_id = %d", row.ID))
}

// lockCalendar locks a living calendar. Whoever links a job to it holds it for
// sharing until its own commit.
func lockCalendar(t *db.Tx, tenant domain.TenantID, id domain.CalendarID, lock string) (row calendarRow, now int64, err error) {
	r := t.SQL.QueryRowContext(t.Ctx, "SELECT id, tenant_id, state, name, version, created_at, created_by, "+t.Dialect.Clock()+
		" FROM calendars WHERE id = ? AND tenant_id = ?"+lock, int64(id), int64(tenant))
	err = r.Scan(&row.ID, &row.TenantID, &row.State, &row.Name, &row.Version, &row.CreatedAt, &row.CreatedBy, &now)
	if errors.Is(err, sql.ErrNoRows) || err == nil && row.State == calendarDeleted {
		return row, now, db.NotFound("calendar", id)
	}
	if err != nil {
		return row, now, fmt.Errorf("lock calendar: %w", err)
	}
	return row, now, nil
}

func (s *Calendars) UpdateCalendar(ctx context.Context, p store.UpdateCalendarParams) (domain.Calendar, error) {
	err := s.Run(ctx, "update calendar", func(t *db.Tx) error {
		row, now, err := lockCalendar(t, p.Tenant, p.ID, t.Dialect.ForUpdate())
		if err != nil {
			return err
		}
		if p.IfVersion != 0 && p.IfVersion != row.Version {
			return domain.Errorf(domain.CodeRevisionMismatch, "calendar %s is at version %d, not %d", p.ID, row.Version, p.IfVersion)
		}
		row.Version++
		row.Name, row.UpdatedAt, row.UpdatedBy = p.Spec.Name, now, p.By
		if err := insertCalendarVersion(t, &row, &p.Spec); err != nil {
			return err
		}
		_, err = t.Exec(t.Ctx, "UPDATE calendars SET name = ?, version = ?, updated_at = ?, updated_by = ? WHERE id = ? AND tenant_id = ?",
			row.Name, row.Version, row.UpdatedAt, row.UpdatedBy, row.ID, row.TenantID)
		return db.NameTaken(err, "calendar", p.Spec.Name)
	})
	if err != nil {
		return domain.Calendar{}, err
	}
	return s.FindCalendar(ctx, p.Tenant, p.ID)
}

func (s *Calendars) DeleteCalendar(ctx context.Context, tenant domain.TenantID, id domain.CalendarID, by string) error {
	return s.Run(ctx, "delete calendar", func(t *db.Tx) error {
		row, now, err := lockCalendar(t, tenant, id, t.Dialect.ForUpdate())
		if err != nil {
			return err
		}
		jobs, err := calendarJobs(t.Ctx, t.Conn, tenant, id, 4)
		if err != nil {
			return err
		}
		if len(jobs) > 0 {
			return db.UsedBy("calendar", row.Name, jobs)
		}
		_, err = t.Exec(t.Ctx, "UPDATE calendars SET state = ?, updated_at = ?, updated_by = ? WHERE id = ? AND tenant_id = ?",
			calendarDeleted, now, by, row.ID, row.TenantID)
		return err
	})
}

func (s *Calendars) FindCalendar(ctx context.Context, tenant domain.TenantID, id domain.CalendarID) (domain.Calendar, error) {
	return s.findCalendar(ctx, "id = ? AND tenant_id = ? AND state <> ?", int64(id), int64(tenant), calendarDeleted)
}

func (s *Calendars) FindCalendarByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Calendar, error) {
	return s.findCalendar(ctx, "tenant_id = ? AND name = ? AND state <> ?", int64(tenant), name, calendarDeleted)
}

func (s *Calendars) findCalendar(ctx context.Context, where string, args ...any) (c domain.Calendar, err error) {
	err = s.Look(ctx, "find calendar", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var row calendarRow
		if err := g.Where(where, args...).Take(&row).Error; err != nil {
			return err
		}
		list, err := calendarsOf(ctx, q, []calendarRow{row})
		if err == nil {
			c = list[0]
		}
		return err
	})
	return c, err
}

// calendarsOf adds the contents.
func calendarsOf(ctx context.Context, q db.Querier, rows []calendarRow) ([]domain.Calendar, error) {
	keys := make([]record.CalendarKey, len(rows))
	for i, r := range rows {
		keys[i] = record.CalendarKey{Tenant: domain.TenantID(r.TenantID), ID: domain.CalendarID(r.ID), Version: r.Version}
	}
	specs, err := record.LoadCalendars(ctx, q, keys)
	if err != nil {
		return nil, err
	}
	out := make([]domain.Calendar, len(rows))
	for i, r := range rows {
		spec := specs[keys[i]]
		if spec == nil {
			spec = &domain.CalendarSpec{Name: r.Name, Description: fmt.Sprintf("Version %d of this calendar cannot be read. Save it anew.", r.Version)}
		}
		out[i] = r.calendar(spec)
	}
	return out, nil
}

// sizedCalendar is a calendar with the size of its contents, in bytes.
type sizedCalendar struct {
	Row  calendarRow `gorm:"embedded"`
	Size int         `gorm:"column:size"`
}

func (s *Calendars) ListCalendars(ctx context.Context, p store.ListCalendarsParams) (out store.Page[domain.Calendar], err error) {
	err = s.Look(ctx, "list calendars", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		found := g.Table("calendars AS c").Select("c.*, COALESCE(LENGTH(v.spec), 0) AS size").
			Joins("LEFT JOIN calendar_versions AS v ON v.tenant_id = c.tenant_id AND v.calendar_id = c.id AND v.version = c.version").
			Where("c.tenant_id = ? AND c.name > ? AND c.state <> ?", int64(p.Tenant), p.After, calendarDeleted).Order("c.name")
		sized, more, err := record.FindWithin(found, record.PageSize(p.Limit), func(r *sizedCalendar) int { return r.Size })
		if err != nil {
			return err
		}
		list, err := calendarsOf(ctx, q, domain.Collect(sized, func(r *sizedCalendar) calendarRow { return r.Row }))
		out = store.Page[domain.Calendar]{Items: list, More: more}
		return err
	})
	return out, err
}

func (s *Calendars) ListCalendarVersions(ctx context.Context, tenant domain.TenantID, id domain.CalendarID, before int64, limit int) (out store.Page[domain.Calendar], err error) {
	err = s.Look(ctx, "list calendar versions", func(ctx context.Context, _ db.Querier, g *gorm.DB) error {
		g = g.Where("calendar_id = ? AND tenant_id = ?", int64(id), int64(tenant)).Order("version DESC")
		if before != 0 {
			g = g.Where("version < ?", before)
		}
		rows, more, err := record.FindWithin(g, record.PageSize(limit), func(r *calendarVersionRow) int { return len(r.Spec) })
		if err != nil {
			return err
		}
		if len(rows) == 0 && before == 0 {
			return db.NotFound("calendar", id)
		}
		out = store.Page[domain.Calendar]{Items: make([]domain.Calendar, len(rows)), More: more}
		for i, r := range rows {
			spec, err := record.DecodeCalendar([]byte(r.Spec))
			if err != nil {
				spec = &domain.CalendarSpec{Description: "This version cannot be read: " + err.Error()}
			}
			out.Items[i] = domain.Calendar{
				ID: id, TenantID: tenant, Version: r.Version, Spec: *spec, CreatedAt: db.Instant(r.CreatedAt), CreatedBy: r.CreatedBy,
				UpdatedAt: db.Instant(r.CreatedAt), UpdatedBy: r.CreatedBy,
			}
		}
		return nil
	})
	return out, err
}

func (s *Calendars) ListCalendarJobs(ctx context.Context, tenant domain.TenantID, id domain.CalendarID, limit int) (out []store.JobRef, err error) {
	err = s.Look(ctx, "list jobs of a calendar", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out, err = calendarJobs(ctx, q, tenant, id, record.PageSize(limit))
		return err
	})
	return out, err
}

func calendarJobs(ctx context.Context, q db.Querier, tenant domain.TenantID, id domain.CalendarID, limit int) ([]store.JobRef, error) {
	return jobsWith(ctx, q, "job_calendars", "calendar_id", tenant, int64(id), limit)
}

// jobsWith are the jobs that a table of links names with an object, by name.
func jobsWith(ctx context.Context, q db.Querier, links, column string, tenant domain.TenantID, id int64, limit int) (out []store.JobRef, err error) {
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		j := store.JobRef{Tenant: tenant}
		err := rows.Scan(&j.ID, &j.Name)
		out = append(out, j)
		return err
	}, fmt.Sprintf("SELECT j.id, j.name FROM %s AS l JOIN jobs AS j ON j.id = l.job_id"+
		" WHERE l.%s = %d AND l.tenant_id = %d ORDER BY j.name LIMIT %d", links, column, id, tenant, limit))
	return out, err
}
