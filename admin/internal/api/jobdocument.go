package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/callback"
	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// jobKind is the kind of documents that are jobs. They are kept by the engine, so that the
// kind has names and schemas only.
var jobKind = resource.Of(resource.Kind{
	Name: "Job", Component: "JobDocument", Noun: "job", Path: "jobs", Read: domain.PermRead, Edit: domain.PermEdit, StatusType: reflect.TypeFor[JobStatus](),
}, resource.Rules[JobSettings]{})

// JobStatus is what a job's document tells beside its spec.
type JobStatus struct {
	State      string  `json:"state" enum:"enabled,paused" doc:"enabled: its schedule fires; paused: it fires only when asked"`
	NextFireAt *string `json:"nextFireAt" format:"date-time" doc:"The next fire time; null: none"`
	Source     string  `json:"source" enum:"console,code" doc:"code: the code of an application decides about it"`
}

type listJobDocumentsInput struct {
	web.PageParams
	Declared bool `query:"declared" doc:"Also jobs that the code of an application decides about. Default: without them"`
}

// jobDocuments are jobs as documents.
type jobDocuments struct{ *jobs }

func (d jobDocuments) register(server *web.Server) {
	write, page := document.Describe(server.Kinds().Registry(jobKind), jobKind)
	server.Kinds().Add(web.DocumentKind{Kind: jobKind, Write: write, Lists: "job-documents", Last: true, Planner: d})
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/job-documents", ID: "list-job-documents", Large: true, Tag: "jobs", Answer: page,
		Summary: "List jobs as documents", Description: "By name, as apply-documents takes them: executors, calendars and scripts are named, and a secret is its fingerprint. The version is the revision.",
	}, d.list)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/deleted-jobs", ID: "list-deleted-jobs", Tag: "jobs",
		Summary: "List deleted jobs", Description: "The newest 1,000 of the last 30 days, the last deleted first. They can be restored.",
	}, d.deleted)
	web.Register(server, web.May(domain.PermEdit).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/jobs/{id}/restore", ID: "restore-job", Computes: true, Tag: "jobs", Errors: []int{http.StatusConflict},
		Summary: "Restore a deleted job", Description: "By its id, which it keeps with its runs. Its document is written as an edit would be: what it names must be there, and quotas hold. It is paused if it was." +
			" Its timers and calls are not restored. Refused if another job has its name now.",
	}, d.restore)
}

// DeletedJob is a job that can be restored.
type DeletedJob struct {
	ID        string `json:"id" doc:"Id of the job, a decimal string"`
	Name      string `json:"name" doc:"Its name"`
	Executor  string `json:"executor" doc:"Name of its executor"`
	Version   int64  `json:"version" doc:"Its revision when it was deleted"`
	DeletedAt string `json:"deletedAt" format:"date-time" doc:"Time of its deletion"`
	DeletedBy string `json:"deletedBy" doc:"Author of its deletion"`
}

// restorableSince is the instant after which jobs and executors must be deleted to be restored.
func restorableSince(now time.Time) time.Time { return now.Add(-domain.DeletedDocumentsKept) }

func (d jobDocuments) deleted(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[DeletedJob], error) {
	rows, err := d.store.ListDeletedJobs(ctx, store.ListDeletedParams{Tenant: id.Tenant, Within: id.Reach, Since: restorableSince(d.now()), Limit: web.MaxListed})
	return web.ListPage(rows, err, func(r *store.Deleted) DeletedJob {
		return DeletedJob{domain.JobID(r.ID).String(), r.Name, r.Executor, r.Version, web.Instant(r.At), r.By}
	}, in.ShortPage, "deleted-jobs")
}

// restore plans the document of a deleted job, as an apply does, and writes it in place of the job.
func (d jobDocuments) restore(ctx context.Context, id auth.Identity, in *web.IDInput) (*jobOutput, error) {
	jid, err := domain.ParseID[domain.JobID](in.ID)
	if err != nil {
		return nil, err
	}
	since := restorableSince(d.now())
	v, err := d.store.FindDeletedJob(ctx, id.Tenant, jid, since)
	if err != nil {
		return nil, err
	}
	update, err := d.planRestore(ctx, id, &v)
	if err != nil {
		return nil, notRestorable(&v, err)
	}
	back, err := d.store.RestoreJob(ctx, store.RestoreJobParams{UpdateJobParams: update, Since: since})
	if err != nil {
		return nil, err
	}
	d.jobsChanged()
	d.log.Info("job restored", "tenant_id", id.Tenant, "job_id", jid, "job", back.Spec.Name, "state", back.State.String(), "by", id.Actor())
	return jobAnswer(ctx, d.names(), id, back)
}

// planRestore is the revision that brings a job back. Handlers go with their executor, so they are
// not looked for.
func (d jobDocuments) planRestore(ctx context.Context, id auth.Identity, v *store.JobView) (out store.UpdateJobParams, err error) {
	p := d.newPlan(&web.PlanRequest{AllowUnknownHandler: true, AllowUnfitInput: true})
	settings, err := d.settings(ctx, id, p.names, v)
	if err != nil {
		return out, err
	}
	spec, err := json.Marshal(settings)
	if err != nil {
		return out, err
	}
	step, err := p.one(ctx, id, &resource.Write{Name: v.Spec.Name, Labels: v.Spec.Labels, Spec: spec}, v)
	if err == nil {
		err = step.Refused
	}
	if err != nil {
		return out, err
	}
	return step.Work.(*jobWork).update, nil
}

// notRestorable says why a job cannot come back as it was.
func notRestorable(v *store.JobView, err error) error {
	if web.OurFault(err) || domain.Is(err, domain.CodeDenied) || domain.Is(err, domain.CodePolicyRefused) {
		return err
	}
	why := err.Error()
	if fields, told := web.FieldsOf("body", err); told && len(fields) > 0 {
		why = strings.Join(domain.Collect(fields, func(f *domain.FieldError) string {
			text := strings.TrimPrefix(f.Location, "body.spec.") + ": " + f.Message
			if value, is := f.Value.(string); is && !strings.Contains(text, value) {
				text += fmt.Sprintf(" (%q)", value)
			}
			return text
		}), "; ")
	}
	return domain.Errorf(domain.CodeConflict, "the job %q cannot be restored as it was: %s; restore or make what it names first", v.Spec.Name, why)
}

func (d jobDocuments) list(ctx context.Context, id auth.Identity, in *listJobDocumentsInput) (*document.List, error) {
	at, err := web.DecodeCursor(in.Cursor, "job-documents")
	if err != nil {
		return nil, err
	}
	rows, more, err := d.store.ListWholeJobs(ctx, store.ListWholeJobsParams{Tenant: id.Tenant, Within: id.Reach, After: at.Name, Declared: in.Declared, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	names := remember(d.store)
	out := web.OnePage(make([]document.Answer, len(rows)))
	for i := range rows {
		if out.Body.Items[i], err = d.answer(ctx, id, names, &rows[i]); err != nil {
			return nil, err
		}
	}
	if more {
		out.Body.NextCursor = web.Cursor{List: "job-documents", Name: rows[len(rows)-1].Spec.Name}.Encode()
	}
	body, err := json.Marshal(out.Body)
	return &document.List{Body: body}, err
}

func (d jobDocuments) answer(ctx context.Context, id auth.Identity, names *remembering, v *store.JobView) (document.Answer, error) {
	settings, err := d.settings(ctx, id, names, v)
	if err != nil {
		return document.Answer{}, err
	}
	if v.State == domain.JobPaused {
		settings["state"] = v.State.String()
	}
	spec, err := json.Marshal(settings)
	status := JobStatus{State: v.State.String(), Source: string(v.Source)}
	if v.State == domain.JobEnabled {
		status.NextFireAt = web.InstantOrNull(v.NextFireAt)
	}
	written := writtenOf(v)
	return document.Answer{
		APIVersion: resource.APIVersion, Kind: jobKind.Name, ID: v.ID.String(), Name: v.Spec.Name, Labels: v.Spec.Labels, Version: v.Revision,
		Spec: spec, Status: status, CreatedAt: web.Instant(v.CreatedAt), UpdatedAt: web.Instant(written.At), CreatedBy: v.CreatedBy, UpdatedBy: written.By,
	}, err
}

// settings are JobSettings of a job with names in place of ids. Empty values are left out.
func (d jobDocuments) settings(ctx context.Context, id auth.Identity, names *remembering, v *store.JobView) (map[string]any, error) {
	shown := shownTo(id, specOf(&v.Spec))
	if err := (callback.Naming{Executors: names, Handlers: d.handlers}).Fill(ctx, id.Tenant, shown.callbacks()...); err != nil {
		return nil, err
	}
	shown.OnSuccess.DropIDs()
	shown.OnFailure.DropIDs()
	raw, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber() // an input may have numbers of any length
	if err := numbers.Decode(&out); err != nil {
		return nil, fmt.Errorf("write job %s as a document: %w", v.ID, err)
	}
	delete(out, "name")
	delete(out, "labels")
	out["executor"] = map[string]any{"name": v.ExecutorName}
	schedule, _ := out["schedule"].(map[string]any)
	delete(schedule, "text")
	if uses := v.Spec.Schedule.Calendars; len(uses) > 0 {
		schedule["calendars"] = domain.Collect(uses, func(u *domain.CalendarUse) any { return map[string]any{"name": u.Content.Name} })
	}
	if use, is := out["script"].(map[string]any); is {
		script, err := names.FindScript(ctx, id.Tenant, domain.ScriptUse{ID: v.Spec.Script.ID})
		if err != nil {
			return nil, err
		}
		delete(use, "id")
		use["name"] = script.Name
	}
	alert, _ := out["alert"].(map[string]any)
	delete(alert, "webhookSecretSet")
	if sealed := v.Spec.Alert.WebhookSecret; len(sealed) > 0 {
		plain, err := d.secrets.Open(id.Tenant, secret.PurposeJobWebhook, int64(v.ID), sealed)
		if err != nil {
			return nil, err
		}
		alert["webhookSecret"] = resource.Fingerprint(d.secrets, id.Tenant, secret.PurposeJobWebhook, int64(v.ID), plain)
	}
	input := out["input"]
	delete(out, "input")
	dropEmpty(out)
	if input != nil {
		out["input"] = input
	}
	return out, nil
}

// dropEmpty removes fields without a value: a document without them means the same.
func dropEmpty(values map[string]any) {
	for key, value := range values {
		switch it := value.(type) {
		case nil:
			delete(values, key)
		case string:
			if it == "" {
				delete(values, key)
			}
		case []any:
			if len(it) == 0 {
				delete(values, key)
			}
		case map[string]any:
			if dropEmpty(it); len(it) == 0 {
				delete(values, key)
			}
		}
	}
}

// readSettings reads a job's document. The schema has passed it. v is the job that has its
// name; nil: there is none.
func (d jobDocuments) readSettings(id auth.Identity, doc *resource.Write, v *store.JobView) (w JobWrite, err error) {
	if err := json.Unmarshal(doc.Spec, &w.JobSettings); err != nil {
		return w, domain.Misfit("body.spec", err)
	}
	w.Name, w.Labels = doc.Name, doc.Labels
	if w.Schedule.After != "" {
		return w, domain.Invalid("body.spec.schedule.after", "is another instant in each apply: use at")
	}
	if w.Alert == nil || w.Alert.WebhookSecret == "" {
		return w, nil
	}
	var stored []byte
	if v != nil && len(v.Spec.Alert.WebhookSecret) > 0 {
		if stored, err = d.secrets.Open(id.Tenant, secret.PurposeJobWebhook, int64(v.ID), v.Spec.Alert.WebhookSecret); err != nil {
			return w, err
		}
	}
	given := w.Alert.WebhookSecret
	switch {
	case stored != nil && (given == string(stored) || given == resource.Fingerprint(d.secrets, id.Tenant, secret.PurposeJobWebhook, int64(v.ID), stored)):
		w.Alert.WebhookSecret = "" // it stays
	case resource.IsFingerprint(given):
		return w, domain.Invalid("body.spec.alert.webhookSecret", "is the fingerprint of another secret: give the secret itself")
	}
	return w, nil
}

// belowSpec moves the fields of an error to where a document has them.
func belowSpec(err error) error {
	fields, told := web.FieldsOf("body", err)
	if !told {
		return err
	}
	for i := range fields {
		at := fields[i].Location
		if rest, is := strings.CutPrefix(at, "body."); is && at != "body.name" && !strings.HasPrefix(at, "body.labels") {
			fields[i].Location = "body.spec." + rest
		}
	}
	return &domain.Error{Code: domain.CodeOf(err), Message: err.Error(), Fields: fields}
}
