package storetest

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// sign names what was signed.
func sign(s domain.Script, revision int64, sum []byte) []byte {
	return fmt.Appendf(nil, "%s %s %d %x", s.Name, s.Language, revision, sum[:4])
}

func (f *fixture) script(name, language, content string) domain.Script {
	f.t.Helper()
	s, err := f.s.CreateScript(f.ctx, store.CreateScriptParams{
		Script:  domain.Script{ID: domain.ScriptID(ids.Next()), TenantID: f.tenant, Name: name, Language: language, Description: "d", CreatedBy: "anna"},
		Content: content, Note: "first", Sign: sign,
	})
	f.ok(err)
	return s
}

func (f *fixture) revise(s domain.Script, content, note string) domain.Script {
	f.t.Helper()
	s, err := f.s.ReviseScript(f.ctx, store.ReviseScriptParams{Tenant: f.tenant, ID: s.ID, Content: content, Note: note, By: "bob", Sign: sign})
	f.ok(err)
	return s
}

func testScripts(t *testing.T, f *fixture) {
	s := f.script("清理", "shell", "echo 一\n")
	require.Equal(t, int64(1), s.Revision)
	require.Equal(t, "anna", s.UpdatedBy)
	_, err := f.s.CreateScript(f.ctx, store.CreateScriptParams{Script: domain.Script{ID: domain.ScriptID(ids.Next()), TenantID: f.tenant, Name: s.Name, Language: "node"}, Content: "x", Sign: sign})
	f.code(domain.CodeConflict, err)

	_, err = f.s.ReviseScript(f.ctx, store.ReviseScriptParams{Tenant: f.tenant, ID: s.ID, IfRevision: 7, Content: "x", Sign: sign})
	f.code(domain.CodeRevisionMismatch, err)
	again, err := f.s.ReviseScript(f.ctx, store.ReviseScriptParams{Tenant: f.tenant, ID: s.ID, Content: "echo 一\n", By: "bob", Sign: sign})
	f.ok(err)
	require.Equal(t, s, again, "the content is the same")
	s = f.revise(s, "echo 二\n", "because")
	require.Equal(t, int64(2), s.Revision)
	require.Equal(t, "bob", s.UpdatedBy)
	require.Equal(t, "d", s.Description)
	words := "other words"
	s, err = f.s.ReviseScript(f.ctx, store.ReviseScriptParams{Tenant: f.tenant, ID: s.ID, IfRevision: 2, Content: "echo 二\n", Description: &words, By: "bob", Sign: sign})
	f.ok(err)
	require.Equal(t, int64(2), s.Revision, "the content is the same")
	require.Equal(t, words, s.Description)
	found, err := f.s.FindScriptByName(f.ctx, f.tenant, s.Name)
	f.ok(err)
	require.Equal(t, s, found)

	list, err := f.s.ListScriptRevisions(f.ctx, f.tenant, s.ID, 10)
	f.ok(err)
	require.Len(t, list, 2)
	require.Equal(t, []any{int64(2), "because", "bob", ""}, []any{list[0].Revision, list[0].Note, list[0].CreatedBy, list[0].Content})
	first, err := f.s.FindScriptRevision(f.ctx, f.tenant, s.ID, 1)
	f.ok(err)
	sum := sha256.Sum256([]byte("echo 一\n"))
	require.Equal(t, "echo 一\n", first.Content)
	require.Equal(t, sum[:], first.SHA256)
	require.Equal(t, sign(s, 1, sum[:]), first.Signature)
	_, err = f.s.FindScriptRevision(f.ctx, f.tenant, s.ID, 3)
	f.code(domain.CodeNotFound, err)

	other := f.script("a first one", "python", "pass")
	all, err := f.s.ListScripts(f.ctx, store.ListScriptsParams{Tenant: f.tenant, Limit: 10})
	f.ok(err)
	require.Equal(t, []domain.Script{other, s}, all)
	all, err = f.s.ListScripts(f.ctx, store.ListScriptsParams{Tenant: f.tenant, After: other.Name})
	f.ok(err)
	require.Equal(t, []domain.Script{s}, all)

	f.ok(f.s.DeleteScript(f.ctx, f.tenant, s.ID, "bob"))
	f.code(domain.CodeNotFound, f.s.DeleteScript(f.ctx, f.tenant, s.ID, "bob"))
	_, err = f.s.ReviseScript(f.ctx, store.ReviseScriptParams{Tenant: f.tenant, ID: s.ID, Content: "x", Sign: sign})
	f.code(domain.CodeNotFound, err)
	list, err = f.s.ListScriptRevisions(f.ctx, f.tenant, s.ID, 10)
	f.ok(err)
	require.Len(t, list, 2, "who wrote what stays")
	f.script(s.Name, "shell", "echo\n") // the name is free again
}

// A job runs a revision, or whichever is the newest.
func testJobScripts(t *testing.T, f *fixture) {
	s := f.script("report", "shell", "echo 1\n")
	uses := func(revision int64) func(*domain.JobSpec) {
		return func(spec *domain.JobSpec) {
			spec.Handler, spec.Script = "script.shell", &domain.ScriptUse{ID: s.ID, Revision: revision, Args: []string{"-v", "{{run.id}}"}}
		}
	}
	pinned, follows := f.job(uses(1)), f.job(uses(0))
	require.Equal(t, &domain.ScriptUse{ID: s.ID, Revision: 1, Args: []string{"-v", "{{run.id}}"}}, pinned.Spec.Script)
	s = f.revise(s, "echo 2\n", "")
	for _, c := range []struct {
		use  domain.ScriptUse
		want string
	}{{*pinned.Spec.Script, "echo 1\n"}, {*follows.Spec.Script, "echo 2\n"}} {
		found, revision, err := f.s.DeliverScript(f.ctx, f.tenant, c.use)
		f.ok(err)
		require.Equal(t, s, found)
		require.Equal(t, c.want, revision.Content)
	}
	jobs, err := f.s.ListScriptJobs(f.ctx, f.tenant, s.ID, 10)
	f.ok(err)
	require.Len(t, jobs, 2)
	f.code(domain.CodeConflict, f.s.DeleteScript(f.ctx, f.tenant, s.ID, "bob"))

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
	f.ok(f.s.DeleteScript(f.ctx, f.tenant, s.ID, "bob"))
	_, _, err = f.s.DeliverScript(f.ctx, f.tenant, domain.ScriptUse{ID: s.ID, Revision: 1})
	f.code(domain.CodeNotFound, err)
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

// Of several who revise the same revision one wins.
func testScriptRace(t *testing.T, f *fixture) {
	s := f.script("raced", "shell", "echo\n")
	var wait sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 8 {
		wait.Go(func() {
			_, err := f.s.ReviseScript(f.ctx, store.ReviseScriptParams{
				Tenant: f.tenant, ID: s.ID, IfRevision: 1, Content: fmt.Sprintf("echo %d\n", i), By: "x", Sign: sign,
			})
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
	_, err := f.s.FindScript(f.ctx, foreign, s.ID)
	f.code(domain.CodeNotFound, err)
	_, err = f.s.FindScriptRevision(f.ctx, foreign, s.ID, 1)
	f.code(domain.CodeNotFound, err)
	_, _, err = f.s.DeliverScript(f.ctx, foreign, domain.ScriptUse{ID: s.ID})
	f.code(domain.CodeNotFound, err)
	_, err = f.s.ReviseScript(f.ctx, store.ReviseScriptParams{Tenant: foreign, ID: s.ID, Content: "x", Sign: sign})
	f.code(domain.CodeNotFound, err)
	f.code(domain.CodeNotFound, f.s.DeleteScript(f.ctx, foreign, s.ID, "x"))
	list, err := f.s.ListScriptRevisions(f.ctx, foreign, s.ID, 10)
	f.ok(err)
	require.Empty(t, list)
	jobs, err := f.s.ListScriptJobs(f.ctx, foreign, s.ID, 10)
	f.ok(err)
	require.Empty(t, jobs)
}
