package record

import (
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Values of jobs.undeclared.
const (
	undeclaredGone   = 1
	undeclaredPaused = 2
)

func (r *JobRow) declared() domain.Declared {
	return domain.Declared{
		By: domain.ExecutorID(r.DeclaredBy), Name: r.DeclaredName, Ownership: domain.Ownership(r.Ownership), Removal: domain.Removal(r.Removal),
		Build: r.DeclaredBuild, Version: r.DeclaredVersion,
		Gone: r.Undeclared != 0, PausedGone: r.Undeclared == undeclaredPaused, Replaced: r.ReplacedRevision,
	}
}

// Decided notes that somebody has paused or resumed the job: whether it was paused for
// being declared by nobody does not count any more.
func (r *JobRow) Decided() {
	if r.Undeclared == undeclaredPaused {
		r.Undeclared = undeclaredGone
	}
}

// PausedByMachine reports whether the job is paused because an executor or a tenant
// was disabled, or because no code declares it any more.
func (r *JobRow) PausedByMachine() bool {
	return r.State == int64(domain.JobPaused) && (r.HeldBy != 0 || r.Undeclared == undeclaredPaused)
}

// SetState writes a new state of the job. A job that is left paused gets a new pause.
func (r *JobRow) SetState(state domain.JobState, by, note string, now int64) {
	r.State, r.PauseNote, r.PausedBy, r.PausedAt = int64(state), note, "", 0
	if state == domain.JobPaused {
		r.PausedBy, r.PausedAt = by, now
	}
}

// SetDeclared replaces what the job notes about its declaration; nil keeps it.
func (r *JobRow) SetDeclared(d *domain.Declared) {
	if d == nil {
		return
	}
	r.DeclaredBy, r.DeclaredName = int64(d.By), Clip(d.Name, NameSize)
	r.Ownership, r.Removal = string(d.Ownership), string(d.Removal)
	r.DeclaredBuild, r.DeclaredVersion, r.Undeclared, r.ReplacedRevision = d.Build, Clip(d.Version, NameSize), 0, d.Replaced
	switch {
	case d.PausedGone:
		r.Undeclared = undeclaredPaused
	case d.Gone:
		r.Undeclared = undeclaredGone
	}
}

// JobRow is a row of jobs.
type JobRow struct {
	ID              int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID        int64  `gorm:"column:tenant_id"`
	ExecutorID      int64  `gorm:"column:executor_id"`
	Part            int64  `gorm:"column:part"`
	State           int64  `gorm:"column:state"`
	Kind            int64  `gorm:"column:kind"`
	Name            string `gorm:"column:name"`
	Handler         string `gorm:"column:handler"`
	Description     string `gorm:"column:description"`
	Labels          string `gorm:"column:labels"`
	Owner           string `gorm:"column:owner"`
	PauseNote       string `gorm:"column:pause_note"`
	PausedBy        string `gorm:"column:paused_by"`
	PausedAt        int64  `gorm:"column:paused_at"`
	HeldBy          int64  `gorm:"column:held_by"`
	Source          string `gorm:"column:source"`
	DeclarationHash string `gorm:"column:declaration_hash"`
	DeclaredBy      int64  `gorm:"column:declared_by"`
	DeclaredName    string `gorm:"column:declared_name"`
	Ownership       string `gorm:"column:ownership"`
	Removal         string `gorm:"column:removal"`
	DeclaredBuild   string `gorm:"column:declared_build"`
	DeclaredVersion string `gorm:"column:declared_version"`
	// ReplacedRevision is domain.Declared.Replaced.
	ReplacedRevision int64  `gorm:"column:replaced_revision"`
	Undeclared       int64  `gorm:"column:undeclared"`
	Revision         int64  `gorm:"column:revision"`
	FiresPerMinute   int64  `gorm:"column:fires_per_minute"`
	CreatedAt        int64  `gorm:"column:created_at;autoCreateTime:false"`
	UpdatedAt        int64  `gorm:"column:updated_at;autoUpdateTime:false"`
	CreatedBy        string `gorm:"column:created_by"`
	UpdatedBy        string `gorm:"column:updated_by"`
}

func (JobRow) TableName() string { return "jobs" }

// RevisionRow is a row of job_revisions.
type RevisionRow struct {
	JobID     int64  `gorm:"column:job_id;primaryKey;autoIncrement:false"`
	Revision  int64  `gorm:"column:revision;primaryKey;autoIncrement:false"`
	TenantID  int64  `gorm:"column:tenant_id"`
	Spec      string `gorm:"column:spec"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	CreatedBy string `gorm:"column:created_by"`
}

func (RevisionRow) TableName() string { return "job_revisions" }

// SetSpec copies what lists filter and sort by.
func (r *JobRow) SetSpec(spec *domain.JobSpec) {
	r.Name, r.Handler, r.Description = spec.Name, spec.Handler, spec.Description
	r.Owner = Clip(strings.TrimSpace(spec.Owner.Name+" "+spec.Owner.Email), 512)
	keys := make([]string, 0, len(spec.Labels))
	for k := range spec.Labels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, k := range keys {
		b.WriteString("\n" + k + "=" + spec.Labels[k] + "\n")
	}
	r.Labels = b.String()
}

// LabelMap reads the column labels.
func (r *JobRow) LabelMap() map[string]string {
	out := map[string]string{}
	for line := range strings.SplitSeq(r.Labels, "\n") {
		if key, value, ok := strings.Cut(line, "="); ok {
			out[key] = value
		}
	}
	return out
}

// Job is what the row means, with the settings of its revision.
func (r *JobRow) Job(spec *domain.JobSpec) domain.Job {
	return domain.Job{
		ID: domain.JobID(r.ID), TenantID: domain.TenantID(r.TenantID), Executor: domain.ExecutorID(r.ExecutorID), Partition: int(r.Part),
		State: domain.JobState(r.State), Kind: domain.JobKind(r.Kind), Held: r.HeldBy != 0, Source: domain.Source(r.Source), DeclarationHash: r.DeclarationHash,
		Pause:    domain.Pause{By: r.PausedBy, At: db.Instant(r.PausedAt), Note: r.PauseNote},
		Declared: r.declared(), Revision: r.Revision, Spec: *spec, CreatedAt: db.Instant(r.CreatedAt), UpdatedAt: db.Instant(r.UpdatedAt),
		CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy,
	}
}

// OfJob reads the settings of a job in its present revision.
func (c *SpecCache) OfJob(t *db.Tx, job *JobRow) (*domain.JobSpec, error) {
	revision, err := c.RevisionOf(t, job)
	return revision.Spec, err
}

// RevisionOf is OfJob with the author. A revision that cannot be read has none.
func (c *SpecCache) RevisionOf(t *db.Tx, job *JobRow) (CachedSpec, error) {
	key := RevisionKey{domain.JobID(job.ID), job.Revision}
	specs, err := c.Load(t.Ctx, t.Conn, []RevisionKey{key})
	if err != nil {
		return CachedSpec{}, err
	}
	if specs[key].Spec == nil {
		return CachedSpec{Spec: job.Unreadable(c.Why(key))}, nil
	}
	return specs[key], nil
}

// Unreadable stands for a revision that cannot be read, so that the job can be
// seen, paused, deleted and saved anew.
func (r *JobRow) Unreadable(why error) *domain.JobSpec {
	return &domain.JobSpec{
		Name: r.Name, Handler: r.Handler, Description: "This job cannot be run: " + why.Error() + ". Save it anew.",
		Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone},
	}
}
