package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// executorOutput has no version as ETag: what else is in it changes with the instances.
type executorOutput struct{ Body ExecutorDetail }

type updateExecutorInput struct {
	ID      string `path:"id" doc:"Id of what the address names, a decimal string"`
	IfMatch string `header:"If-Match" doc:"The version that was edited, in quotes; * for any"`
	Body    struct {
		Name        *string  `json:"name,omitempty" minLength:"1" maxLength:"128" doc:"New name; the former one goes on to lead here"`
		Description *string  `json:"description,omitempty" maxLength:"1024" doc:"What it is for, for people"`
		CallbacksTo []string `json:"callbacksTo,omitempty" maxItems:"30" doc:"Executors that callbacks of jobs declared in its code may use beside its own, by name, also of one that is not made yet; carillon: addresses and connections"`
	}
}

type deleteExecutorInput struct {
	ID        string `path:"id" doc:"Id of what the address names, a decimal string"`
	IfMatch   string `header:"If-Match" doc:"Only if it is at this version, in quotes; default: any"`
	Jobs      string `query:"jobs" enum:"delete" doc:"delete: its jobs go with it, and their pending timers are cancelled"`
	Instances string `query:"instances" enum:"end" doc:"end: the sessions of its processes end, and what they run is lost"`
}

type formerNameInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Name string `path:"name" maxLength:"128" doc:"The former name"`
}

func (xs *executors) registerEdits(server *web.Server) {
	web.Register(server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPatch, Path: web.Base + "/executors/{id}", ID: "update-executor", Tag: "executors",
		Summary:     "Change an executor: its name, its description, the reach of its code",
		Description: "Processes that register by the former name, programs that call and set timers by it, and API keys that are bound to it go on working, until the former name is removed.",
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired},
	}, xs.updateExecutor)
	web.Register(server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/executors/{id}", ID: "delete-executor", Tag: "executors",
		Summary:     "Delete an executor",
		Description: "With its tokens, former names, denials and handlers. 409 in_use while it has jobs, pending timers or instances, with how many, unless they are to go too. Its ended runs can be read as long as they are kept.",
		Status:      http.StatusNoContent, Errors: []int{http.StatusConflict, http.StatusPreconditionFailed},
	}, xs.deleteExecutor)
	web.Register(server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/executors/{id}/disable", ID: "disable-executor", Tag: "executors",
		Summary:     "Start nothing on an executor, and admit no process",
		Description: "Within a second on all nodes. Its enabled jobs are paused until it is enabled again; attempts that run end as they would, and sessions end when they run nothing. What waits, and timers that come due, wait for an instance, each to its own deadline. Calls and runs by hand are refused: executor_disabled.",
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed},
	}, func(ctx context.Context, id auth.Identity, in *web.DisableInput) (*executorOutput, error) {
		return xs.setExecutorState(ctx, id, in.ID, in.IfMatch, domain.ExecutorDisabled, in.Note())
	})
	web.Register(server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/executors/{id}/enable", ID: "enable-executor", Tag: "executors",
		Summary:     "Let an executor take part again",
		Description: "Processes register again by themselves, within ten seconds. Jobs that were paused because it was disabled go on with the first fire time from then.",
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed},
	}, func(ctx context.Context, id auth.Identity, in *web.EnableInput) (*executorOutput, error) {
		return xs.setExecutorState(ctx, id, in.ID, in.IfMatch, domain.ExecutorEnabled, "")
	})
	web.Register(server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/executors/{id}/former-names/{name}", ID: "remove-former-name", Tag: "executors",
		Summary:     "Forget a name that an executor had before",
		Description: "What still uses it is refused from then on, and the name is free.", Status: http.StatusNoContent, Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *formerNameInput) (*struct{}, error) {
		e, err := web.ByID(ctx, id.Tenant, in.ID, xs.store.FindExecutor)
		if err != nil {
			return nil, err
		}
		if err := xs.store.DeleteExecutorAlias(ctx, id.Tenant, e.ID, in.Name); err != nil {
			return nil, err
		}
		xs.log.Info("former name of an executor removed", "tenant_id", id.Tenant, "executor", e.Name, "former_name", in.Name, "by", id.Actor())
		return nil, nil
	})
}

func (xs *executors) updateExecutor(ctx context.Context, id auth.Identity, in *updateExecutorInput) (*executorOutput, error) {
	before, err := web.ByID(ctx, id.Tenant, in.ID, xs.store.FindExecutor)
	if err != nil {
		return nil, err
	}
	p := store.UpdateExecutorParams{Tenant: id.Tenant, ID: before.ID, Name: in.Body.Name, Description: in.Body.Description}
	if p.IfVersion, err = web.IfMatch(ctx, in.IfMatch); err != nil {
		return nil, err
	}
	if p.Name != nil && !domain.ExecutorNames.MatchString(*p.Name) {
		return nil, errExecutorName()
	}
	if in.Body.CallbacksTo != nil {
		list, err := readCallbacksTo("body.callbacksTo", in.Body.CallbacksTo)
		if err != nil {
			return nil, err
		}
		p.CallbacksTo = &list
	}
	e, err := xs.store.UpdateExecutor(ctx, p)
	if err != nil {
		return nil, err
	}
	if p.CallbacksTo != nil {
		xs.codeAllowed(ctx, id.Tenant, e.ID)
	}
	xs.log.Info("executor changed", "tenant_id", id.Tenant, "executor", e.Name, "former_name", before.Name, "version", e.Version, "by", id.Actor())
	return xs.getExecutor(ctx, id, &web.IDInput{ID: in.ID})
}

// readCallbacksTo sorts the names of executors. at is their place in the request.
func readCallbacksTo(at string, names []string) ([]string, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range names {
		if !domain.ExecutorNames.MatchString(name) || len(name) > domain.MaxNameLength {
			return nil, domain.Invalid(at, "%q is no name of an executor: use letters, digits and . _ -, beginning with a letter or digit", name)
		}
	}
	return names, nil
}

func (xs *executors) setExecutorState(ctx context.Context, id auth.Identity, text, ifMatch string, state domain.ExecutorState, note string) (*executorOutput, error) {
	e, err := web.ByID(ctx, id.Tenant, text, xs.store.FindExecutor)
	if err != nil {
		return nil, err
	}
	p := store.SetExecutorStateParams{Tenant: id.Tenant, ID: e.ID, State: state, Note: note}
	if p.IfVersion, err = web.IfMatchOrAny(ctx, ifMatch); err != nil {
		return nil, err
	}
	if e.State == domain.ExecutorEnabled && state == domain.ExecutorDisabled {
		if err := xs.beforeDisable(domain.WithAudit(ctx, nil)); err != nil {
			return nil, err
		}
	}
	if e, err = xs.store.SetExecutorState(ctx, p); err != nil {
		return nil, err
	}
	xs.disabledChanged(ctx)
	xs.log.Info("executor state changed", "tenant_id", id.Tenant, "executor", e.Name, "state", e.State, "by", id.Actor())
	return xs.getExecutor(ctx, id, &web.IDInput{ID: text})
}

// takesRuns refuses what would wait in vain.
func takesRuns(e domain.Executor) error {
	if e.State != domain.ExecutorDisabled {
		return nil
	}
	note := ""
	if e.Note != "" {
		note = " (" + e.Note + ")"
	}
	return domain.Errorf(domain.CodeExecutorDisabled, "the executor %q is disabled%s: nothing is started until it is enabled again", e.Name, note)
}

// deletingTime bounds how long one request deletes the jobs of an executor.
const deletingTime = 20 * time.Second

func (xs *executors) deleteExecutor(ctx context.Context, id auth.Identity, in *deleteExecutorInput) (*struct{}, error) {
	e, err := web.ByID(ctx, id.Tenant, in.ID, xs.store.FindExecutor)
	if err != nil {
		return nil, err
	}
	p := store.DeleteExecutorParams{Tenant: id.Tenant, ID: e.ID, EndInstances: in.Instances != ""}
	if p.IfVersion, err = web.IfMatchOrAny(ctx, in.IfMatch); err != nil {
		return nil, err
	}
	if p.IfVersion != 0 && p.IfVersion != e.Version {
		return nil, domain.Errorf(domain.CodeRevisionMismatch, "executor %s is at version %d, not %d", e.ID, e.Version, p.IfVersion)
	}
	if e.BuiltIn {
		return nil, domain.Errorf(domain.CodeConflict, "the executor %q belongs to the admin nodes: it is not deleted", e.Name)
	}
	if in.Jobs != "" {
		use, err := xs.store.ExecutorUse(ctx, id.Tenant, e.ID)
		if err == nil && use.Callbacks == 0 && (use.Instances == 0 || p.EndInstances) { // else it is refused, and the jobs stay
			err = xs.deleteJobsOf(ctx, id, e)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := xs.store.DeleteExecutor(ctx, p); err != nil {
		return nil, err
	}
	xs.log.Info("executor deleted", "tenant_id", id.Tenant, "executor", e.Name, "executor_id", e.ID, "by", id.Actor())
	return nil, nil
}

// deleteJobsOf deletes the jobs of an executor, one by one. What it does not come to
// in time is counted by the refusal, and the next request goes on.
func (xs *executors) deleteJobsOf(ctx context.Context, id auth.Identity, e domain.Executor) error {
	until := time.Now().Add(deletingTime)
	for {
		jobs, err := xs.store.ListJobs(ctx, store.ListJobsParams{Tenant: id.Tenant, Executor: e.ID, AllKinds: true, Limit: 200})
		if err != nil || len(jobs) == 0 {
			return err
		}
		for _, j := range jobs {
			_, err := xs.store.SetJobState(ctx, store.SetJobStateParams{
				Tenant: id.Tenant, ID: j.ID, State: domain.JobDeleted, By: id.Actor(), Next: timing.Next, Plan: xs.plan,
			})
			if err != nil && !domain.Is(err, domain.CodeNotFound) { // somebody else has deleted it
				return err
			}
			if time.Now().After(until) {
				return nil
			}
		}
	}
}
