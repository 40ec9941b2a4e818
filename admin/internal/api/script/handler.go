package script

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

type scriptOutput struct {
	ETag string `header:"ETag" doc:"The revision in quotes"`
	Body Script
}

type writeScriptInput struct {
	ID      string `path:"id" doc:"Id of what the address names, a decimal string"`
	IfMatch string `header:"If-Match" doc:"The revision that was edited, in quotes, as in ETag; * for any"`
	Body    ScriptWrite
}

type restoreScriptInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body ScriptRestore
}

type scriptRevisionInput struct {
	ID       string `path:"id" doc:"Id of what the address names, a decimal string"`
	Revision int64  `path:"revision" minimum:"1" doc:"Number of the revision, from 1"`
}

type scriptDiffInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	From int64  `query:"from" required:"true" minimum:"1" doc:"Number of the older side's revision"`
	To   int64  `query:"to" required:"true" minimum:"1" doc:"Number of the newer side's revision"`
}

func (a *api) registerScripts() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/scripts", ID: "list-scripts", Tag: "scripts", Summary: "List scripts",
		Description: "By name, without their contents.",
	}, a.listScripts)
	web.Register(a.Server, web.May(domain.PermScript), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/scripts", ID: "create-script", Tag: "scripts", Summary: "Create a script",
		Description: "Refused while the tenant's policy does not allow its language.", Status: http.StatusCreated, Errors: []int{http.StatusConflict},
	}, a.createScript)
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/scripts/{id}", ID: "get-script", Large: true, Tag: "scripts", Summary: "One script, with its newest content",
		Description: "The ETag is the revision, for update-script.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*scriptOutput, error) {
		s, err := a.script(ctx, id, in.ID)
		if err != nil {
			return nil, err
		}
		return a.scriptAnswer(ctx, s)
	})
	web.Register(a.Server, web.May(domain.PermScript), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/scripts/{id}", ID: "update-script", Tag: "scripts", Summary: "Write a new revision of a script",
		Description: "Jobs that follow the newest revision run it from their next attempt on; jobs that name one go on with that.",
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired},
	}, a.updateScript)
	web.Register(a.Server, web.May(domain.PermScript), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/scripts/{id}", ID: "delete-script", Tag: "scripts", Summary: "Delete a script",
		Description: "Refused while jobs use it. Its revisions are kept.", Status: http.StatusNoContent, Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{}, error) {
		sid, err := domain.ParseID[domain.ScriptID](in.ID)
		if err != nil {
			return nil, err
		}
		if err := a.deps.Store.DeleteScript(ctx, id.Tenant, sid, id.Actor()); err != nil {
			return nil, err
		}
		a.deps.Log.Info("script deleted", "tenant_id", id.Tenant, "script_id", sid, "by", id.Actor())
		return nil, nil
	})
	a.registerScriptParts()
	a.registerScriptPolicy()
}

func (a *api) registerScriptParts() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/scripts/{id}/revisions", ID: "list-script-revisions", Tag: "scripts",
		Summary:     "A script's revisions, newest first",
		Description: "Without their contents.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDPage) (*web.PageOutput[ScriptRevision], error) {
		s, err := a.script(ctx, id, in.ID)
		if err != nil {
			return nil, err
		}
		rows, err := a.deps.Store.ListScriptRevisions(ctx, id.Tenant, s.ID, web.MaxListed)
		return web.ListPage(rows, err, func(r *domain.ScriptRevision) ScriptRevision { return scriptRevisionOf(*r, false) }, in.ShortPage, "script-revisions")
	})
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/scripts/{id}/revisions/{revision}", ID: "get-script-revision", Large: true, Tag: "scripts",
		Summary:     "One revision of a script, with its content",
		Description: "As it was written; revisions never change.",
	}, func(ctx context.Context, id auth.Identity, in *scriptRevisionInput) (*struct{ Body ScriptRevision }, error) {
		r, err := a.scriptRevision(ctx, id, in.ID, in.Revision)
		if err != nil {
			return nil, err
		}
		return &struct{ Body ScriptRevision }{scriptRevisionOf(r, true)}, nil
	})
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/scripts/{id}/diff", ID: "diff-script", Computes: true, Large: true, Tag: "scripts", Summary: "What changed between two revisions",
		Description: "Line by line: those of both, only of the newer, and only of the older.",
	}, func(ctx context.Context, id auth.Identity, in *scriptDiffInput) (*struct{ Body ScriptDiff }, error) {
		from, err := a.scriptRevision(ctx, id, in.ID, in.From)
		if err != nil {
			return nil, err
		}
		to, err := a.scriptRevision(ctx, id, in.ID, in.To)
		if err != nil {
			return nil, err
		}
		return &struct{ Body ScriptDiff }{diffOf(in.From, in.To, from.Content, to.Content)}, nil
	})
	web.Register(a.Server, web.May(domain.PermScript), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/scripts/{id}/restore", ID: "restore-script", Tag: "scripts",
		Summary: "Make an old revision's content the newest", Description: "Writes a new revision: nothing is taken back.",
	}, a.restoreScript)
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/scripts/{id}/jobs", ID: "list-script-jobs", Tag: "scripts", Summary: "The jobs that use a script",
		Description: "By name. Those whose newest revision names the script.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDPage) (*web.PageOutput[web.Ref], error) {
		s, err := a.script(ctx, id, in.ID)
		if err != nil {
			return nil, err
		}
		rows, err := a.deps.Store.ListScriptJobs(ctx, id.Tenant, s.ID, web.MaxListed)
		return web.ListPage(rows, err, func(j *store.JobRef) web.Ref { return web.Ref{ID: j.ID.String(), Name: j.Name} }, in.ShortPage, "script-jobs")
	})
}

func (a *api) scriptRevision(ctx context.Context, id auth.Identity, text string, revision int64) (domain.ScriptRevision, error) {
	s, err := a.script(ctx, id, text)
	if err != nil {
		return domain.ScriptRevision{}, err
	}
	return a.deps.Store.FindScriptRevision(ctx, id.Tenant, s.ID, revision)
}

// scriptAnswer adds the newest content.
func (a *api) scriptAnswer(ctx context.Context, s domain.Script) (*scriptOutput, error) {
	r, err := a.deps.Store.FindScriptRevision(ctx, s.TenantID, s.ID, s.Revision)
	if err != nil {
		return nil, err
	}
	out := &scriptOutput{ETag: web.ETag(s.Revision), Body: scriptOf(&s)}
	out.Body.Content, out.Body.SHA256 = &r.Content, hex.EncodeToString(r.SHA256)
	return out, nil
}

func (a *api) listScripts(ctx context.Context, id auth.Identity, in *struct{ web.PageParams }) (*web.PageOutput[Script], error) {
	at, err := web.DecodeCursor(in.Cursor, "scripts")
	if err != nil {
		return nil, err
	}
	rows, err := a.deps.Store.ListScripts(ctx, store.ListScriptsParams{Tenant: id.Tenant, After: at.Name, Limit: in.Limit + 1})
	return web.RowsPage(rows, err, in.Limit, scriptOf, func(last *domain.Script) web.Cursor {
		return web.Cursor{List: "scripts", Name: last.Name}
	})
}

func (a *api) createScript(ctx context.Context, id auth.Identity, in *struct{ Body ScriptCreate }) (*scriptOutput, error) {
	var r web.Reader
	w := &in.Body
	s := domain.Script{
		ID: domain.ScriptID(a.deps.NewID()), TenantID: id.Tenant, Name: r.Name("body.name", w.Name, domain.MaxNameLength),
		Language: w.Language, Description: strings.TrimSpace(w.Description), CreatedBy: id.Actor(),
	}
	if err := r.Add(domain.CheckScript(&s)); err != nil {
		return nil, err
	}
	if err := a.checkContent(ctx, id, &r, s.Language, w.Content, w.Note); err != nil {
		return nil, err
	}
	s, err := a.deps.Store.CreateScript(ctx, store.CreateScriptParams{Script: s, Content: w.Content, Note: strings.TrimSpace(w.Note), Sign: a.deps.SignScript})
	if err != nil {
		return nil, err
	}
	a.deps.Log.Info("script created", "tenant_id", id.Tenant, "script_id", s.ID, "script", s.Name, "by", id.Actor())
	return a.scriptAnswer(ctx, s)
}

// checkContent returns all that is wrong with a revision.
func (a *api) checkContent(ctx context.Context, id auth.Identity, r *web.Reader, language, content, note string) error {
	if err := r.Add(domain.CheckScriptContent(content, note)); err != nil {
		return err
	}
	if err := r.Err(); err != nil {
		return err
	}
	return allowedAgent(ctx, a.deps.Store, id.Tenant, domain.ScriptHandlerPrefix+language)
}

func (a *api) updateScript(ctx context.Context, id auth.Identity, in *writeScriptInput) (*scriptOutput, error) {
	s, err := a.script(ctx, id, in.ID)
	if err != nil {
		return nil, err
	}
	revision, err := web.IfMatch(ctx, in.IfMatch)
	if err != nil {
		return nil, err
	}
	if in.Body.Description != nil {
		trimmed := strings.TrimSpace(*in.Body.Description)
		in.Body.Description = &trimmed
	}
	return a.revise(ctx, id, s, store.ReviseScriptParams{
		IfRevision: revision, Content: in.Body.Content, Description: in.Body.Description, Note: in.Body.Note,
	})
}

func (a *api) restoreScript(ctx context.Context, id auth.Identity, in *restoreScriptInput) (*scriptOutput, error) {
	s, err := a.script(ctx, id, in.ID)
	if err != nil {
		return nil, err
	}
	old, err := a.deps.Store.FindScriptRevision(ctx, id.Tenant, s.ID, in.Body.Revision)
	if err != nil {
		return nil, err
	}
	return a.revise(ctx, id, s, store.ReviseScriptParams{IfRevision: s.Revision, Content: old.Content, Note: in.Body.Note})
}

func (a *api) revise(ctx context.Context, id auth.Identity, s domain.Script, p store.ReviseScriptParams) (*scriptOutput, error) {
	var r web.Reader
	if err := a.checkContent(ctx, id, &r, s.Language, p.Content, p.Note); err != nil {
		return nil, err
	}
	p.Tenant, p.ID, p.By, p.Sign, p.Note = id.Tenant, s.ID, id.Actor(), a.deps.SignScript, strings.TrimSpace(p.Note)
	s, err := a.deps.Store.ReviseScript(ctx, p)
	if err != nil {
		return nil, err
	}
	a.deps.Log.Info("script changed", "tenant_id", id.Tenant, "script_id", s.ID, "script", s.Name, "revision", s.Revision, "by", id.Actor())
	return a.scriptAnswer(ctx, s)
}
