// Package document answers: which requests does each kind of documents have?
//
// All kinds have the same operations with the same handlers. A kind brings its names, its
// rights and the schema of its spec (package resource). Bodies stay JSON here: the server checks
// them against the schema before, and the kind gives them their type after.
package document

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// Answer is a document as the API shows it.
type Answer struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Labels     map[string]string `json:"labels,omitempty"`
	Version    int64             `json:"version"`
	Spec       json.RawMessage   `json:"spec"`
	Secrets    map[string]string `json:"secrets,omitzero"`
	Status     any               `json:"status,omitempty"`
	Problem    string            `json:"problem,omitempty"`
	UsedBy     *DocumentUsers    `json:"usedBy,omitempty"`
	CreatedAt  string            `json:"createdAt"`
	UpdatedAt  string            `json:"updatedAt"`
	CreatedBy  string            `json:"createdBy"`
	UpdatedBy  string            `json:"updatedBy"`
}

// DocumentUsers are the documents that refer to one. While there is one, the document is not deleted.
type DocumentUsers struct {
	Count int            `json:"count" doc:"Number of jobs and documents that refer to this one, at most 1000"`
	More  bool           `json:"more" doc:"There are more than that"`
	First []DocumentUser `json:"first" doc:"The first of them by kind and name, at most 20"`
}

// DocumentUser is a job or a document that refers to another one.
type DocumentUser struct {
	Kind string `json:"kind" doc:"Kind of the document, such as Job"`
	ID   string `json:"id" doc:"Its id, a decimal string"`
	Name string `json:"name" doc:"Its name"`
}

// written is a document as the API takes it.
type written struct {
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels"`
	Spec    json.RawMessage   `json:"spec"`
	Secrets map[string]string `json:"secrets"`
}

// version is a version of a document.
type version struct {
	Version   int64             `json:"version"`
	CreatedAt string            `json:"createdAt"`
	CreatedBy string            `json:"createdBy"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels,omitempty"`
	Spec      json.RawMessage   `json:"spec"`
}

// Output is the answer with one document. The ETag is its version.
type Output struct {
	ETag string `header:"ETag" doc:"The version in quotes"`
	Body json.RawMessage
}

// OneInput names a document.
type OneInput struct {
	ID string `path:"id" doc:"Id or name of the document"`
}

type listOutput struct{ Body json.RawMessage }

type createInput struct{ Body json.RawMessage }

type replaceInput = web.Edited[json.RawMessage]

type versionInput struct {
	OneInput
	Version int64 `path:"version" minimum:"1" doc:"Number of the version, from 1"`
}

type versionsInput struct {
	OneInput
	web.ShortPage
}

// API are the operations of one kind.
type API struct {
	docs  *resource.Documents
	kind  *resource.Kind
	shape schemas
}

// Answer is the schema of a document in answers.
func (a *API) Answer() *huma.Schema { return a.shape.answer }

// Register adds the operations of a kind. What it returns serves actions of the kind, too.
func Register(s *web.Server, docs *resource.Documents) *API {
	k := docs.Kind()
	shape := describe(s.Kinds().Registry(k), k, true)
	a := &API{docs, k, shape}
	s.Kinds().Add(web.DocumentKind{Kind: k, Write: shape.write, Lists: k.Path, Brief: k.IsBrief(), Last: k.Last, Planner: web.ForEach{Documents: docs}, Documents: docs})
	base, one := web.Base+"/"+k.Path, web.Base+"/"+k.Path+"/{id}"
	read, edit := web.May(k.Read), web.May(k.Edit)
	web.Register(s, read, web.Operation{
		Method: http.MethodGet, Path: base, ID: "list-" + k.Path, Large: true, Tag: k.Path, Answer: shape.page,
		Summary: "List " + k.Path, Description: "By name." + said(len(k.Secrets) > 0, " Secrets cannot be read."),
	}, a.list)
	web.Register(s, edit, web.Operation{
		Method: http.MethodPost, Path: base, ID: "create-" + k.ID(), Computes: k.Computes, Tag: k.Path, Request: shape.write, Answer: shape.answer,
		Summary: "Create " + k.A(), Description: k.About + " " + k.Notes.Create,
		Status: http.StatusCreated, Errors: []int{http.StatusConflict},
	}, a.create)
	web.Register(s, read, web.Operation{
		Method: http.MethodGet, Path: one, ID: "get-" + k.ID(), Large: k.Versioned, Tag: k.Path, Answer: shape.answer,
		Summary: "One " + k.Noun, Description: "With the jobs and documents that refer to it. The ETag is the version, for update-" + k.ID() + ".",
	}, a.get)
	web.Register(s, edit, web.Operation{
		Method: http.MethodPut, Path: one, ID: "update-" + k.ID(), Computes: k.Computes, Tag: k.Path, Request: shape.write, Answer: shape.answer,
		Summary: "Replace " + k.A(), Description: k.Notes.Update, Errors: editErrors,
	}, a.replace)
	web.Register(s, edit, web.Operation{
		Method: http.MethodDelete, Path: one, ID: "delete-" + k.ID(), Tag: k.Path, Status: http.StatusNoContent, Errors: []int{http.StatusConflict},
		Summary: "Delete " + k.A(), Description: k.Notes.Delete + " It can be restored for 30 days.",
	}, a.remove)
	web.Register(s, edit, web.Operation{
		Method: http.MethodPost, Path: one + "/restore", ID: "restore-" + k.ID(), Tag: k.Path, Answer: shape.answer, Errors: []int{http.StatusConflict},
		Summary: "Restore a deleted " + k.Noun, Description: "By its id. It gets its name, its contents and its secrets back, as a new version. Refused if another one has its name now.",
	}, a.restore)
	web.Register(s, read, web.Operation{
		Method: http.MethodGet, Path: web.Base + "/deleted-" + k.Path, ID: "list-deleted-" + k.Path, Tag: k.Path,
		Summary: "List deleted " + k.Path, Description: "The last deleted first. They can be restored.",
	}, a.deleted)
	if k.Versioned {
		web.Register(s, read, web.Operation{
			Method: http.MethodGet, Path: one + "/versions", ID: "list-" + k.ID() + "-versions", Large: true, Tag: k.Path, Answer: shape.versions,
			Summary: "The versions of " + k.A(), Description: "The newest first, each with its whole contents.",
		}, a.versions)
		web.Register(s, read, web.Operation{
			Method: http.MethodGet, Path: one + "/versions/{version}", ID: "get-" + k.Noun + "-version", Large: true, Tag: k.Path, Answer: shape.version,
			Summary: "One version of a " + k.Noun, Description: "As it was written. Versions never change.",
		}, a.version)
	}
	return a
}

// editErrors are the statuses of operations that write.
var editErrors = []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired}

func said(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// listInput is a page of a list that can be counted.
type listInput struct {
	web.ShortPage
	web.TotalParam
}

func (a *API) list(ctx context.Context, id auth.Identity, in *listInput) (*listOutput, error) {
	at, err := web.DecodeCursor(in.Cursor, a.kind.Path)
	if err != nil {
		return nil, err
	}
	rows, more, err := a.docs.List(ctx, id.Tenant, at.Name, in.Limit)
	if err != nil {
		return nil, err
	}
	items := make([]Answer, len(rows))
	for i := range rows {
		if items[i], err = a.answer(&rows[i]); err != nil {
			return nil, err
		}
		if err := a.kind.Brief(&rows[i]); err != nil {
			return nil, err
		}
		items[i].Spec = rows[i].Spec
	}
	out := pageOf(items, more, func() web.Cursor { return web.Cursor{List: a.kind.Path, Name: rows[len(rows)-1].Name} })
	err = web.AddTotal(in.TotalParam, out, func() (int, bool, error) {
		n, err := a.docs.Store().Count(ctx, id.Tenant, web.MaxTotal+1)
		return min(n, web.MaxTotal), n > web.MaxTotal, err
	})
	if err != nil {
		return nil, err
	}
	return listed(out)
}

func pageOf[T any](items []T, more bool, cursor func() web.Cursor) *web.PageOutput[T] {
	out := web.OnePage(items)
	if more {
		out.Body.NextCursor = cursor().Encode()
	}
	return out
}

func listed[T any](out *web.PageOutput[T]) (*listOutput, error) {
	body, err := json.Marshal(out.Body)
	return &listOutput{body}, err
}

func (a *API) get(ctx context.Context, id auth.Identity, in *OneInput) (*Output, error) {
	row, err := a.docs.Find(ctx, id.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	users, err := a.docs.Store().Users(ctx, id.Tenant, row.ID, maxUsers+1)
	if err != nil {
		return nil, err
	}
	return a.output(row, &DocumentUsers{
		Count: min(len(users), maxUsers), More: len(users) > maxUsers,
		First: domain.Collect(users[:min(len(users), shownUsers)], func(u *resource.User) DocumentUser {
			return DocumentUser{Kind: u.Kind, ID: domain.JobID(u.ID).String(), Name: u.Name}
		}),
	})
}

// maxUsers bounds the counted users, and shownUsers the named ones.
const maxUsers, shownUsers = 1000, 20

// read takes a body that the schema has passed.
func read(body json.RawMessage) (w written, err error) {
	if err := json.Unmarshal(body, &w); err != nil {
		return w, domain.Misfit("body", err)
	}
	return w, nil
}

func (a *API) create(ctx context.Context, id auth.Identity, in *createInput) (*Output, error) {
	w, err := read(in.Body)
	if err != nil {
		return nil, err
	}
	row, err := a.docs.Create(ctx, id.Tenant, id.Actor(), resource.Write(w))
	if err != nil {
		return nil, err
	}
	return a.Output(row)
}

func (a *API) replace(ctx context.Context, id auth.Identity, in *replaceInput) (*Output, error) {
	w, err := read(in.Body)
	if err != nil {
		return nil, err
	}
	return a.Edit(ctx, id, in.ID, in.IfMatch, func(*resource.Row) (resource.Write, error) { return resource.Write(w), nil })
}

// Edit replaces a document by what change makes of its current version. match is the header
// If-Match.
func (a *API) Edit(ctx context.Context, id auth.Identity, word, match string, change func(*resource.Row) (resource.Write, error)) (*Output, error) {
	old, err := a.docs.Find(ctx, id.Tenant, word)
	if err != nil {
		return nil, err
	}
	asked, err := web.IfMatch(ctx, match)
	if err != nil {
		return nil, err
	}
	if asked != 0 && asked != old.Version {
		return nil, domain.Errorf(domain.CodeRevisionMismatch, "%s %d is at version %d, not %d", a.kind.Noun, old.ID, old.Version, asked)
	}
	w, err := change(&old)
	if err != nil {
		return nil, err
	}
	row, err := a.docs.Replace(ctx, old, id.Actor(), w)
	if err != nil {
		return nil, err
	}
	return a.Output(row)
}

func (a *API) remove(ctx context.Context, id auth.Identity, in *OneInput) (*struct{}, error) {
	row, err := a.docs.Find(ctx, id.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	return nil, a.docs.Delete(ctx, &row, 0, id.Actor())
}

func (a *API) restore(ctx context.Context, id auth.Identity, in *web.IDInput) (*Output, error) {
	n, err := domain.ParseID[domain.JobID](in.ID)
	if err != nil {
		return nil, err
	}
	row, err := a.docs.Restore(ctx, id.Tenant, int64(n), id.Actor())
	if err != nil {
		return nil, err
	}
	return a.Output(row)
}

func (a *API) deleted(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[DeletedDocument], error) {
	rows, err := a.docs.Store().ListDeleted(ctx, id.Tenant, web.MaxListed)
	return web.ListPage(rows, err, func(r *resource.Row) DeletedDocument {
		return DeletedDocument{ID: a.id(r), Name: r.Name, Version: r.Version, DeletedAt: web.Instant(r.UpdatedAt), DeletedBy: r.UpdatedBy}
	}, in.ShortPage, "deleted-"+a.kind.Path)
}

func (a *API) versions(ctx context.Context, id auth.Identity, in *versionsInput) (*listOutput, error) {
	row, err := a.docs.Find(ctx, id.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	list := a.kind.ID() + "-versions"
	at, err := web.DecodeCursor(in.Cursor, list)
	if err != nil {
		return nil, err
	}
	rows, more, err := a.docs.Store().ListVersions(ctx, id.Tenant, row.ID, at.ID, in.Limit)
	if err != nil {
		return nil, err
	}
	items := domain.Collect(rows, versionOf)
	return listed(pageOf(items, more, func() web.Cursor { return web.Cursor{List: list, ID: rows[len(rows)-1].Version} }))
}

func versionOf(r *resource.Row) version {
	return version{r.Version, web.Instant(r.CreatedAt), r.CreatedBy, r.Name, r.Labels, r.Spec}
}

func (a *API) version(ctx context.Context, id auth.Identity, in *versionInput) (*listOutput, error) {
	row, err := a.docs.FindVersion(ctx, id.Tenant, in.ID, in.Version)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(versionOf(&row))
	return &listOutput{body}, err
}

// Output is the answer with a document.
func (a *API) Output(row resource.Row) (*Output, error) { return a.output(row, nil) }

func (a *API) output(row resource.Row, users *DocumentUsers) (*Output, error) {
	answer, err := a.answer(&row)
	answer.UsedBy = users
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(answer)
	return &Output{ETag: web.ETag(row.Version), Body: body}, err
}

func (a *API) id(r *resource.Row) string { return domain.JobID(r.ID).String() }

func (a *API) answer(r *resource.Row) (Answer, error) {
	status, err := a.kind.Status(r)
	if err != nil {
		return Answer{}, err
	}
	out := Answer{
		APIVersion: resource.APIVersion, Kind: a.kind.Name, ID: a.id(r), Name: r.Name, Labels: r.Labels, Version: r.Version, Spec: r.Spec, Status: status, Problem: r.Problem,
		CreatedAt: web.Instant(r.CreatedAt), UpdatedAt: web.Instant(r.UpdatedAt), CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy,
	}
	if len(a.kind.Secrets) > 0 {
		out.Secrets = r.Marks
		if out.Secrets == nil {
			out.Secrets = map[string]string{}
		}
	}
	return out, nil
}
