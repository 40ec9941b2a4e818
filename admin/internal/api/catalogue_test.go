package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// build registers an instance of a build that has one handler with a schema.
func (w *world) build(e domain.Executor, boot, version, handler, schema string) domain.Instance {
	w.t.Helper()
	i, err := storetest.RegisterInstance(w.t.Context(), w.store, store.RegisterInstanceParams{
		TTL: time.Minute,
		Instance: domain.Instance{
			ID: domain.InstanceID(w.ids.Next()), TenantID: e.TenantID, Executor: e.ID, BootID: boot, Name: boot,
			AppVersion: version, Build: "digest-" + version, Handlers: []string{handler}, Slots: 8,
		},
		Build:    domain.Build{Digest: "digest-" + version, Version: version, Handlers: []string{handler}, Catalogue: []byte(version)},
		Handlers: []domain.Handler{{Name: handler, Description: "Closes the day", InputSchema: []byte(schema)}},
	})
	require.NoError(w.t, err)
	return i
}

const daySchema = `{"type":"object","additionalProperties":false,"required":["day"],
	"properties":{"day":{"type":"string","format":"date"},"shops":{"type":"array","items":{"type":"integer"}}}}`

// TestWeightsOfHandlers are what the newest present build says, and 1 where
// nobody says anything.
func TestWeightsOfHandlers(t *testing.T) {
	said := map[string]map[string]int{"1.9.0": {"close-day": 2, "count": 7}, "1.10.0": {"close-day": 3}}
	var fails error
	w := newWorld(t, func(d *Deps) {
		d.Weights = func(catalogue []byte) (map[string]int, error) { return said[string(catalogue)], fails }
	})
	e := w.executor("acme", "shop")
	w.build(e, "b1", "1.10.0", "close-day", daySchema)
	w.build(e, "b2", "1.9.0", "close-day", daySchema)
	w.instance(e, "old", "count")
	path := "/executors/" + e.ID.String()
	list := into[web.Page[Handler]](w.call("acme/viewer", "GET", path+"/handlers", nil).is(200)).Items
	require.Equal(t, []string{"close-day", "count"}, []string{list[0].Name, list[1].Name})
	require.Equal(t, []int{3, 1}, []int{list[0].Weight, list[1].Weight})
	fails = errors.New("torn")
	w.call("acme/viewer", "GET", path, nil).problem(500, "internal")
}

func TestListHandlers(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	path := "/executors/" + e.ID.String() + "/handlers"
	require.Empty(t, into[web.Page[Handler]](w.call("acme/viewer", "GET", path, nil).is(200)).Items)
	old := w.build(e, "b1", "1.9.0", "close-day", daySchema)
	w.build(e, "b2", "1.10.0", "close-day", daySchema)
	w.build(e, "b3", "1.10.0", "close-day", daySchema)
	require.NoError(t, storetest.LeaveInstance(t.Context(), w.store, e.TenantID, old.ID, "stopped"))
	got := w.call("acme/viewer", "GET", path, nil).is(200).golden("handlers")
	list := into[web.Page[Handler]](got).Items
	require.Len(t, list, 1)
	require.Equal(t, 2, list[0].InstancesOnline)
	require.Equal(t, []string{"1.10.0", "1.9.0"}, []string{list[0].Versions[0].Version, list[0].Versions[1].Version}, "the newest first")
	require.Equal(t, []int{2, 0}, []int{list[0].Versions[0].InstancesOnline, list[0].Versions[1].InstancesOnline})
	detail := into[ExecutorDetail](w.call("acme/viewer", "GET", "/executors/"+e.ID.String(), nil).is(200))
	require.Equal(t, list, detail.Handlers)
	require.Equal(t, []RefusedDeclaration{}, detail.RefusedDeclarations)
	require.NoError(t, w.store.SettleBuilds(t.Context(), store.SettleBuildsParams{
		ExecutorKey: store.ExecutorKey{Tenant: e.TenantID, Executor: e.ID}, Digests: []string{"b3"},
		Refused: []domain.RefusedDeclaration{{Name: "nightly", Code: domain.CodeConflict, Message: "the job is another executor's", Version: "1.10.0"}},
	}))
	detail = into[ExecutorDetail](w.call("acme/viewer", "GET", "/executors/"+e.ID.String(), nil).is(200))
	require.Len(t, detail.RefusedDeclarations, 1)
	refused := detail.RefusedDeclarations[0]
	require.NotEmpty(t, refused.RefusedAt)
	refused.RefusedAt = ""
	require.Equal(t, RefusedDeclaration{Job: "nightly", Code: "conflict", Message: "the job is another executor's", Version: "1.10.0"}, refused)

	// All leave: what is known stays known.
	instances, err := w.store.ListInstances(t.Context(), store.ListInstancesParams{Tenant: e.TenantID, Executor: e.ID})
	require.NoError(t, err)
	for _, i := range instances {
		require.NoError(t, storetest.LeaveInstance(t.Context(), w.store, e.TenantID, i.ID, "stopped"))
	}
	list = into[web.Page[Handler]](w.call("acme/viewer", "GET", path, nil).is(200)).Items
	require.Len(t, list, 1)
	require.Zero(t, list[0].InstancesOnline)
	require.JSONEq(t, daySchema, string(list[0].InputSchema))
	w.call("acme/editor", "POST", "/jobs", jobBody("x", e, with("handler", "close-dya"))).problem(422, "unknown_handler")
	for _, field := range []string{"onSuccess", "onFailure"} {
		body := jobBody(field, e, with("handler", "close-day"), with("input", map[string]any{"day": "2026-11-20"}), with(field, "close-dya"))
		p := w.call("acme/editor", "POST", "/jobs", body).problem(422, "unknown_handler")
		require.Equal(t, "body."+field, p.Errors[0].Location)
		require.Contains(t, p.Errors[0].Hint, `"close-day"`)
		w.call("acme/editor", "POST", "/jobs?allowUnknownHandler=true", body).is(201)
	}
}

func TestInputHasToFit(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.build(e, "b1", "1.0", "close-day", daySchema)
	body := func(name string, input any, kind string) map[string]any {
		return jobBody(name, e, func(b map[string]any) {
			b["handler"], b["input"] = "close-day", input
			if kind != "" {
				b["schedule"] = map[string]any{"kind": kind}
			}
		})
	}
	bad := map[string]any{"dya": "2026-11-21", "shops": []any{1, "two"}}
	p := w.call("acme/editor", "POST", "/jobs", body("bad", bad, "")).problem(422, "unfit_input")
	w.call("acme/editor", "POST", "/jobs", body("bad", bad, "")).golden("unfit_input")
	require.Equal(t, []web.ProblemItem{
		{Location: "body.input.day", Pointer: "/day", Message: "is missing"},
		{Location: "body.input.dya", Pointer: "/dya", Message: "is not a field of the input", Hint: `did you mean "day"?`},
		{Location: "body.input.shops[1]", Pointer: "/shops/1", Message: "want integer, got string"},
	}, p.Errors)
	w.call("acme/editor", "POST", "/jobs", body("bad", nil, "")).problem(422, "unfit_input")
	early := into[Job](w.call("acme/editor", "POST", "/jobs?allowUnfitInput=true", body("early", bad, "")).is(201))
	asked := into[Job](w.call("acme/editor", "POST", "/jobs", body("asked", nil, "none")).is(201))
	good := into[Job](w.call("acme/editor", "POST", "/jobs", body("good", map[string]any{"day": "2026-11-21"}, "")).is(201))

	put := func(query string, input any) answer {
		return w.call("acme/editor", "PUT", "/jobs/"+good.ID+query, body("good", input, ""), header{"If-Match": "*"})
	}
	put("", map[string]any{"day": 7}).problem(422, "unfit_input")
	put("?allowUnfitInput=true", map[string]any{"day": 7}).is(200)
	put("", map[string]any{"day": "2026-11-22"}).is(200)

	run := func(j Job, query string, input any) answer {
		return w.call("acme/operator", "POST", "/jobs/"+j.ID+"/run"+query, map[string]any{"input": input})
	}
	run(good, "", nil).is(201)
	require.Equal(t, "want string, got integer", run(good, "", map[string]any{"day": 7}).problem(422, "unfit_input").Errors[0].Message)
	run(asked, "", nil).problem(422, "unfit_input")
	run(asked, "", map[string]any{"day": "2026-11-21"}).is(201)
	require.Equal(t, "in the job's own input: is missing", run(early, "", nil).problem(422, "unfit_input").Errors[0].Message)
	run(early, "?allowUnfitInput=true", nil).is(201)
}

// declare makes a job that the code of an executor declares.
func (w *world) declare(e domain.Executor, name string, own domain.Ownership) Job {
	w.t.Helper()
	j := w.job("acme", name, e)
	require.NoError(w.t, w.store.WriteDeclared(w.t.Context(), e.TenantID, []store.DeclaredWrite{{Mark: &store.DeclaredMark{Job: mustID[domain.JobID](w.t, j.ID),
		Declared: domain.Declared{By: e.ID, Ownership: own, Version: "1.4.2", Build: "d"}, Hash: "h1",
	}}}))
	return into[Job](w.call("acme/viewer", "GET", "/jobs/"+j.ID, nil).is(200))
}

// codeSays stores a job as its code declares it.
func (w *world) codeSays(j Job, says domain.CodeSays, change func(*domain.JobSpec)) {
	w.t.Helper()
	v, err := w.store.FindJob(w.t.Context(), w.tenants["acme"], mustID[domain.JobID](w.t, j.ID))
	require.NoError(w.t, err)
	v.Spec.CodeSays = says
	change(&v.Spec)
	_, err = w.store.UpdateJob(w.t.Context(), store.UpdateJobParams{
		Tenant: v.TenantID, ID: v.ID, Spec: v.Spec, Source: v.Source, DeclarationHash: v.DeclarationHash,
		Next: func(time.Time, *domain.JobSpec) time.Time { return domain.Never },
	})
	require.NoError(w.t, err)
}

func TestJobsThatTheCodeOwns(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	j := w.declare(e, "close the day", domain.OwnedByCode)
	require.Equal(t, &Declared{Executor: j.Executor, Ownership: "code", Removal: "default", Version: "1.4.2", Locked: true, Says: []string{"owner"}}, j.Declared)
	put := func(j Job, change ...func(map[string]any)) answer {
		return w.call("acme/editor", "PUT", "/jobs/"+j.ID, jobBody(j.Name, e, change...), header{"If-Match": "*"})
	}
	p := put(j, with("priority", 3), with("timeout", "1m")).problem(409, "owned_by_code")
	require.Contains(t, p.Detail, `declared in the code of the executor "shop", at the handler "reconcile", version 1.4.2`)
	require.Equal(t, []string{"body.priority", "body.timeout"}, []string{p.Errors[0].Location, p.Errors[1].Location})
	put(j, with("executor", map[string]any{"id": w.executor("acme", "other").ID.String()})).problem(409, "owned_by_code")
	w.call("acme/editor", "DELETE", "/jobs/"+j.ID, nil).problem(409, "owned_by_code")

	// What code cannot say is the console's, and so is stopping it.
	edited := into[Job](put(j, with("labels", map[string]any{"team": "books"}), with("alert", map[string]any{"emails": []string{"a@example.com"}})).is(200))
	require.Equal(t, "books", edited.Labels["team"])
	require.Equal(t, j.Source, edited.Source)
	require.True(t, edited.Declared.Locked)
	w.call("acme/operator", "POST", "/jobs/"+j.ID+"/pause", nil).is(200)
	w.call("acme/operator", "POST", "/jobs/"+j.ID+"/run", nil).is(201)
	// What code says was not noted before: its owner was the code's.
	p = put(j, with("owner", map[string]any{"email": "anna@example.com"})).problem(409, "owned_by_code")
	require.Equal(t, "body.owner.email", p.Errors[0].Location)

	// What code does say of labels and alerts is the code's.
	w.codeSays(j, domain.CodeSays{"alert.emails", "labels.team"}, func(s *domain.JobSpec) {
		s.Labels, s.Alert.Emails = map[string]string{"team": "books"}, []string{"a@example.com"}
	})
	ours := func(team string, change map[string]any) []func(map[string]any) {
		alert := map[string]any{"onFailure": true, "includeNoExecutor": true, "emails": []string{"a@example.com"}}
		maps.Copy(alert, change)
		return []func(map[string]any){
			with("labels", map[string]any{"team": team, "env": "prod"}), with("alert", alert), with("owner", map[string]any{"name": "Anna", "email": "anna@example.com"}),
		}
	}
	edited = into[Job](put(j, ours("books", map[string]any{"onFailure": false, "webhookUrl": "https://a.example.com", "webhookSecret": "s"})...).is(200))
	require.Equal(t, map[string]string{"team": "books", "env": "prod"}, edited.Labels)
	require.Equal(t, []any{false, "https://a.example.com", true, "anna@example.com"},
		[]any{edited.Alert.OnFailure, edited.Alert.WebhookURL, edited.Alert.WebhookSecretSet, edited.Owner.Email})
	require.Equal(t, []string{"alert.emails", "labels.team"}, edited.Declared.Says, "an edit does not forget it")
	for want, change := range map[string][]func(map[string]any){
		"body.labels.team":  ours("shop", nil),
		"body.alert.emails": ours("books", map[string]any{"emails": []string{}}),
	} {
		p = put(j, change...).problem(409, "owned_by_code")
		require.Equal(t, []web.ProblemItem{{Location: want, Message: "is declared in the code"}}, p.Errors)
		require.Contains(t, p.Detail, "change it there; labels, alerts and the owner can be changed here where the code does not declare them")
	}

	// No version declares it any more: it is the console's.
	require.NoError(t, w.store.WriteDeclared(t.Context(), e.TenantID, []store.DeclaredWrite{{Mark: &store.DeclaredMark{Job: mustID[domain.JobID](t, j.ID),
		Declared: domain.Declared{By: e.ID, Ownership: domain.OwnedByCode, Gone: true},
	}}}))
	put(j, with("priority", 3)).is(200)
	w.call("acme/editor", "DELETE", "/jobs/"+j.ID, nil).is(204)

	free := w.declare(e, "free", domain.OwnedUntilEdited)
	require.Equal(t, "until_edited", free.Declared.Ownership)
	require.False(t, free.Declared.Locked)
	require.Equal(t, "console", into[Job](put(free, with("priority", 3)).is(200)).Source)
}

func TestGivingAJobBackToTheCode(t *testing.T) {
	var declared domain.DeclaredJob
	known, told := true, 0
	w := newWorld(t, func(d *Deps) {
		d.Declaration = func(_ context.Context, v store.JobView) (domain.DeclaredJob, error) {
			if !known {
				return declared, domain.Errorf(domain.CodeNotFound, "what the code declares is not known")
			}
			out := declared
			out.Spec = v.Spec
			out.Spec.Priority, out.Spec.Timeout = 0, time.Minute
			return out, nil
		}
		d.GivenBack = func(context.Context, domain.TenantID, domain.ExecutorID) { told++ }
	})
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	j := w.declare(e, "close the day", domain.OwnedUntilEdited)
	declared.Hash, declared.Declared = "h2", domain.Declared{By: e.ID, Version: "1.5.0", Build: "d2"}
	edited := into[Job](w.call("acme/editor", "PUT", "/jobs/"+j.ID, jobBody(j.Name, e, with("priority", 3), with("labels", map[string]any{"team": "books"})), header{"If-Match": "*"}).is(200))
	require.Equal(t, "console", edited.Source)
	w.call("acme/operator", "POST", "/jobs/"+j.ID+"/pause", nil).is(200) // no edit, though it moves updatedAt

	difference := into[JobDeclaration](w.call("acme/viewer", "GET", "/jobs/"+j.ID+"/declaration", nil).is(200))
	require.True(t, difference.GiveBack)
	require.Equal(t, []string{"h2", "1.5.0", "acme-editor"}, []string{difference.Hash, difference.Version, difference.EditedBy})
	require.NotNil(t, difference.EditedAt)
	require.Equal(t, []Change{
		{Field: "priority", From: json.RawMessage(`3`), To: json.RawMessage(`0`)},
		{Field: "timeout", From: json.RawMessage(`"0s"`), To: json.RawMessage(`"1m"`)},
	}, difference.Changes)

	back := func(who, hash string) answer {
		return w.call(who, "POST", "/jobs/"+j.ID+"/give-back", map[string]any{"hash": hash})
	}
	back("acme/operator", "h2").problem(403, "permission_denied")
	back("beta/editor", "h2").problem(404, "not_found")
	back("acme/editor", "h1").problem(409, "conflict")
	known = false
	back("acme/editor", "h2").problem(409, "conflict")
	w.call("acme/viewer", "GET", "/jobs/"+j.ID+"/declaration", nil).problem(404, "not_found")
	known = true
	given := into[Job](back("acme/editor", "h2").is(200))
	require.Equal(t, []any{"code", "1m", 0, "paused", "1.5.0", edited.Revision + 1, "acme-editor"},
		[]any{given.Source, given.Timeout, given.Priority, given.State, given.Declared.Version, given.Revision, given.UpdatedBy})
	require.Equal(t, "books", given.Labels["team"])
	require.Equal(t, 1, told)
	require.Contains(t, w.logText(), `msg="job given back to the code"`)
	require.Contains(t, back("acme/editor", "h2").problem(409, "conflict").Detail, "was not edited in the console")

	// The running version decides, and not the version that the job followed last.
	edit := func(name string, noted domain.Declared) string {
		id := w.declare(e, name, domain.OwnedUntilEdited).ID
		w.call("acme/editor", "PUT", "/jobs/"+id, jobBody(name, e, with("priority", 3)), header{"If-Match": "*"}).is(200)
		require.NoError(t, w.store.WriteDeclared(t.Context(), e.TenantID, []store.DeclaredWrite{{Mark: &store.DeclaredMark{Job: mustID[domain.JobID](t, id), Declared: noted}}}))
		return "/jobs/" + id
	}
	const consoles = "the code says that the console decides"
	job := edit("of the code", domain.Declared{By: e.ID})
	declared.Declared.Ownership = domain.OwnedByConsole
	require.Contains(t, w.call("acme/editor", "POST", job+"/give-back", nil).problem(409, "conflict").Detail, consoles)
	shown := into[JobDeclaration](w.call("acme/viewer", "GET", job+"/declaration", nil).is(200))
	require.False(t, shown.GiveBack)
	require.Contains(t, shown.Reason, consoles)
	declared.Declared.Ownership = domain.OwnedUntilEdited
	for name, noted := range map[string]domain.Declared{
		"of the console": {By: e.ID, Ownership: domain.OwnedByConsole}, "gone": {By: e.ID, Gone: true},
	} {
		job := edit(name, noted)
		require.True(t, into[JobDeclaration](w.call("acme/viewer", "GET", job+"/declaration", nil).is(200)).GiveBack)
		w.call("acme/editor", "POST", job+"/give-back", nil).is(200)
	}
	job, known = edit("gone and not known", domain.Declared{By: e.ID, Gone: true}), false
	require.Contains(t, w.call("acme/editor", "POST", job+"/give-back", nil).problem(409, "conflict").Detail, "no version of the application that runs declares")
	known = true
	plain := w.job("acme", "plain", e).ID
	w.call("acme/editor", "POST", "/jobs/"+plain+"/give-back", nil).problem(409, "conflict")
	w.call("acme/viewer", "GET", "/jobs/"+plain+"/declaration", nil).problem(404, "not_found")
}

func TestProposals(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	j := w.declare(e, "close the day", domain.OwnedPropose)
	labelled := into[Job](w.call("acme/editor", "PUT", "/jobs/"+j.ID, jobBody(j.Name, e, with("labels", map[string]any{"team": "books"})), header{"If-Match": "*"}).is(200))
	propose := func(name, hash, expr string) Proposal {
		t.Helper()
		stored, err := w.store.FindJob(t.Context(), e.TenantID, mustID[domain.JobID](t, j.ID))
		require.NoError(t, err)
		spec := stored.Spec
		spec.Name, spec.Labels, spec.Schedule.Expr, spec.Timeout = name, nil, expr, time.Minute
		require.NoError(t, w.store.Propose(t.Context(), domain.Proposal{
			ID: w.ids.Next(), TenantID: e.TenantID, Executor: e.ID, Name: name, Hash: hash, Version: "1.5.0", Spec: spec,
		}))
		list := into[web.Page[Proposal]](w.call("acme/viewer", "GET", "/job-proposals", nil).is(200)).Items
		return list[len(list)-1]
	}
	p := propose(j.Name, "h2", "0 3 * * *")
	w.call("acme/viewer", "GET", "/job-proposals/"+p.ID, nil).is(200).golden("proposal")
	require.Equal(t, []Change{
		{Field: "schedule.expr", From: json.RawMessage(`"0 2 * * *"`), To: json.RawMessage(`"0 3 * * *"`)},
		{Field: "timeout", From: json.RawMessage(`"0s"`), To: json.RawMessage(`"1m"`)},
	}, p.Changes)
	require.Empty(t, into[web.Page[Proposal]](w.call("acme/viewer", "GET", "/job-proposals?executorId=7", nil).is(200)).Items)
	decide := func(p Proposal, verb, hash string) answer {
		return w.call("acme/editor", "POST", "/job-proposals/"+p.ID+"/"+verb, map[string]any{"hash": hash})
	}
	decide(p, "accept", "h1").problem(409, "conflict")
	accepted := into[Job](decide(p, "accept", "h2").is(200))
	require.Equal(t, "0 3 * * *", accepted.Schedule.Expr)
	require.Equal(t, "books", accepted.Labels["team"], "labels are the console's")
	require.Equal(t, labelled.Revision+1, accepted.Revision)
	require.Equal(t, "acme-editor", accepted.UpdatedBy)
	require.Equal(t, "1.5.0", accepted.Declared.Version)
	w.call("acme/viewer", "GET", "/job-proposals/"+p.ID, nil).problem(404, "not_found")

	// What the code says of labels and alerts is proposed with all else.
	w.codeSays(accepted, domain.CodeSays{"labels.tier"}, func(s *domain.JobSpec) {
		s.Labels, s.Owner.Email = map[string]string{"team": "books", "tier": "gold", "env": "prod"}, "anna@example.com"
	})
	stored, err := w.store.FindJob(t.Context(), e.TenantID, mustID[domain.JobID](t, j.ID))
	require.NoError(t, err)
	spec := stored.Spec
	spec.CodeSays, spec.Owner = domain.CodeSays{"alert.emails", "labels.env"}, domain.Owner{}
	spec.Labels, spec.Alert.Emails = map[string]string{"env": "test", "team": "of another time"}, []string{"ops@example.com"}
	require.NoError(t, w.store.Propose(t.Context(), domain.Proposal{
		ID: w.ids.Next(), TenantID: e.TenantID, Executor: e.ID, Name: j.Name, Hash: "h2b", Version: "1.5.1", Spec: spec,
	}))
	p = into[web.Page[Proposal]](w.call("acme/viewer", "GET", "/job-proposals", nil).is(200)).Items[0]
	require.Equal(t, []Change{
		{Field: "alert.emails", From: json.RawMessage(`[]`), To: json.RawMessage(`["ops@example.com"]`)},
		{Field: "labels.env", From: json.RawMessage(`"prod"`), To: json.RawMessage(`"test"`)},
		{Field: "labels.tier", From: json.RawMessage(`"gold"`), To: json.RawMessage(`null`)},
	}, p.Changes, "team and the owner are the console's")
	accepted = into[Job](decide(p, "accept", "h2b").is(200))
	require.Equal(t, map[string]string{"env": "test", "team": "books"}, accepted.Labels)
	require.Equal(t, []string{"ops@example.com"}, accepted.Alert.Emails)
	require.Equal(t, "anna@example.com", accepted.Owner.Email)
	require.Equal(t, []string{"alert.emails", "labels.env"}, accepted.Declared.Says)

	p = propose(j.Name, "h3", "0 4 * * *")
	decide(p, "decline", "").is(204)
	require.Empty(t, into[web.Page[Proposal]](w.call("acme/viewer", "GET", "/job-proposals", nil).is(200)).Items)
	declined := into[Proposal](w.call("acme/viewer", "GET", "/job-proposals/"+p.ID, nil).is(200))
	require.Equal(t, []string{"declined", "acme-editor"}, []string{declined.State, declined.DecidedBy})
	decide(p, "accept", "").problem(409, "conflict")
	decide(p, "decline", "").problem(409, "conflict")

	p = propose("a new one", "n1", "0 5 * * *")
	require.Nil(t, p.Job)
	made := into[Job](decide(p, "accept", "").is(200))
	require.Equal(t, "a new one", made.Name)
	require.Equal(t, "propose", made.Declared.Ownership)
	require.Equal(t, "code", made.Source)
}
