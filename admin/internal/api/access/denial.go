package access

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
	Instance  string `json:"instance" doc:"Name of the process's instance"`
	Reason    string `json:"reason" doc:"Why, as whoever denied it said; empty: not said"`
	CreatedAt string `json:"createdAt" format:"date-time" doc:"When it was denied"`
	CreatedBy string `json:"createdBy" doc:"Who denied it"`
}

func denialOf(d *domain.Denial) Denial {
	return Denial{
		ID: domain.UserID(d.ID).String(), Kind: string(d.Kind), Subject: d.Subject, Instance: d.Label, Reason: d.Reason,
		CreatedAt: web.Instant(d.CreatedAt), CreatedBy: d.CreatedBy,
	}
}

type createDenialInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body struct {
		Serial string `json:"serial" maxLength:"64" doc:"Serial number of the certificate, in hexadecimal"`
		Reason string `json:"reason,omitempty" maxLength:"1000" doc:"Why; for those who read the list"`
	}
}

type denialIDInput struct {
	ID       string `path:"id" doc:"Id of what the address names, a decimal string"`
	DenialID string `path:"denialId" doc:"Id of the denial"`
}

func (a *api) registerDenials() {
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/executors/{id}/denials", ID: "list-denials", Tag: "access",
		Summary:     "List which processes and certificates of an executor are denied",
		Description: "The newest first.",
	}, a.listDenials)
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/executors/{id}/denials", ID: "create-denial", Tag: "access",
		Summary:     "Deny a certificate",
		Description: "Sessions that showed it end on all nodes within seconds, and it opens none any more. What their processes run goes on until their leases end. A process is denied by removing its instance (remove-instance).",
		Status:      http.StatusCreated,
	}, a.createDenial)
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/executors/{id}/denials/{denialId}", ID: "delete-denial", Tag: "access",
		Summary:     "Allow it again",
		Description: "It may register again at once. A process that was denied does not try again by itself: start it anew.", Status: http.StatusNoContent,
	}, a.deleteDenial)
}

func (a *api) listDenials(ctx context.Context, id auth.Identity, in *web.IDPage) (*web.PageOutput[Denial], error) {
	e, err := web.ByID(ctx, id.Tenant, in.ID, a.deps.Store.FindExecutor)
	if err != nil {
		return nil, err
	}
	list, err := a.deps.Store.ListDenials(ctx, id.Tenant, e.ID)
	return web.ListPage(list, err, denialOf, in.ShortPage, "denials")
}

var serialNumber = regexp.MustCompile(`^[0-9a-f]{1,40}$`)

func (a *api) createDenial(ctx context.Context, id auth.Identity, in *createDenialInput) (*struct{ Body Denial }, error) {
	e, err := web.ByID(ctx, id.Tenant, in.ID, a.deps.Store.FindExecutor)
	if err != nil {
		return nil, err
	}
	if !serialNumber.MatchString(in.Body.Serial) {
		return nil, domain.Invalid("body.serial", "must be lower-case hexadecimal digits")
	}
	d := domain.Denial{
		ID: a.deps.NewID(), TenantID: id.Tenant, Executor: e.ID, Kind: domain.DenyCertificate, Subject: in.Body.Serial, Reason: in.Body.Reason, CreatedBy: id.Actor(),
	}
	if d, err = a.deps.Store.CreateDenial(ctx, d); err != nil {
		return nil, err
	}
	a.deps.Denied()
	return &struct{ Body Denial }{denialOf(&d)}, nil
}

func (a *api) deleteDenial(ctx context.Context, id auth.Identity, in *denialIDInput) (*struct{}, error) {
	e, err := web.ByID(ctx, id.Tenant, in.ID, a.deps.Store.FindExecutor)
	if err != nil {
		return nil, err
	}
	did, err := domain.ParseID[domain.UserID](in.DenialID)
	if err != nil {
		return nil, err
	}
	return nil, a.deps.Store.DeleteDenial(ctx, id.Tenant, e.ID, int64(did))
}
