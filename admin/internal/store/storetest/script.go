package storetest

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/resource/script"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// sign names what was signed.
func sign(s domain.Script, version int64, sum []byte) []byte {
	return fmt.Appendf(nil, "%s %s %d %x", s.ID, s.Language, version, sum[:4])
}

func (f *fixture) scripts() resource.Store { return f.s.ScriptTable(sign) }

func (f *fixture) script(name, language, content string) domain.Script {
	f.t.Helper()
	spec := f.json(script.ScriptSpec{Language: language, Description: "d", Content: content, Note: "first"})
	row, err := f.scripts().Create(f.ctx, resource.Row{Meta: resource.Meta{ID: ids.Next(), Tenant: f.tenant, Name: name, CreatedBy: "anna", UpdatedBy: "anna"}, Spec: spec})
	f.ok(err)
	return f.signed(row)
}

// signed is the script of a row, with its signature.
func (f *fixture) signed(row resource.Row) domain.Script {
	f.t.Helper()
	s, err := script.Of(&row)
	f.ok(err)
	s.Signature = sign(s, s.Version, s.SHA256)
	return s
}

// tryRevise writes a content in place of the version of s.
func (f *fixture) tryRevise(s domain.Script, content, note string) (resource.Row, error) {
	row, err := f.scripts().Find(f.ctx, s.TenantID, int64(s.ID))
	if err != nil {
		return row, err
	}
	row.Version, row.UpdatedBy, row.Spec = s.Version, "bob", f.json(script.ScriptSpec{Language: s.Language, Description: "d", Content: content, Note: note})
	return f.scripts().Replace(f.ctx, row)
}

func (f *fixture) revise(s domain.Script, content, note string) domain.Script {
	f.t.Helper()
	row, err := f.tryRevise(s, content, note)
	f.ok(err)
	return f.signed(row)
}

func (f *fixture) deleteScript(s domain.Script) error {
	return f.scripts().Delete(f.ctx, f.tenant, int64(s.ID), 0, "bob")
}

// Each version is signed with its number and its digest, also that of a restored script.
func testScripts(t *testing.T, f *fixture) {
	first := f.script("清理", "shell", "echo 一\n")
	sum := sha256.Sum256([]byte("echo 一\n"))
	require.Equal(t, []any{int64(1), sum[:]}, []any{first.Version, first.SHA256})
	second := f.revise(first, "echo 二\n", "because")
	for use, want := range map[int64]domain.Script{0: second, 1: first, 2: second} {
		found, err := f.s.FindScript(f.ctx, f.tenant, domain.ScriptUse{ID: first.ID, Revision: use})
		f.ok(err)
		require.Equal(t, want, found)
	}
	found, err := f.s.FindScriptByName(f.ctx, f.tenant, first.Name)
	f.ok(err)
	require.Equal(t, second, found)
	_, err = f.s.FindScript(f.ctx, f.tenant, domain.ScriptUse{ID: first.ID, Revision: 3})
	f.code(domain.CodeNotFound, err)

	f.ok(f.deleteScript(first))
	_, err = f.s.FindScript(f.ctx, f.tenant, domain.ScriptUse{ID: first.ID, Revision: 1})
	f.code(domain.CodeNotFound, err)
	row, err := f.scripts().Restore(f.ctx, f.tenant, int64(first.ID), "bob")
	f.ok(err)
	found, err = f.s.FindScript(f.ctx, f.tenant, domain.ScriptUse{ID: first.ID})
	f.ok(err)
	require.Equal(t, f.signed(row), found)
	require.Equal(t, []any{int64(3), second.Content}, []any{found.Version, found.Content})
	versions, _, err := f.scripts().ListVersions(f.ctx, f.tenant, int64(first.ID), 0, 10)
	f.ok(err)
	require.Len(t, versions, 3)
}

// A job runs a version, or whichever is the newest.
func testJobScripts(t *testing.T, f *fixture) {
	s := f.script("report", "shell", "echo 1\n")
	uses := func(version int64) func(*domain.JobSpec) {
		return func(spec *domain.JobSpec) {
			spec.Handler, spec.Script = "script.shell", &domain.ScriptUse{ID: s.ID, Revision: version, Args: []string{"-v", "{{run.id}}"}}
		}
	}
	pinned, follows := f.job(uses(1)), f.job(uses(0))
	require.Equal(t, &domain.ScriptUse{ID: s.ID, Revision: 1, Args: []string{"-v", "{{run.id}}"}}, pinned.Spec.Script)
	s = f.revise(s, "echo 2\n", "")
	for _, c := range []struct {
		use  domain.ScriptUse
		want string
	}{{*pinned.Spec.Script, "echo 1\n"}, {*follows.Spec.Script, "echo 2\n"}} {
		found, err := f.s.FindScript(f.ctx, f.tenant, c.use)
		f.ok(err)
		require.Equal(t, c.want, found.Content)
	}
	jobs, err := f.s.ListScriptJobs(f.ctx, f.tenant, s.ID, 10)
	f.ok(err)
	require.Len(t, jobs, 2)
	f.code(domain.CodeConflict, f.deleteScript(s))

	edit := func(j store.JobView, change func(*domain.JobSpec)) error {
		spec := j.Spec
		change(&spec)
		_, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Next: at(domain.Never), Spec: spec})
		return err
	}
	f.code(domain.CodeInvalid, edit(pinned, uses(3)))
	f.code(domain.CodeInvalid, edit(pinned, func(spec *domain.JobSpec) { spec.Script = &domain.ScriptUse{ID: 12345} }))
	f.code(domain.CodeInvalid, edit(pinned, func(spec *domain.JobSpec) { spec.Handler = "script.python" }))
	f.ok(edit(pinned, func(spec *domain.JobSpec) { spec.Handler, spec.Script = "other", nil }))
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: follows.ID, State: domain.JobDeleted, Next: at(domain.Never)})
	f.ok(err)
	f.ok(f.deleteScript(s))
}

func testScriptPolicies(t *testing.T, f *fixture) {
	p, err := f.s.FindScriptPolicy(f.ctx, f.tenant)
	f.ok(err)
	require.Equal(t, domain.ScriptPolicy{TenantID: f.tenant}, p, "nothing is allowed")
	for i, want := range []domain.ScriptPolicy{
		{Languages: []string{"shell", "python"}, Note: "agreed with security", CreatedBy: "root"}, {HTTP: true, CreatedBy: "root"}, {},
	} {
		want.TenantID = f.tenant
		p, err = f.s.SetScriptPolicy(f.ctx, want)
		f.ok(err)
		want.Revision, want.CreatedAt = int64(i+1), p.CreatedAt
		require.Equal(t, want, p)
		p, err = f.s.FindScriptPolicy(f.ctx, f.tenant)
		f.ok(err)
		require.Equal(t, want, p)
	}
	list, err := f.s.ListScriptPolicies(f.ctx, f.tenant, 10)
	f.ok(err)
	require.Len(t, list, 3)
	require.Equal(t, "agreed with security", list[2].Note)
}

// The first hosts that may be called bring the built-in executor, which nobody
// else makes or joins. What is not said stays as it is.
func testCallbackPolicies(t *testing.T, f *fixture) {
	builtIn := func() (out []store.BuiltIn) {
		t.Helper()
		all, err := f.s.ListBuiltIn(f.ctx)
		f.ok(err)
		for _, b := range all {
			if b.Tenant == f.tenant {
				out = append(out, b)
			}
		}
		return out
	}
	set := func(p domain.ScriptPolicy) domain.ScriptPolicy {
		t.Helper()
		p.TenantID = f.tenant
		got, err := f.s.SetScriptPolicy(f.ctx, p)
		f.ok(err)
		return got
	}
	set(domain.ScriptPolicy{HTTP: true})
	require.Empty(t, builtIn())
	_, err := f.s.FindCallbackSecret(f.ctx, f.tenant)
	f.code(domain.CodeNotFound, err)
	f.code(domain.CodeInvalid, f.s.CreateExecutor(f.ctx, domain.Executor{ID: domain.ExecutorID(ids.Next()), TenantID: f.tenant, Name: domain.BuiltInExecutor}))

	allowed := domain.CallbackPolicy{Hosts: []string{"api.example.com", "*.example.org:8443"}, MaxTimeout: 5 * time.Second, PerHost: 8, Secret: []byte("sealed")}
	used := f.has(domain.QuotaExecutors).Used
	require.Equal(t, &allowed, set(domain.ScriptPolicy{Callbacks: &allowed}).Callbacks)
	require.Equal(t, used, f.has(domain.QuotaExecutors).Used, "it is not the tenant's own")
	e, err := f.s.FindExecutorByName(f.ctx, f.tenant, domain.BuiltInExecutor)
	f.ok(err)
	require.True(t, e.BuiltIn)
	require.Equal(t, []store.BuiltIn{{Tenant: f.tenant, Executor: e.ID, Callbacks: &allowed}}, builtIn())
	f.code(domain.CodeConflict, f.s.CreateJoinToken(f.ctx, domain.JoinToken{ID: ids.Next(), TenantID: f.tenant, Executor: e.ID, Hash: hash(f, "x")}))

	require.Equal(t, &allowed, set(domain.ScriptPolicy{HTTP: true}).Callbacks, "another change leaves them")
	changed := allowed
	changed.Hosts, changed.Secret = []string{"*"}, nil
	got := set(domain.ScriptPolicy{Callbacks: &changed}).Callbacks
	changed.Secret = allowed.Secret
	require.Equal(t, &changed, got)
	p, err := f.s.FindScriptPolicy(f.ctx, f.tenant)
	f.ok(err)
	require.Equal(t, &changed, p.Callbacks)

	require.Nil(t, set(domain.ScriptPolicy{Callbacks: &domain.CallbackPolicy{}}).Callbacks)
	require.Equal(t, []store.BuiltIn{{Tenant: f.tenant, Executor: e.ID}}, builtIn(), "off")
	secret, err := f.s.FindCallbackSecret(f.ctx, f.tenant)
	f.ok(err)
	require.Equal(t, allowed.Secret, secret, "it is the same when they are on again")
	require.Equal(t, &changed, set(domain.ScriptPolicy{Callbacks: &changed}).Callbacks)
	again, err := f.s.FindExecutorByName(f.ctx, f.tenant, domain.BuiltInExecutor)
	f.ok(err)
	require.Equal(t, e, again)
}

// Of several who write the same version one wins.
func testScriptRace(t *testing.T, f *fixture) {
	s := f.script("raced", "shell", "echo\n")
	var wait sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 8 {
		wait.Go(func() {
			_, err := f.tryRevise(s, fmt.Sprintf("echo %d\n", i), "")
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !domain.Is(err, domain.CodeRevisionMismatch) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	require.Equal(t, 1, won)
}

func testScriptWall(t *testing.T, f *fixture) {
	s := f.script("mine", "shell", "echo secret\n")
	foreign := f.tenant + 1
	_, err := f.s.FindScript(f.ctx, foreign, domain.ScriptUse{ID: s.ID})
	f.code(domain.CodeNotFound, err)
	_, err = f.s.FindScript(f.ctx, foreign, domain.ScriptUse{ID: s.ID, Revision: 1})
	f.code(domain.CodeNotFound, err)
	_, err = f.s.FindScriptByName(f.ctx, foreign, s.Name)
	f.code(domain.CodeNotFound, err)
	theirs := s
	theirs.TenantID = foreign
	_, err = f.tryRevise(theirs, "x", "")
	f.code(domain.CodeNotFound, err)
	f.code(domain.CodeNotFound, f.scripts().Delete(f.ctx, foreign, int64(s.ID), 0, "x"))
	_, _, err = f.scripts().ListVersions(f.ctx, foreign, int64(s.ID), 0, 10)
	f.code(domain.CodeNotFound, err)
	jobs, err := f.s.ListScriptJobs(f.ctx, foreign, s.ID, 10)
	f.ok(err)
	require.Empty(t, jobs)
}
