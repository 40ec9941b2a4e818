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

// counted asserts that the sums of timers and bytes are those of the rows.
func (f *fixture) counted(after string) {
	f.t.Helper()
	sums := func() [2]int64 { return [2]int64{f.has(domain.QuotaTimers).Used, f.has(domain.QuotaStoredBytes).Used} }
	before := sums()
	_, err := f.s.RecountStored(f.ctx, f.now().Add(time.Hour))
	f.ok(err)
	require.Equal(f.t, sums(), before, after)
}

func (f *fixture) sized(j store.JobView, key string, bytes int, policy domain.TimerPolicy) store.SetTimer {
	timer := f.timer(j, key, f.now().Add(time.Hour), policy)
	timer.Input = []byte(`"` + strings.Repeat("é", (bytes-2)/2) + `"`)
	return timer
}

func (f *fixture) cancelTimer(j store.JobView, key string) {
	f.t.Helper()
	f.ok(f.s.CancelTimers(f.ctx, store.CancelTimersParams{Tenant: f.tenant, Job: j.ID, Keys: []string{key}, By: "anna"})[0].Err)
}

// testStoredBytes adds and deletes rows in each way. The sums follow.
func testStoredBytes(t *testing.T, f *fixture) {
	f.counted("at the beginning")
	empty := f.has(domain.QuotaStoredBytes).Used
	job := f.timerJob(nil)
	f.counted("a job")
	require.Greater(t, f.has(domain.QuotaStoredBytes).Used, empty)

	base := f.has(domain.QuotaStoredBytes).Used
	f.setOK(domain.TimerCreated, f.sized(job, "1", 1000, domain.TimerKeep))
	labelled := f.sized(job, "2", 100, domain.TimerKeep)
	labelled.Labels = []string{"a", "b"}
	f.setOK(domain.TimerCreated, labelled)
	require.EqualValues(t, base+1100+4*domain.StoredRow, f.has(domain.QuotaStoredBytes).Used)
	f.setOK(domain.TimerKept, f.sized(job, "1", 5000, domain.TimerKeep))
	f.setOK(domain.TimerReplaced, f.sized(job, "1", 600, domain.TimerReplace))
	f.counted("timers")
	require.EqualValues(t, base+700+4*domain.StoredRow, f.has(domain.QuotaStoredBytes).Used)
	f.cancelTimer(job, "2")
	f.counted("a cancelled timer")
	due := f.sized(job, "3", 300, domain.TimerKeep)
	due.FireAt = f.now()
	f.setOK(domain.TimerCreated, due)
	require.Len(t, f.claimTimers(0), 1)
	f.counted("a claimed timer")
	require.EqualValues(t, base+600+domain.StoredRow, f.has(domain.QuotaStoredBytes).Used)

	id, err := f.tryJob(time.Minute, domain.JobEnabled)
	f.ok(err)
	v, err := f.s.FindJob(f.ctx, f.tenant, id)
	f.ok(err)
	v.Spec.Description = "ünicode"
	_, err = f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: id, Spec: v.Spec, By: "anna", Next: at(domain.Never)})
	f.ok(err)
	f.counted("an edited job")
	script := f.revise(f.script("a script", "shell", "echo 1"), "echo 2", "")
	f.counted("a script")
	calendar := f.edit(f.calendar("a calendar", "2026-10-01"), "2026-10-02")
	f.counted("a calendar")
	f.ok(f.deleteScript(script))
	f.ok(f.deleteCalendar(calendar.ID))
	full := f.has(domain.QuotaStoredBytes).Used
	_, err = f.s.DeleteDocumentsBefore(f.ctx, f.now().Add(time.Hour), 1000)
	f.ok(err)
	_, err = f.s.RecountStored(f.ctx, f.now().Add(-time.Hour)) // deletions ask for it
	f.ok(err)
	require.Less(t, f.has(domain.QuotaStoredBytes).Used, full)
	f.counted("deleted rows")
}

// testQuotaOfStoredBytes fills the quota with timers. Documents may have an eighth more.
func testQuotaOfStoredBytes(t *testing.T, f *fixture) {
	job := f.timerJob(nil)
	base := f.has(domain.QuotaStoredBytes).Used
	limit := base + 16<<10
	f.quota(domain.QuotaStoredBytes, limit)
	const size = 3<<10 - domain.StoredRow
	var batch []store.SetTimer
	for i := range 6 {
		batch = append(batch, f.sized(job, fmt.Sprint(i), size, domain.TimerKeep))
	}
	got := f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: batch})
	for i := range 5 {
		f.ok(got[i].Err)
	}
	f.exceeded(got[5].Err, domain.QuotaStoredBytes, base+15<<10, 3<<10)

	// One in the place of another one counts by how much it is larger.
	larger := f.set(f.sized(job, "0", size+2<<10, domain.TimerReplace))
	f.exceeded(larger.Err, domain.QuotaStoredBytes, base+15<<10, 2<<10)
	require.EqualValues(t, base+15<<10, f.has(domain.QuotaStoredBytes).Used, "the other one stays")
	f.setOK(domain.TimerReplaced, f.sized(job, "0", size+1<<10, domain.TimerReplace))
	f.counted("at the quota")

	edit := func(bytes int) error {
		v, err := f.s.FindJob(f.ctx, f.tenant, job.ID)
		f.ok(err)
		v.Spec.Input = []byte(`"` + strings.Repeat("x", bytes) + `"`)
		_, err = f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: job.ID, Spec: v.Spec, By: "anna", Next: at(domain.Never)})
		return err
	}
	f.ok(edit(100))
	f.code(domain.CodeQuotaExceeded, edit(8<<10))
	f.counted("a refused edit")
	f.cancelTimer(job, "1")
	f.quota(domain.QuotaStoredBytes, 0)
	f.ok(edit(8 << 10))
	f.quota(domain.QuotaStoredBytes, -1)
	require.EqualValues(t, 1<<30, f.has(domain.QuotaStoredBytes).Max)
	f.quota(domain.QuotaStoredBytes, 1<<40)
	require.EqualValues(t, 1<<40, f.has(domain.QuotaStoredBytes).Max)
}

// testHistories keeps the newest documents, and older ones that something uses.
func testHistories(t *testing.T, f *fixture) {
	const edits = domain.MaxHistory + 10
	calendar := f.calendar("days", "2026-10-01")
	j := f.job(func(s *domain.JobSpec) { s.Schedule.Calendars = []domain.CalendarUse{use(calendar)} })
	run := f.run(j)
	spec := j.Spec
	for i := range edits {
		spec.Description = fmt.Sprint("edit ", i)
		_, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: spec, By: "anna", Next: at(domain.Never)})
		f.ok(err)
	}
	_, err := f.s.JobSpec(f.ctx, f.tenant, j.ID, run.Revision)
	f.ok(err)
	numbers := func() (out []int64) {
		for before := int64(0); ; {
			page, err := f.s.ListRevisions(f.ctx, store.ListRevisionsParams{Tenant: f.tenant, Job: j.ID, Before: before, Limit: 100})
			f.ok(err)
			for _, r := range page.Items {
				out, before = append(out, r.Revision), r.Revision
			}
			if !page.More {
				return out
			}
		}
	}
	kept := numbers()
	require.Len(t, kept, domain.MaxHistory+1)
	require.EqualValues(t, 1, kept[domain.MaxHistory], "a run that lives was made by it")
	require.EqualValues(t, edits+1-domain.MaxHistory+1, kept[domain.MaxHistory-1])
	f.counted("old revisions left")

	used := f.script("used", "shell", "echo 0")
	_, err = f.s.CreateJob(f.ctx, f.scriptJob(used, 2), at(domain.Never))
	f.code(domain.CodeInvalid, err)
	_, err = f.s.CreateJob(f.ctx, f.scriptJob(used, 1), at(domain.Never))
	f.ok(err)
	for i := range edits {
		calendar = f.edit(calendar, fmt.Sprintf("2026-10-%02d", i%30+1))
		used = f.revise(used, fmt.Sprint("echo ", i+1), "")
	}
	versions := 0
	for before := int64(0); ; {
		rows, more, err := f.s.CalendarTable().ListVersions(f.ctx, f.tenant, int64(calendar.ID), before, 100)
		f.ok(err)
		for _, r := range rows {
			versions, before = versions+1, r.Version
		}
		if !more {
			require.EqualValues(t, 1, before, "a job uses it")
			break
		}
	}
	require.Equal(t, domain.MaxHistory+1, versions)
	for version, kept := range map[int64]bool{1: true, 2: false, edits + 1 - domain.MaxHistory + 1: true} {
		_, err = f.s.FindScript(f.ctx, f.tenant, domain.ScriptUse{ID: used.ID, Revision: version})
		require.Equal(t, kept, err == nil, "%d: %v", version, err)
	}
	f.counted("old versions left")
}

func (f *fixture) scriptJob(s domain.Script, revision int64) domain.Job {
	return domain.Job{
		ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: f.executor, State: domain.JobEnabled, CreatedBy: "anna",
		Spec: domain.JobSpec{
			Name: fmt.Sprintf("job %06d", jobNumber.Add(1)), Handler: domain.ScriptHandlerPrefix + s.Language, Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone},
			Script: &domain.ScriptUse{ID: s.ID, Revision: revision},
		},
	}
}

// testCountBounds refuses valid rows beyond their bound. Dead rows make room.
func testCountBounds(t *testing.T, f *fixture) {
	token := func() (int64, error) {
		id := ids.Next()
		return id, f.s.CreateJoinToken(f.ctx, domain.JoinToken{ID: id, TenantID: f.tenant, Executor: f.executor, Name: "t", Hash: hash(f, fmt.Sprint("bound", id))})
	}
	var tokens []int64
	for range domain.MaxJoinTokens {
		id, err := token()
		f.ok(err)
		tokens = append(tokens, id)
	}
	_, err := token()
	f.code(domain.CodeQuotaExceeded, err)
	for range 2 { // the second round has the bound of those that are over
		for _, id := range tokens {
			f.ok(f.s.RevokeJoinToken(f.ctx, f.tenant, id))
		}
		for i := range tokens {
			tokens[i], err = token()
			f.ok(err)
		}
	}
	list, err := f.s.ListJoinTokens(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Len(t, list, 2*domain.MaxJoinTokens)

	deny := func(subject string) error {
		_, err := f.s.CreateDenial(f.ctx, domain.Denial{ID: ids.Next(), TenantID: f.tenant, Executor: f.executor, Kind: domain.DenyInstance, Subject: subject})
		return err
	}
	for i := range domain.MaxDenials {
		f.ok(deny(fmt.Sprint("boot ", i)))
	}
	f.code(domain.CodeQuotaExceeded, deny("one more"))
	f.ok(deny("boot 0")) // it is denied already

	for range domain.MaxRevokedAPIKeys + 5 {
		id := ids.Next()
		f.ok(f.s.CreateAPIKey(f.ctx, domain.APIKey{ID: id, TenantID: f.tenant, Name: "k", Hash: hash(f, fmt.Sprint("bound", id)), Role: domain.RoleViewer, CreatedAt: time.Now()}))
		f.ok(f.s.RevokeAPIKey(f.ctx, f.tenant, id))
	}
	keys, err := f.s.ListAPIKeys(f.ctx, f.tenant)
	f.ok(err)
	require.LessOrEqual(t, len(keys), domain.MaxRevokedAPIKeys+1)
}
