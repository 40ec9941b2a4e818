package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// declared is a tenant with one of each, and a user in it and in the fixture's.
func declared(f *fixture) store.ProvisionParams {
	name := "declared-" + f.tenant.String()
	f.t.Helper()
	own, err := f.s.FindTenant(f.ctx, f.tenant)
	f.ok(err)
	return store.ProvisionParams{
		By: "provisioning",
		Tenants: []store.ProvisionTenant{{
			Name: name, Quotas: map[domain.QuotaKind]int64{domain.QuotaJobs: 7, domain.QuotaExecutors: 1, domain.QuotaAPIKeys: 1},
			Executors: []store.ProvisionExecutor{
				{Name: "web", Description: "d", JoinTokens: []domain.JoinToken{{Name: "t", Prefix: "cjt_abcdef", Hash: hash(f, "token"), MaxUses: 3, NoJobs: true}}},
				{Name: "more than the quota"},
			},
			APIKeys: []domain.APIKey{
				{Name: "k", Prefix: "ck_abcdef", Hash: hash(f, "key"), Role: domain.RoleCaller, Scope: domain.Scope{Executors: []string{"web"}}},
				{Name: "more than the quota", Prefix: "ck_ghijkl", Hash: hash(f, "key 2"), Role: domain.RoleViewer},
			},
		}},
		Users: []store.ProvisionUser{{
			User:  domain.User{Username: "anna-" + f.tenant.String(), PasswordHash: "h", SessionVersion: 1, MustChangePassword: true},
			Roles: map[string]domain.Role{name: domain.RoleEditor, own.Name: domain.RoleViewer},
		}},
	}
}

func made(steps []store.ProvisionStep) (out []string) {
	for _, s := range steps {
		if s.Made {
			out = append(out, s.Kind+" "+s.Name)
		}
	}
	return out
}

func left(steps []store.ProvisionStep) (out []string) {
	for _, s := range steps {
		if s.Left != "" {
			out = append(out, s.Kind+" "+s.Name+": "+s.Left)
		}
	}
	return out
}

func testProvision(t *testing.T, f *fixture) {
	p := declared(f)
	name, user := p.Tenants[0].Name, p.Users[0].User.Username
	steps, err := f.s.Provision(f.ctx, p)
	f.ok(err)
	require.Equal(t, []string{
		"tenant " + name, "quota jobs", "quota executors", "quota api_keys", "executor web", "join token t", "executor more than the quota",
		"API key k", "API key more than the quota", "user " + user,
	}, made(steps))
	require.Empty(t, left(steps))

	tenant, err := f.s.FindTenantByName(f.ctx, name)
	f.ok(err)
	require.WithinDuration(t, f.now(), tenant.CreatedAt, time.Minute)
	require.Equal(t, domain.TenantEnabled, tenant.State)
	executor, err := f.s.FindExecutorByName(f.ctx, tenant.ID, "web")
	f.ok(err)
	require.Equal(t, domain.Executor{ID: executor.ID, TenantID: tenant.ID, Name: "web", Description: "d", State: domain.ExecutorEnabled, Version: 1, CreatedAt: tenant.CreatedAt}, executor)
	tokens, err := f.s.ListJoinTokens(f.ctx, tenant.ID, executor.ID)
	f.ok(err)
	want := p.Tenants[0].Executors[0].JoinTokens[0]
	want.TenantID, want.Executor, want.CreatedBy, want.CreatedAt = tenant.ID, executor.ID, "provisioning", tenant.CreatedAt
	require.Len(t, tokens, 1)
	want.ID = tokens[0].ID
	require.Equal(t, want, tokens[0])
	key, err := f.s.FindAPIKeyByHash(f.ctx, hash(f, "key"))
	f.ok(err)
	wantKey := p.Tenants[0].APIKeys[0]
	wantKey.ID, wantKey.TenantID, wantKey.CreatedBy, wantKey.CreatedAt = key.ID, tenant.ID, "provisioning", tenant.CreatedAt
	require.Equal(t, wantKey, key)
	account, err := f.s.FindUserByName(f.ctx, user)
	f.ok(err)
	require.True(t, account.MustChangePassword)
	places, err := f.s.ListMemberships(f.ctx, account.ID)
	f.ok(err)
	require.ElementsMatch(t, []domain.Membership{
		{TenantID: tenant.ID, UserID: account.ID, Role: domain.RoleEditor}, {TenantID: f.tenant, UserID: account.ID, Role: domain.RoleViewer},
	}, places)
	jobs, err := f.s.MaxOf(f.ctx, tenant.ID, domain.QuotaJobs)
	f.ok(err)
	require.EqualValues(t, 7, jobs)

	steps, err = f.s.Provision(f.ctx, p)
	f.ok(err)
	require.Empty(t, made(steps), "a second time nothing is made")
	require.Empty(t, left(steps))
}

// What people have changed since stays, and is told where it matters.
func testProvisionLeaves(t *testing.T, f *fixture) {
	p := declared(f)
	name, user := p.Tenants[0].Name, p.Users[0].User.Username
	_, err := f.s.Provision(f.ctx, p)
	f.ok(err)
	tenant, err := f.s.FindTenantByName(f.ctx, name)
	f.ok(err)
	executor, err := f.s.FindExecutorByName(f.ctx, tenant.ID, "web")
	f.ok(err)
	tokens, err := f.s.ListJoinTokens(f.ctx, tenant.ID, executor.ID)
	f.ok(err)
	f.ok(f.s.RevokeJoinToken(f.ctx, tenant.ID, tokens[0].ID))
	key, err := f.s.FindAPIKeyByHash(f.ctx, hash(f, "key"))
	f.ok(err)
	f.ok(f.s.RevokeAPIKey(f.ctx, tenant.ID, key.ID))
	f.ok(f.s.SetQuotas(f.ctx, store.SetQuotasParams{Tenant: tenant.ID, Max: map[domain.QuotaKind]int64{domain.QuotaJobs: 9, domain.QuotaAPIKeys: -1}, By: "root"}))
	account, err := f.s.FindUserByName(f.ctx, user)
	f.ok(err)
	f.ok(f.s.DeleteMembership(f.ctx, tenant.ID, account.ID))

	renamed := "web-2"
	_, err = f.s.UpdateExecutor(f.ctx, store.UpdateExecutorParams{Tenant: tenant.ID, ID: executor.ID, Name: &renamed})
	f.ok(err)

	p.Tenants[0].APIKeys[1].Role = domain.RoleAdmin
	p.Tenants[0].APIKeys = append(p.Tenants[0].APIKeys, domain.APIKey{Name: "a second secret of a name", Prefix: "ck_x", Hash: hash(f, "key 3"), Role: domain.RoleCaller})
	p.Tenants[0].Executors[0].Description = "another"
	p.Tenants = append(p.Tenants, store.ProvisionTenant{
		Name:      "other-" + name,
		Executors: []store.ProvisionExecutor{{Name: "web", JoinTokens: []domain.JoinToken{{Name: "same secret", Hash: hash(f, "token")}}}},
		APIKeys:   []domain.APIKey{{Name: "same secret", Hash: hash(f, "key"), Role: domain.RoleViewer}},
	})
	p.Users = append(p.Users, store.ProvisionUser{User: domain.User{Username: "bert-" + f.tenant.String(), PasswordHash: "h"}, Roles: map[string]domain.Role{"nowhere": domain.RoleViewer}})
	steps, err := f.s.Provision(f.ctx, p)
	f.ok(err)
	require.Equal(t, []string{"quota api_keys", "API key a second secret of a name", "tenant other-" + name, "executor web"}, made(steps))
	require.Equal(t, []string{
		"join token t: it was revoked: make another secret",
		"API key k: it was revoked: make another secret",
		"API key more than the quota: the key that has this secret may do something else; rights of keys do not change: make another secret",
		"join token same secret: its secret is that of another executor's token: make another secret",
		"API key same secret: its secret is that of another tenant's key: make another secret",
		"user bert-" + f.tenant.String() + ": there is no tenant nowhere",
	}, left(steps))
	jobs, err := f.s.MaxOf(f.ctx, tenant.ID, domain.QuotaJobs)
	f.ok(err)
	require.EqualValues(t, 9, jobs)
	again, err := f.s.FindExecutor(f.ctx, tenant.ID, executor.ID)
	f.ok(err)
	require.Equal(t, "d", again.Description)
	places, err := f.s.ListMemberships(f.ctx, account.ID)
	f.ok(err)
	require.Len(t, places, 1, "who was removed does not come back")
	_, err = f.s.FindUserByName(f.ctx, "bert-"+f.tenant.String())
	f.code(domain.CodeNotFound, err)
}

// Eight nodes start with the same file: each thing is made once.
func testProvisionRace(t *testing.T, f *fixture) {
	p := declared(f)
	var all [8][]store.ProvisionStep
	race(8, func(i int) {
		steps, err := f.s.Provision(f.ctx, p)
		if err != nil {
			t.Errorf("provision: %v", err)
		}
		all[i] = steps
	})
	counts := map[string]int{}
	for _, steps := range all {
		for _, one := range made(steps) {
			counts[one]++
		}
	}
	require.Len(t, counts, 10, strings.Join(made(all[0]), ", "))
	for one, n := range counts {
		require.Equal(t, 1, n, one)
	}
}
