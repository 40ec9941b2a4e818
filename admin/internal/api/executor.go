package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Executor is a named group of interchangeable processes.
type Executor struct {
	ID              string `json:"id" doc:"Id of the executor, a decimal string"`
	Name            string `json:"name" doc:"Its name, unique in the tenant"`
	Description     string `json:"description" doc:"What it is for, for people"`
	Kind            string `json:"kind" enum:"application,built_in" doc:"built_in: the admin nodes are its instances, and no process joins it"`
	InstancesOnline int    `json:"instancesOnline" doc:"Those that are heard, also while they drain; without silent ones"`
	InstancesTotal  int    `json:"instancesTotal" doc:"Without those that have gone"`
	Handlers        int    `json:"handlers" doc:"How many handlers its instances have registered"`
	State           string `json:"state" enum:"enabled,disabled" doc:"disabled: no process registers and nothing starts"`
	Note            string `json:"note,omitempty" doc:"Why it is disabled"`
	Version         int64  `json:"version" doc:"Grows with each change; for If-Match"`
	CreatedAt       string `json:"createdAt" format:"date-time" doc:"When it was made"`
}

// ExecutorDetail has the catalogue instead of its size.
type ExecutorDetail struct {
	ID                  string               `json:"id" doc:"Id of the executor, a decimal string"`
	Name                string               `json:"name" doc:"Its name, unique in the tenant"`
	Description         string               `json:"description" doc:"What it is for, for people"`
	Kind                string               `json:"kind" enum:"application,built_in" doc:"built_in: the admin nodes are its instances, and no process joins it"`
	InstancesOnline     int                  `json:"instancesOnline" doc:"Processes that are connected and take runs"`
	InstancesTotal      int                  `json:"instancesTotal" doc:"Processes that are not gone"`
	State               string               `json:"state" enum:"enabled,disabled" doc:"disabled: no process registers and nothing starts"`
	Note                string               `json:"note,omitempty" doc:"Why it is disabled"`
	Version             int64                `json:"version" doc:"Grows with each change; for If-Match"`
	FormerNames         []string             `json:"formerNames" doc:"Names that it had before, by which processes and programs may still use it"`
	CreatedAt           string               `json:"createdAt" format:"date-time" doc:"When it was made"`
	MaxRunning          int                  `json:"maxRunning" doc:"Runs that may go on at once; 0 = no limit"`
	CallbacksTo         []string             `json:"callbacksTo" doc:"Executors that callbacks of jobs declared in its code may use beside its own, by name; carillon: addresses and connections"`
	Handlers            []Handler            `json:"handlers" doc:"What its instances have registered, by name. Schemas beyond the first MiB are null; the list of handlers has them"`
	RefusedDeclarations []RefusedDeclaration `json:"refusedDeclarations" doc:"Jobs that the application declares in code and that were not taken, by name; the first 200"`
}

// RefusedDeclaration is a job that stands in the application's code only.
type RefusedDeclaration struct {
	Job       string `json:"job" doc:"Name of the job"`
	Code      string `json:"code" doc:"As errors have it"`
	Message   string `json:"message" doc:"Why; it names each field that is wrong"`
	Version   string `json:"version" doc:"Of the application; may be empty"`
	RefusedAt string `json:"refusedAt" format:"date-time" doc:"When it was looked at last"`
}

// Instance is one process of an executor.
type Instance struct {
	ID              string            `json:"id" doc:"Id of the instance, a decimal string"`
	Name            string            `json:"name" doc:"Its name, as the application says"`
	Host            string            `json:"host" doc:"Host that it runs on"`
	Address         string            `json:"address,omitempty" doc:"Network address that its session comes from; absent: not known, or you administer nothing"`
	PID             int               `json:"pid" doc:"Its process id"`
	Version         string            `json:"version" doc:"The application's"`
	SDKVersion      string            `json:"sdkVersion" doc:"Library and version that it speaks with"`
	Labels          map[string]string `json:"labels" doc:"What it says of itself, for requireLabels and preferLabels of jobs"`
	Slots           int               `json:"slots" doc:"How many runs it takes at once, by weight"`
	Running         int               `json:"running" doc:"Slots that are taken"`
	State           string            `json:"state" enum:"online,draining,silent,gone" doc:"online; draining: it takes nothing new; silent: no sign of life for a while; gone"`
	ConnectedAt     string            `json:"connectedAt" format:"date-time" doc:"When its present session began"`
	LastHeartbeatAt string            `json:"lastHeartbeatAt" format:"date-time" doc:"Its last sign of life"`
	StartedAt       string            `json:"startedAt" format:"date-time" doc:"When the process started, by its own clock"`
	BootID          string            `json:"bootId" doc:"Id of the process: another one after each start"`
	Handlers        []string          `json:"handlers" doc:"Names of the handlers that it has registered"`
	Build           string            `json:"build" doc:"Digest of what it registered, as in the versions of handlers; empty = not known"`
	GoneAt          *string           `json:"goneAt" format:"date-time" doc:"When it left or was given up; null: it is there"`
	GoneReason      string            `json:"goneReason,omitempty" doc:"Why; absent while it is there"`
	DrainedAt       *string           `json:"drainedAt" format:"date-time" doc:"Since when somebody wants it to take nothing new; null: nobody does"`
	DrainedBy       string            `json:"drainedBy,omitempty" doc:"Who; absent: nobody"`
}

func instanceState(i domain.Instance, now time.Time) string {
	switch {
	case !i.GoneAt.IsZero():
		return "gone"
	case i.Silent(now):
		return "silent"
	case i.Draining:
		return "draining"
	default:
		return "online"
	}
}

func instanceOf(i domain.Instance, now time.Time) Instance {
	return Instance{
		ID: i.ID.String(), Name: i.Name, Host: i.Host, PID: i.PID, Version: i.AppVersion, SDKVersion: i.Client,
		Labels: web.EmptyMapIfNil(i.Labels), Slots: i.Slots, Running: i.Running, State: instanceState(i, now),
		ConnectedAt: web.Instant(i.ConnectedAt), LastHeartbeatAt: web.Instant(i.LastSeenAt), StartedAt: web.Instant(i.StartedAt),
		BootID: i.BootID, Handlers: web.EmptyIfNil(i.Handlers), Build: i.Build,
		GoneAt: web.InstantOrNull(i.GoneAt), GoneReason: i.GoneReason, DrainedAt: web.InstantOrNull(i.DrainedAt), DrainedBy: i.DrainedBy,
	}
}

// instanceFor is instanceOf, and has the address too if the caller may know it.
func instanceFor(id auth.Identity, i *domain.Instance, now time.Time) Instance {
	out := instanceOf(*i, now)
	if id.May(domain.PermAdmin) {
		out.Address = i.Address
	}
	return out
}

func executorKind(e domain.Executor) string {
	if e.BuiltIn {
		return "built_in"
	}
	return "application"
}

func executorOf(e *store.ExecutorSummary) Executor {
	return Executor{
		ID: e.ID.String(), Name: e.Name, Description: e.Description, Kind: executorKind(e.Executor), InstancesOnline: e.Online,
		InstancesTotal: e.Total, Handlers: e.Handlers, State: e.State.String(), Note: e.Note, Version: e.Version, CreatedAt: web.Instant(e.CreatedAt),
	}
}

type listExecutorsInput struct {
	web.PageParams
	Q string `query:"q" maxLength:"128" doc:"Part of the name"`
}

type createExecutorInput struct {
	Body struct {
		Name        string `json:"name" minLength:"1" maxLength:"128" doc:"Its name, unique in the tenant; applications register with it"`
		Description string `json:"description,omitempty" maxLength:"4096" doc:"What it is for, for people"`
	}
}

type listInstancesInput struct {
	web.ShortPage
	ID          string `path:"id" doc:"Id of what the address names, a decimal string"`
	IncludeGone bool   `query:"includeGone" doc:"Also those that have left or died"`
}

// FleetInstance is an instance in the list of a tenant.
type FleetInstance struct {
	Lost         bool     `json:"lost" doc:"Its lease ran out, and no process of its name has come since"`
	ExecutorID   string   `json:"executorId" doc:"Id of its executor, a decimal string"`
	ExecutorName string   `json:"executorName" doc:"Name of its executor"`
	Instance     Instance `json:"instance" doc:"The process"`
}

type listFleetInput struct{ web.ShortPage }

// goneShown is how long an instance that has gone stays in the list of all.
const goneShown = 24 * time.Hour

func errExecutorName() error {
	return domain.Invalid("body.name", "must be letters, digits and . _ -, beginning with a letter or digit")
}

// maxInstances bounds what is listed of one executor's instances.
const maxInstances = 1000

// executors are made, changed and listed, each with its handlers and instances.
type executors struct {
	// fixed after construction
	store interface {
		store.Executors
		store.Catalogue
		store.Limits
		store.Jobs
	}
	newID           func() int64
	now             func() time.Time
	plan            store.PlanFunc
	readWeights     func(catalogue []byte) (map[string]int, error)
	beforeDisable   func(ctx context.Context) error
	disabledChanged func(ctx context.Context)
	// codeAllowed looks at declarations again that were refused.
	codeAllowed func(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID)
	log         *slog.Logger
}

func (xs *executors) register(server *web.Server) {
	xs.registerHandlers(server)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/executors", ID: "list-executors", Tag: "executors", Summary: "List executors by name",
		Description: "With how many of their instances are connected.",
	}, xs.listExecutors)
	web.Register(server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/executors", ID: "create-executor", Tag: "executors",
		Summary: "Make an executor", Description: "Its processes then need a join token.",
		Status: http.StatusCreated, Errors: []int{http.StatusConflict},
	}, xs.createExecutor)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/executors/{id}", ID: "get-executor", Large: true, Tag: "executors", Summary: "An executor and its handlers",
		Description: "With handlers, their schemas and builds, and the jobs declared in code that were refused.",
	}, xs.getExecutor)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/executors/{id}/instances", ID: "list-instances", Large: true, Tag: "executors",
		Summary: "List an executor's instances", Description: "At most 1,000, the newest first.",
	}, xs.listInstances)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/instances", ID: "list-all-instances", Large: true, Tag: "executors",
		Summary: "List the instances of all executors", Description: "With their hosts, and with their addresses for administrators. Lost ones come first, then those that are there, then others that have gone within a day. At most 1,000 that are there, and the last 1,000 that have gone.",
	}, xs.listFleet)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/instances/{id}", ID: "get-instance", Tag: "executors", Summary: "One instance",
		Description: "Also one that has left, as long as it is kept.",
	}, xs.getInstance)
	xs.registerEdits(server)
	xs.registerDocuments(server)
}

func (xs *executors) listExecutors(ctx context.Context, id auth.Identity, in *listExecutorsInput) (*web.PageOutput[Executor], error) {
	at, err := web.DecodeCursor(in.Cursor, "executors")
	if err != nil {
		return nil, err
	}
	rows, err := xs.store.ListExecutors(ctx, store.ListExecutorsParams{
		Tenant: id.Tenant, Within: id.Reach, Query: in.Q, After: at.Name, Limit: in.Limit + 1,
	})
	return web.RowsPage(rows, err, in.Limit, executorOf, func(last *store.ExecutorSummary) web.Cursor {
		return web.Cursor{List: "executors", Name: last.Name}
	})
}

func (xs *executors) createExecutor(ctx context.Context, id auth.Identity, in *createExecutorInput) (*struct{ Body Executor }, error) {
	if !domain.ExecutorNames.MatchString(in.Body.Name) {
		return nil, errExecutorName()
	}
	e := domain.Executor{
		ID: domain.ExecutorID(xs.newID()), TenantID: id.Tenant, Name: in.Body.Name,
		Description: in.Body.Description, Version: 1, CreatedAt: xs.now(),
	}
	if err := xs.store.CreateExecutor(ctx, e); err != nil {
		return nil, err
	}
	return &struct{ Body Executor }{executorOf(&store.ExecutorSummary{Executor: e})}, nil
}

func (xs *executors) getExecutor(ctx context.Context, id auth.Identity, in *web.IDInput) (*executorOutput, error) {
	e, err := web.ByID(ctx, id.Tenant, in.ID, xs.store.FindExecutor)
	if err != nil {
		return nil, err
	}
	instances, err := xs.living(ctx, e)
	if err != nil {
		return nil, err
	}
	handlers, err := xs.allHandlers(ctx, e, instances)
	if err != nil {
		return nil, err
	}
	out := ExecutorDetail{
		ID: e.ID.String(), Name: e.Name, Description: e.Description, Kind: executorKind(e), InstancesTotal: len(instances),
		State: e.State.String(), Note: e.Note, Version: e.Version, CreatedAt: web.Instant(e.CreatedAt), Handlers: handlers,
		CallbacksTo: web.EmptyIfNil(e.CallbacksTo),
	}
	aliases, err := xs.store.ListExecutorAliases(ctx, id.Tenant, e.ID)
	if err != nil {
		return nil, err
	}
	out.FormerNames = web.EmptyIfNil(aliases)
	refused, err := xs.store.ListRefusedDeclarations(ctx, id.Tenant, e.ID)
	if err != nil {
		return nil, err
	}
	out.RefusedDeclarations = make([]RefusedDeclaration, len(refused))
	for i, r := range refused {
		out.RefusedDeclarations[i] = RefusedDeclaration{
			Job: r.Name, Code: string(r.Code), Message: r.Message, Version: r.Version, RefusedAt: web.Instant(r.At),
		}
	}
	limits, err := xs.store.ListLimits(ctx, id.Tenant)
	if err != nil {
		return nil, err
	}
	for _, l := range limits {
		if l.Executor == e.ID {
			out.MaxRunning = l.Max
		}
	}
	now := xs.now()
	for _, i := range instances {
		if !i.Silent(now) {
			out.InstancesOnline++
		}
	}
	return &executorOutput{out}, nil
}

func (xs *executors) listInstances(ctx context.Context, id auth.Identity, in *listInstancesInput) (*web.PageOutput[Instance], error) {
	e, err := web.ByID(ctx, id.Tenant, in.ID, xs.store.FindExecutor)
	if err != nil {
		return nil, err
	}
	rows, err := xs.store.ListInstances(ctx, store.ListInstancesParams{
		Tenant: id.Tenant, Executor: e.ID, IncludeGone: in.IncludeGone, Limit: maxInstances, Brief: true,
	})
	if err != nil {
		return nil, err
	}
	now := xs.now()
	return web.SliceWithin(rows, in.ShortPage, "instances", func(page []domain.Instance) (int, error) {
		return xs.store.FillInstances(ctx, id.Tenant, page)
	}, func(i *domain.Instance) Instance { return instanceFor(id, i, now) })
}

func (xs *executors) listFleet(ctx context.Context, id auth.Identity, in *listFleetInput) (*web.PageOutput[FleetInstance], error) {
	now := xs.now()
	living, err := xs.store.ListInstances(ctx, store.ListInstancesParams{Tenant: id.Tenant, Within: id.Reach, Limit: maxInstances, Brief: true})
	if err != nil {
		return nil, err
	}
	gone, err := xs.store.ListInstances(ctx, store.ListInstancesParams{
		Tenant: id.Tenant, Within: id.Reach, IncludeGone: true, OnlyGone: true, GoneSince: now.Add(-goneShown), Limit: maxInstances, Brief: true,
	})
	if err != nil {
		return nil, err
	}
	executors, err := xs.store.ListExecutors(ctx, store.ListExecutorsParams{Tenant: id.Tenant, Within: id.Reach, Limit: maxInstances})
	names := map[domain.ExecutorID]string{}
	for i := range executors {
		names[executors[i].ID] = executors[i].Name
	}
	lost, others := domain.LostOf(gone, living)
	if err != nil {
		return nil, err
	}
	wasLost := map[domain.InstanceID]bool{}
	for i := range lost {
		wasLost[lost[i].ID] = true
	}
	return web.SliceWithin(slices.Concat(lost, living, others), in.ShortPage, "all-instances", func(page []domain.Instance) (int, error) {
		return xs.store.FillInstances(ctx, id.Tenant, page)
	}, func(i *domain.Instance) FleetInstance {
		return FleetInstance{wasLost[i.ID], i.Executor.String(), names[i.Executor], instanceFor(id, i, now)}
	})
}

func (xs *executors) getInstance(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body Instance }, error) {
	i, err := web.ByID(ctx, id.Tenant, in.ID, xs.store.FindInstance)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Instance }{instanceFor(id, &i, xs.now())}, nil
}
