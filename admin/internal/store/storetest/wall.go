package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Every method that takes a tenant is asked about another tenant's rows.
func testTenantWall(t *testing.T, f *fixture) {
	b := newFixture(t, f.s) // the stranger
	j := f.job(nil)
	due, offered, running := f.run(j), f.offer(store.OfferMade, f.run(j)), f.start(f.run(j))
	failed := f.start(f.run(j))
	f.finish(failed, domain.OutcomeFailed)
	_, err := f.s.AppendLogs(f.ctx, []store.LogAppend{{Tenant: f.tenant, Executor: f.executor, Chunks: []domain.LogChunk{chunk(running, 1, 1, 1)}}})
	f.ok(err)
	key := domain.APIKey{ID: ids.Next(), TenantID: f.tenant, Hash: hash(f, "k")}
	token := domain.JoinToken{ID: ids.Next(), TenantID: f.tenant, Executor: f.executor, Hash: hash(f, "j")}
	f.ok(f.s.CreateAPIKey(f.ctx, key))
	f.ok(f.s.CreateJoinToken(f.ctx, token))

	notFound := func(name string, err error) {
		t.Helper()
		require.Equal(t, domain.CodeNotFound, domain.CodeOf(err), "%s: %v", name, err)
	}
	_, err = b.s.FindJob(b.ctx, b.tenant, j.ID)
	notFound("FindJob", err)
	_, err = b.s.FindJobByName(b.ctx, b.tenant, j.Spec.Name)
	notFound("FindJobByName", err)
	_, err = b.s.UpdateJob(b.ctx, store.UpdateJobParams{Tenant: b.tenant, ID: j.ID, Spec: j.Spec, Next: at(domain.Never)})
	notFound("UpdateJob", err)
	_, err = b.s.SetJobState(b.ctx, store.SetJobStateParams{Tenant: b.tenant, ID: j.ID, State: domain.JobDeleted})
	notFound("SetJobState", err)
	_, err = b.s.CreateJob(b.ctx, domain.Job{ID: domain.JobID(ids.Next()), TenantID: b.tenant, Executor: f.executor, Spec: j.Spec}, at(domain.Never))
	notFound("CreateJob on a foreign executor", err)
	own := b.job(nil)
	_, err = b.s.UpdateJob(b.ctx, store.UpdateJobParams{Tenant: b.tenant, ID: own.ID, Executor: f.executor, Spec: own.Spec, Next: at(domain.Never)})
	notFound("UpdateJob to a foreign executor", err)
	_, err = b.s.ListRevisions(b.ctx, store.ListRevisionsParams{Tenant: b.tenant, Job: j.ID, Limit: 5})
	notFound("ListRevisions", err)
	_, err = b.s.JobSpec(b.ctx, b.tenant, j.ID, 1)
	notFound("JobSpec", err)

	held, err := b.s.ListHeld(b.ctx, b.tenant, f.instance, []domain.Held{{ID: running.ID, Fence: 1}})
	b.ok(err)
	require.Empty(t, held, "ListHeld")

	foreign := planned(&j.Job, f.now(), f.now())
	foreign.TenantID, foreign.OccurrenceKey = b.tenant, "x"
	_, _, err = b.s.CreateExecution(b.ctx, foreign)
	notFound("CreateExecution", err)
	_, err = b.s.FindExecution(b.ctx, b.tenant, due.ID)
	notFound("FindExecution", err)
	_, err = b.s.ListAttempts(b.ctx, b.tenant, failed.ID)
	notFound("ListAttempts", err)
	_, err = b.s.RequestCancel(b.ctx, b.tenant, running.ID, domain.ReasonKilled, "")
	notFound("RequestCancel", err)

	offers := b.offerTo(b.instance, due)
	require.Equal(t, store.OfferResult{}, offers[0], "OfferExecutions")
	grants, err := b.s.GrantOffers(b.ctx, []store.GrantRequest{{Tenant: b.tenant, ID: offered.ID, Fence: offered.Fence, Instance: offered.Instance}})
	f.ok(err)
	require.Equal(t, store.GrantResult{}, grants[0])
	backs, err := b.s.GiveBackOffers(b.ctx, []store.GiveBack{{Tenant: b.tenant, ID: offered.ID, Fence: offered.Fence, Instance: offered.Instance}})
	f.ok(err)
	require.Equal(t, store.OfferResult{}, backs[0])
	b.wait([]store.Wait{{Tenant: b.tenant, ID: due.ID, Reason: domain.ReasonWaitInstance, For: time.Hour}})
	notFound("SetLimit on a foreign executor", b.s.SetLimit(b.ctx, domain.Limit{LimitKey: domain.LimitKey{Tenant: b.tenant, Executor: f.executor}, Max: 1}))
	f.ok(b.s.RecordStarts(b.ctx, []store.Start{{Tenant: b.tenant, ID: running.ID, Fence: running.Fence, Instance: running.Instance, StartedAt: f.now()}}))
	report := f.report(running, domain.OutcomeSucceeded)
	report.Tenant = b.tenant
	finished, err := b.s.FinishAttempts(b.ctx, []store.AttemptReport{report})
	f.ok(err)
	require.Equal(t, store.FinishResult{Code: store.FinishNotFound}, finished[0])
	for _, e := range []domain.Execution{due, offered, running} {
		require.Equal(t, e, f.find(e), "nothing moved")
	}

	runs, err := b.s.ListExecutions(b.ctx, store.ListExecutionsParams{Tenant: b.tenant, Job: j.ID})
	f.ok(err)
	require.Empty(t, runs)
	for _, p := range []store.ListExecutionsParams{{}, {Executor: f.executor}, {Instance: f.instance}, {JobQuery: j.Spec.Name}, {Before: due.ID}} {
		p.Tenant = b.tenant
		runs, err = b.s.ListExecutions(b.ctx, p)
		f.ok(err)
		require.Empty(t, runs)
	}
	counts, err := b.s.CountExecutions(b.ctx, b.tenant, domain.Reach{}, time.Time{})
	f.ok(err)
	require.Empty(t, counts)
	jobs, err := b.s.ListJobs(b.ctx, store.ListJobsParams{Tenant: b.tenant})
	f.ok(err)
	require.Len(t, jobs, 1)
	dropped, err := b.s.AppendLogs(b.ctx, []store.LogAppend{{Tenant: b.tenant, Executor: f.executor, Chunks: []domain.LogChunk{chunk(running, 1, 2, 2)}}})
	f.ok(err)
	require.Equal(t, 1, dropped)
	page, err := b.s.ReadLog(b.ctx, store.ReadLogParams{Tenant: b.tenant, Execution: running.ID, Attempt: 1})
	f.ok(err)
	require.Equal(t, store.LogPage{}, page)

	_, err = b.s.FindExecutor(b.ctx, b.tenant, f.executor)
	notFound("FindExecutor", err)
	_, err = b.s.FindInstance(b.ctx, b.tenant, f.instance)
	notFound("FindInstance", err)
	notFound("LeaveInstance", LeaveInstance(b.ctx, b.s, b.tenant, f.instance, ""))
	_, err = RegisterInstance(b.ctx, b.s, store.RegisterInstanceParams{Instance: domain.Instance{ID: domain.InstanceID(ids.Next()), TenantID: b.tenant, Executor: f.executor, BootID: "boot-1"}, TTL: time.Minute})
	notFound("RegisterInstance", err)
	ended, err := b.supersede(store.SupersedeBootsParams{Tenant: b.tenant, Executor: f.executor, BootIDs: []string{"boot-1"}})
	f.ok(err)
	require.Empty(t, ended)
	instances, err := b.s.ListInstances(b.ctx, store.ListInstancesParams{Tenant: b.tenant, Executor: f.executor, IncludeGone: true})
	f.ok(err)
	require.Empty(t, instances)
	online, err := b.s.CountOnline(b.ctx, b.tenant, f.executor)
	f.ok(err)
	require.Zero(t, online)
	heard, err := b.s.CountHeard(b.ctx, b.tenant, f.executor)
	f.ok(err)
	require.Zero(t, heard)
	handlers, err := listHandlers(b, f.executor)
	f.ok(err)
	require.Empty(t, handlers)
	notFound("RevokeAPIKey", b.s.RevokeAPIKey(b.ctx, b.tenant, key.ID))
	notFound("RevokeJoinToken", b.s.RevokeJoinToken(b.ctx, b.tenant, token.ID))
	notFound("CreateJoinToken", b.s.CreateJoinToken(b.ctx, domain.JoinToken{ID: ids.Next(), TenantID: b.tenant, Executor: f.executor, Hash: hash(f, "jj")}))
	tokens, err := b.s.ListJoinTokens(b.ctx, b.tenant, f.executor)
	f.ok(err)
	require.Empty(t, tokens)
}
