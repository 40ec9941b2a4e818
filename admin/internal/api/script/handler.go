package script

import (
	"context"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/resource/script"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

type diffInput struct {
	document.OneInput
	From int64 `query:"from" required:"true" minimum:"1" doc:"Number of the older side's version"`
	To   int64 `query:"to" required:"true" minimum:"1" doc:"Number of the newer side's version"`
}

func (a *api) registerScripts() {
	document.Register(a.Server, a.docs)
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/scripts/{id}/diff", ID: "diff-script", Computes: true, Large: true, Tag: "scripts", Summary: "What changed between two versions",
		Description: "Line by line: those of both, only of the newer, and only of the older.",
	}, a.diff)
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/scripts/{id}/jobs", ID: "list-script-jobs", Tag: "scripts", Summary: "The jobs that use a script",
		Description: "By name. Those whose newest revision names the script.",
	}, a.jobs)
	a.registerScriptPolicy()
}

func (a *api) diff(ctx context.Context, id auth.Identity, in *diffInput) (*struct{ Body ScriptDiff }, error) {
	var contents [2]string
	for i, version := range []int64{in.From, in.To} {
		row, err := a.docs.FindVersion(ctx, id.Tenant, in.ID, version)
		if err != nil {
			return nil, err
		}
		d, err := resource.Read[script.ScriptSpec](&row)
		if err != nil {
			return nil, err
		}
		contents[i] = d.Spec.Content
	}
	return &struct{ Body ScriptDiff }{diffOf(in.From, in.To, contents[0], contents[1])}, nil
}

func (a *api) jobs(ctx context.Context, id auth.Identity, in *struct {
	web.ShortPage
	document.OneInput
}) (*web.PageOutput[web.Ref], error) {
	row, err := a.docs.Find(ctx, id.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	rows, err := a.deps.Store.ListScriptJobs(ctx, id.Tenant, domain.ScriptID(row.ID), web.MaxListed)
	return web.ListPage(rows, err, func(j *store.JobRef) web.Ref { return web.Ref{ID: j.ID.String(), Name: j.Name} }, in.ShortPage, "script-jobs")
}
