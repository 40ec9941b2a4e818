package api

import (
	"context"
	"net/http"
	"regexp"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Denial keeps one process, or one certificate, from connecting.
type Denial struct {
	ID        string `json:"id" doc:"Id of the denial, a decimal string"`
	Kind      string `json:"kind" enum:"instance,certificate" doc:"Whether a process or a certificate is kept out"`
	Subject   string `json:"subject" doc:"The process's boot id, or the certificate's serial number"`
	Instance  string `json:"instance" doc:"The instance's name, when it was named by its id"`
	Reason    string `json:"reason" doc:"Why, as whoever denied it said; empty: not said"`
	CreatedAt string `json:"createdAt" format:"date-time" doc:"When it was denied"`
	CreatedBy string `json:"createdBy" doc:"Who denied it"`
}

func denialOf(d domain.Denial) Denial {
	return Denial{
		ID: domain.UserID(d.ID).String(), Kind: string(d.Kind), Subject: d.Subject, Instance: d.Label, Reason: d.Reason,
		CreatedAt: web.Instant(d.CreatedAt), CreatedBy: d.CreatedBy,
	}
}

type createDenialInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body struct {
		InstanceID string `json:"instanceId,omitempty" doc:"The process to keep out; or give serial"`
		Serial     string `json:"serial,omitempty" maxLength:"64" doc:"Serial number of the certificate to keep out, in hexadecimal"`
		Reason     string `json:"reason,omitempty" maxLength:"1000" doc:"Why; for those who read the list"`
	}
}

type denialIDInput struct {
	ID       string `path:"id" doc:"Id of what the address names, a decimal string"`
	DenialID string `path:"denialId" doc:"Id of the denial"`
}

func (a *API) registerDenials() {
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/executors/{id}/denials", ID: "list-denials", Tag: "access",
		Summary:     "List which processes and certificates of an executor are denied",
		Description: "The newest first.",
	}, a.listDenials)
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/executors/{id}/denials", ID: "create-denial", Tag: "access",
		Summary: "Deny a process or a certificate",
		Description: "Its sessions end on all nodes within seconds, and it cannot connect again, whatever it shows. " +
			"What it runs goes on until its lease ends. A new process is not concerned: revoke the join token to keep new ones out.",
		Status: http.StatusCreated,
	}, a.createDenial)
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/executors/{id}/denials/{denialId}", ID: "delete-denial", Tag: "access",
		Summary:     "Allow it again",
		Description: "It may register again at once.", Status: http.StatusNoContent,
	}, a.deleteDenial)
}

func (a *API) listDenials(ctx context.Context, id auth.Identity, in *idPageInput) (*web.PageOutput[Denial], error) {
	e, err := a.executor(ctx, id, in.ID)
	if err != nil {
		return nil, err
	}
	list, err := a.deps.Store.ListDenials(ctx, id.Tenant, e.ID)
	if err != nil {
		return nil, err
	}
	items := make([]Denial, 0, len(list))
	for _, d := range list {
		items = append(items, denialOf(d))
	}
	return web.SlicePage(items, in.ShortPage, "denials")
}

var serialNumber = regexp.MustCompile(`^[0-9a-f]{1,40}$`)

func (a *API) createDenial(ctx context.Context, id auth.Identity, in *createDenialInput) (*struct{ Body Denial }, error) {
	e, err := a.executor(ctx, id, in.ID)
	if err != nil {
		return nil, err
	}
	d := domain.Denial{ID: a.deps.NewID(), TenantID: id.Tenant, Executor: e.ID, Reason: in.Body.Reason, CreatedBy: id.Actor()}
	switch {
	case (in.Body.InstanceID == "") == (in.Body.Serial == ""):
		return nil, domain.Invalid("body.instanceId", "give instanceId or serial")
	case in.Body.Serial != "":
		if !serialNumber.MatchString(in.Body.Serial) {
			return nil, domain.Invalid("body.serial", "must be lower-case hexadecimal digits")
		}
		d.Kind, d.Subject = domain.DenyCertificate, in.Body.Serial
	default:
		i, err := a.instanceOfExecutor(ctx, id, e.ID, in.Body.InstanceID)
		if err != nil {
			return nil, err
		}
		d.Kind, d.Subject, d.Label = domain.DenyInstance, i.BootID, i.Name
	}
	if d, err = a.deps.Store.CreateDenial(ctx, d); err != nil {
		return nil, err
	}
	a.deps.Denied()
	return &struct{ Body Denial }{denialOf(d)}, nil
}

// instanceOfExecutor finds one by its id; one of another executor is not found.
func (a *API) instanceOfExecutor(ctx context.Context, id auth.Identity, executor domain.ExecutorID, text string) (domain.Instance, error) {
	iid, err := domain.ParseID[domain.InstanceID](text)
	if err != nil {
		return domain.Instance{}, err
	}
	i, err := a.deps.Store.FindInstance(ctx, id.Tenant, iid)
	if err == nil && i.Executor != executor {
		err = domain.Errorf(domain.CodeNotFound, "the executor has no instance with the id %q", text)
	}
	return i, err
}

func (a *API) deleteDenial(ctx context.Context, id auth.Identity, in *denialIDInput) (*struct{}, error) {
	e, err := a.executor(ctx, id, in.ID)
	if err != nil {
		return nil, err
	}
	did, err := domain.ParseID[domain.UserID](in.DenialID)
	if err != nil {
		return nil, err
	}
	return nil, a.deps.Store.DeleteDenial(ctx, id.Tenant, e.ID, int64(did))
}
