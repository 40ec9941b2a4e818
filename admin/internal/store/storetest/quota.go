package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func (f *fixture) quota(k domain.QuotaKind, limit int64) {
	f.t.Helper()
	f.ok(f.s.SetQuotas(f.ctx, store.SetQuotasParams{Tenant: f.tenant, Max: map[domain.QuotaKind]int64{k: limit}, By: "root"}))
}

// has is a tenant's quota of a kind.
func (f *fixture) has(k domain.QuotaKind) domain.Quota {
	f.t.Helper()
	list, err := f.s.ListQuotas(f.ctx, f.tenant)
	f.ok(err)
	require.Len(f.t, list, len(domain.QuotaKinds))
	for _, q := range list {
		if q.Kind == k {
			return q
		}
	}
	f.t.Fatalf("no quota %s", k)
	return domain.Quota{}
}

// exceeded asserts that an error is of a quota with so much in use.
func (f *fixture) exceeded(err error, k domain.QuotaKind, used, asked int64) {
	f.t.Helper()
	f.code(domain.CodeQuotaExceeded, err)
	var de *domain.Error
	require.True(f.t, errors.As(err, &de) && de.Quota != nil)
	require.Equal(f.t, []any{k, used, asked}, []any{de.Quota.Kind, de.Quota.Used, de.Quota.Asked})
}

// tryJob creates a job that fires every so often; 0 = never.
func (f *fixture) tryJob(every time.Duration, state domain.JobState) (domain.JobID, error) {
	j := f.newJob(every, state)
	_, err := f.s.CreateJob(f.ctx, j.Job, j.Next)
	return j.ID, err
}

func (f *fixture) newJob(every time.Duration, state domain.JobState) store.NewJob {
	spec := domain.JobSpec{Name: fmt.Sprintf("job %06d", jobNumber.Add(1)), Handler: "h", Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone}}
	if every > 0 {
		spec.Schedule = domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: every}
	}
	return store.NewJob{
		Job:  domain.Job{ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: f.executor, State: state, Source: domain.SourceConsole, Spec: spec, CreatedBy: "anna"},
		Next: func(time.Time, *domain.JobSpec) time.Time { return domain.Never },
	}
}

func testQuotas(t *testing.T, f *fixture) {
	require.Equal(t, domain.Quota{Kind: domain.QuotaJobs, Max: domain.DefaultQuota(domain.QuotaJobs), Default: true}, f.has(domain.QuotaJobs))
	f.quota(domain.QuotaJobs, 3)
	first, err := f.tryJob(0, domain.JobEnabled)
	f.ok(err)
	_, err = f.tryJob(0, domain.JobPaused) // counts too
	f.ok(err)

	// Of many at once those are written that fit.
	errs := f.s.CreateJobs(f.ctx, f.tenant, []store.NewJob{f.newJob(0, domain.JobEnabled), f.newJob(0, domain.JobEnabled)})
	f.ok(errs[0])
	f.exceeded(errs[1], domain.QuotaJobs, 3, 1)
	_, err = f.tryJob(0, domain.JobEnabled)
	f.exceeded(err, domain.QuotaJobs, 3, 1)

	// A deleted one makes room.
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: first, State: domain.JobDeleted, By: "anna"})
	f.ok(err)
	_, err = f.tryJob(0, domain.JobEnabled)
	f.ok(err)

	// A quota below what is there takes nothing away and lets nothing in.
	f.quota(domain.QuotaJobs, 1)
	require.Equal(t, domain.Quota{Kind: domain.QuotaJobs, Max: 1, Used: 3}, f.has(domain.QuotaJobs))
	_, err = f.tryJob(0, domain.JobEnabled)
	f.exceeded(err, domain.QuotaJobs, 3, 1)
	f.quota(domain.QuotaJobs, 0) // no limit
	_, err = f.tryJob(0, domain.JobEnabled)
	f.ok(err)
	f.quota(domain.QuotaJobs, -1)
	require.Equal(t, domain.Quota{Kind: domain.QuotaJobs, Max: domain.DefaultQuota(domain.QuotaJobs), Used: 4, Default: true}, f.has(domain.QuotaJobs))

	nobody := domain.TenantID(ids.Next())
	_, err = f.s.ListQuotas(f.ctx, nobody)
	f.code(domain.CodeNotFound, err)
	f.code(domain.CodeNotFound, f.s.SetQuotas(f.ctx, store.SetQuotasParams{Tenant: nobody, Max: map[domain.QuotaKind]int64{domain.QuotaJobs: 1}}))
}

// testQuotaOfFires: what is enabled counts, by its newest revision.
func testQuotaOfFires(t *testing.T, f *fixture) {
	f.quota(domain.QuotaFires, 100)
	fast, err := f.tryJob(time.Second, domain.JobEnabled)
	f.ok(err)
	slow, err := f.tryJob(2*time.Second, domain.JobEnabled)
	f.ok(err)
	require.EqualValues(t, 90, f.has(domain.QuotaFires).Used)
	_, err = f.tryJob(5*time.Second, domain.JobEnabled)
	f.exceeded(err, domain.QuotaFires, 90, 12)
	third, err := f.tryJob(5*time.Second, domain.JobPaused)
	f.ok(err)

	set := func(id domain.JobID, state domain.JobState) error {
		_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: id, State: state, By: "anna", Next: at(domain.Never)})
		return err
	}
	edit := func(id domain.JobID, every time.Duration) error {
		v, err := f.s.FindJob(f.ctx, f.tenant, id)
		f.ok(err)
		v.Spec.Schedule.Every = every
		_, err = f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: id, Spec: v.Spec, By: "anna", Next: at(domain.Never)})
		return err
	}
	f.exceeded(set(third, domain.JobEnabled), domain.QuotaFires, 90, 12)
	f.ok(edit(third, time.Second)) // it is paused
	f.exceeded(edit(slow, time.Second), domain.QuotaFires, 90, 30)
	f.ok(edit(slow, 10*time.Second))
	require.EqualValues(t, 66, f.has(domain.QuotaFires).Used)
	f.ok(set(fast, domain.JobPaused))
	f.ok(set(third, domain.JobEnabled))
	f.ok(set(third, domain.JobEnabled)) // enabled as before
	require.EqualValues(t, 66, f.has(domain.QuotaFires).Used)

	// What stays the same passes also above the quota.
	f.quota(domain.QuotaFires, 10)
	f.ok(edit(third, time.Second))
	f.ok(set(third, domain.JobEnabled))
	f.exceeded(set(fast, domain.JobEnabled), domain.QuotaFires, 66, 60)
}

// testQuotaAlone checks that the default of fires needs another tenant with an enabled job.
func testQuotaAlone(t *testing.T, f *fixture) {
	byDefault := domain.DefaultQuota(domain.QuotaFires)
	const fires = 60_000 // in a minute, of a job that fires each millisecond
	require.Zero(t, byDefault%fires)
	job := func() error {
		_, err := f.tryJob(time.Millisecond, domain.JobEnabled)
		return err
	}
	limit := func(want int64, set bool) {
		t.Helper()
		q := f.has(domain.QuotaFires)
		require.Equal(t, []any{want, !set}, []any{q.Max, q.Default})
		most, err := f.s.MaxOf(f.ctx, f.tenant, domain.QuotaFires)
		f.ok(err)
		require.Equal(t, want, most)
	}
	for range byDefault/fires + 1 {
		f.ok(job())
	}
	limit(0, false)
	require.Equal(t, domain.DefaultQuota(domain.QuotaJobs), f.has(domain.QuotaJobs).Max, "all other quotas hold")

	// A tenant without jobs, such as that of the operators, leaves it alone.
	other := NewWorld(t, f.s)
	f.ok(job())
	limit(0, false)

	second := other.Job(nil)
	limit(byDefault, false)
	used := f.has(domain.QuotaFires).Used
	require.Equal(t, byDefault+2*fires, used, "what is there stays")
	err := job()
	f.exceeded(err, domain.QuotaFires, used, fires)
	require.ErrorContains(t, err, "This default holds because another tenant has jobs; ask a platform administrator")

	set := func(id domain.JobID, state domain.JobState) {
		_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: other.Tenant, ID: id, State: state, By: "anna", Next: at(domain.Never)})
		f.ok(err)
	}
	set(second.ID, domain.JobPaused)
	f.ok(job())
	set(second.ID, domain.JobEnabled)
	f.exceeded(job(), domain.QuotaFires, used+fires, fires)
	_, err = f.s.SetTenantState(f.ctx, store.SetTenantStateParams{ID: other.Tenant, State: domain.TenantDisabled})
	f.ok(err)
	f.ok(job())

	// A quota that somebody set holds for a tenant that is alone.
	f.quota(domain.QuotaFires, used)
	limit(used, true)
	f.exceeded(job(), domain.QuotaFires, used+2*fires, fires)
}

// testQuotaRace: whoever asks at once, the quota is not exceeded.
func testQuotaRace(t *testing.T, f *fixture) {
	const limit, askers, each = 10, 8, 4
	f.quota(domain.QuotaJobs, limit)
	var wg sync.WaitGroup
	errs := make([]error, askers*each)
	for i := range askers {
		wg.Go(func() {
			for n := range each {
				_, errs[i*each+n] = f.tryJob(0, domain.JobEnabled)
			}
		})
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else {
			f.code(domain.CodeQuotaExceeded, err)
		}
	}
	require.Equal(t, limit, made)
	require.EqualValues(t, limit, f.has(domain.QuotaJobs).Used)
}

// testQuotaOfJobsForCalls: jobs that the server makes for calls count as none,
// and are in no list that does not ask for them.
func testQuotaOfJobsForCalls(t *testing.T, f *fixture) {
	f.quota(domain.QuotaJobs, f.has(domain.QuotaJobs).Used)
	now := f.now()
	made := map[domain.JobKind]domain.JobID{}
	for _, kind := range []domain.JobKind{domain.JobCall, domain.JobCallback} {
		id := domain.JobID(ids.Next())
		v, err := f.s.CreateJob(f.ctx, domain.Job{
			ID: id, TenantID: f.tenant, Executor: f.executor, State: domain.JobEnabled, Kind: kind, CreatedBy: "carillon",
			Spec: domain.JobSpec{Name: kind.String() + id.String(), Handler: "h", Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone}},
		}, at(domain.Never))
		f.ok(err)
		require.Equal(t, kind, v.Kind)
		made[kind] = v.ID
		v.Spec.Labels = nil
		v, err = f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: id, Spec: v.Spec, Next: at(now)})
		f.ok(err)
		require.Equal(t, kind, v.Kind, "no edit changes it")
	}
	enabled, _, err := f.s.CountJobs(f.ctx, f.tenant, domain.Reach{})
	f.ok(err)
	require.EqualValues(t, f.has(domain.QuotaJobs).Used, enabled)
	list := func(p store.ListJobsParams) (out []domain.JobID) {
		p.Tenant, p.Limit = f.tenant, 100
		views, err := f.s.ListJobs(f.ctx, p)
		f.ok(err)
		for _, v := range views {
			out = append(out, v.ID)
		}
		return out
	}
	plain := list(store.ListJobsParams{})
	for kind, id := range made {
		require.NotContains(t, plain, id)
		require.Equal(t, []domain.JobID{id}, list(store.ListJobsParams{Kind: kind}))
	}
	require.Len(t, list(store.ListJobsParams{AllKinds: true}), len(plain)+2)
}

// testQuotaOfOthers: executors, users and API keys; what goes makes room.
func testQuotaOfOthers(t *testing.T, f *fixture) {
	have := f.has(domain.QuotaExecutors).Used
	f.quota(domain.QuotaExecutors, have+1)
	executor := func() error {
		id := domain.ExecutorID(ids.Next())
		return f.s.CreateExecutor(f.ctx, domain.Executor{ID: id, TenantID: f.tenant, Name: "executor " + id.String()})
	}
	f.ok(executor())
	f.exceeded(executor(), domain.QuotaExecutors, have+1, 1)

	have = f.has(domain.QuotaUsers).Used
	f.quota(domain.QuotaUsers, have+1)
	user := func(tenant domain.TenantID) (domain.UserID, error) {
		u := domain.User{ID: domain.UserID(ids.Next()), SessionVersion: 1}
		u.Username = "user " + u.ID.String()
		return u.ID, f.s.CreateUser(f.ctx, u, domain.Membership{TenantID: tenant, Role: domain.RoleViewer})
	}
	member, err := user(f.tenant)
	f.ok(err)
	_, err = user(f.tenant)
	f.exceeded(err, domain.QuotaUsers, have+1, 1)
	f.ok(f.s.SaveMembership(f.ctx, domain.Membership{TenantID: f.tenant, UserID: member, Role: domain.RoleAdmin})) // is in
	other := domain.TenantID(ids.Next())
	f.ok(f.s.CreateTenant(f.ctx, domain.Tenant{ID: other, Name: "tenant " + other.String(), CreatedAt: time.Now()}))
	guest, err := user(other)
	f.ok(err)
	join := domain.Membership{TenantID: f.tenant, UserID: guest, Role: domain.RoleViewer}
	f.exceeded(f.s.SaveMembership(f.ctx, join), domain.QuotaUsers, have+1, 1)
	f.ok(f.s.DeleteMembership(f.ctx, f.tenant, member))
	f.ok(f.s.SaveMembership(f.ctx, join))

	f.quota(domain.QuotaAPIKeys, 1)
	key := func() (int64, error) {
		id := ids.Next()
		return id, f.s.CreateAPIKey(f.ctx, domain.APIKey{ID: id, TenantID: f.tenant, Name: "k", Hash: hash(f, fmt.Sprint("quota", id)), Role: domain.RoleViewer, CreatedAt: time.Now()})
	}
	first, err := key()
	f.ok(err)
	_, err = key()
	f.exceeded(err, domain.QuotaAPIKeys, 1, 1)
	f.ok(f.s.RevokeAPIKey(f.ctx, f.tenant, first))
	_, err = key()
	f.ok(err)

	f.quota(domain.QuotaAPICalls, 7)
	limit, err := f.s.MaxOf(f.ctx, f.tenant, domain.QuotaAPICalls)
	f.ok(err)
	require.EqualValues(t, 7, limit)
	limit, err = f.s.MaxOf(f.ctx, other, domain.QuotaAPICalls)
	f.ok(err)
	require.Equal(t, domain.DefaultQuota(domain.QuotaAPICalls), limit)
}

// testQuotaOfInstances: those that are in come back, and of many that come at once
// as many are let in as fit.
func testQuotaOfInstances(t *testing.T, f *fixture) {
	have := f.has(domain.QuotaInstances).Used
	f.quota(domain.QuotaInstances, have+3)
	var list []store.RegisterInstanceParams
	for i := range 5 {
		boot := fmt.Sprintf("quota-%d-%d", f.tenant, i)
		list = append(list, store.RegisterInstanceParams{
			Instance: domain.Instance{ID: domain.InstanceID(ids.Next()), TenantID: f.tenant, Executor: f.executor, BootID: boot, Name: boot},
			TTL:      time.Minute,
		})
	}
	enter := func(from, to int) (refused int) {
		out, err := f.s.RegisterInstances(f.ctx, list[from:to])
		f.ok(err)
		for _, r := range out {
			if r.Err != nil {
				f.exceeded(r.Err, domain.QuotaInstances, have+3, 1)
				refused++
			} else {
				require.NotZero(t, r.Instance.ID)
			}
		}
		return refused
	}
	require.Equal(t, 2, enter(0, 5))
	require.Equal(t, 0, enter(0, 3), "they are in")
	require.Equal(t, 2, enter(3, 5))
	require.Equal(t, have+3, f.has(domain.QuotaInstances).Used)
	f.quota(domain.QuotaInstances, have+5)
	require.Equal(t, 0, enter(3, 5))
}
