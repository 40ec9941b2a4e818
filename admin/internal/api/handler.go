package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Handler is one entry of an executor's catalogue. It stays when no instance
// is connected.
type Handler struct {
	Name            string           `json:"name" doc:"Its name, unique in the executor"`
	Description     string           `json:"description" doc:"What it does, as the application says"`
	InputSchema     json.RawMessage  `json:"inputSchema" doc:"JSON schema, or null"`
	OutputSchema    json.RawMessage  `json:"outputSchema" doc:"JSON schema, or null"`
	Idempotent      bool             `json:"idempotent" doc:"May be started again when the outcome is unknown"`
	Weight          int              `json:"weight" doc:"Slots of its instance that a run takes, as the newest build that is present says; all of them where it has fewer"`
	InstancesOnline int              `json:"instancesOnline" doc:"Connected instances that have it"`
	FirstSeenAt     string           `json:"firstSeenAt" format:"date-time" doc:"When an instance registered it first"`
	LastSeenAt      string           `json:"lastSeenAt" format:"date-time" doc:"When an instance registered it last"`
	Versions        []HandlerVersion `json:"versions" doc:"Builds of the application that have it, the newest first; 20 at most"`
}

// HandlerVersion is one build of the application that has a handler.
type HandlerVersion struct {
	Version         string `json:"version" doc:"The application's; may be empty"`
	Build           string `json:"build" doc:"Digest of what it registers"`
	Generation      int64  `json:"generation,omitempty" doc:"As the application says"`
	InForce         bool   `json:"inForce" doc:"It is present: an instance lives, or left less than a minute ago"`
	InstancesOnline int    `json:"instancesOnline" doc:"Connected instances of this build"`
	FirstSeenAt     string `json:"firstSeenAt" format:"date-time" doc:"When an instance of it registered first"`
	LastSeenAt      string `json:"lastSeenAt" format:"date-time" doc:"When an instance of it registered last"`
}

type listHandlersInput struct {
	web.ShortPage
	ID string `path:"id" doc:"Id of what the address names, a decimal string"`
}

func (xs *executors) registerHandlers(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/executors/{id}/handlers", ID: "list-handlers", Large: true, Tag: "executors",
		Summary: "List an executor's handlers", Description: "Everything that its instances have registered, also when none is connected: schema, versions of the application that have it, instances that have it now.",
	}, xs.listHandlers)
}

func (xs *executors) listHandlers(ctx context.Context, id auth.Identity, in *listHandlersInput) (*web.PageOutput[Handler], error) {
	e, err := web.ByID(ctx, id.Tenant, in.ID, xs.store.FindExecutor)
	if err != nil {
		return nil, err
	}
	instances, err := xs.living(ctx, e)
	if err != nil {
		return nil, err
	}
	at, err := web.DecodeCursor(in.Cursor, "handlers")
	if err != nil {
		return nil, err
	}
	page, err := xs.store.ListHandlers(ctx, store.ListHandlersParams{
		Tenant: e.TenantID, Executor: e.ID, After: at.Name, Limit: in.Limit, Bytes: domain.MaxPageBytes,
	})
	if err != nil {
		return nil, err
	}
	items, err := xs.handlers(ctx, e, instances, page.Items)
	return web.StoredPage(items, page.More, err, func(h *Handler) Handler { return *h }, func(last *Handler) web.Cursor {
		return web.Cursor{List: "handlers", Name: last.Name}
	})
}

// allHandlers are those of an executor, store.MaxHandlers at most, without schemas once
// those before have domain.MaxPageBytes.
func (xs *executors) allHandlers(ctx context.Context, e domain.Executor, instances []domain.Instance) ([]Handler, error) {
	p := store.ListHandlersParams{Tenant: e.TenantID, Executor: e.ID, Limit: store.MaxHandlers, Bytes: domain.MaxPageBytes}
	page, err := xs.store.ListHandlers(ctx, p)
	if err != nil {
		return nil, err
	}
	rows := page.Items
	if page.More && len(rows) > 0 {
		p.After, p.Limit, p.Bytes, p.NoSchemas = rows[len(rows)-1].Name, p.Limit-len(rows), 0, true
		if page, err = xs.store.ListHandlers(ctx, p); err != nil {
			return nil, err
		}
		rows = append(rows, page.Items...)
	}
	return xs.handlers(ctx, e, instances, rows)
}

// living lists an executor's instances that have not gone, without their handlers.
func (xs *executors) living(ctx context.Context, e domain.Executor) ([]domain.Instance, error) {
	return xs.store.ListInstances(ctx, store.ListInstancesParams{Tenant: e.TenantID, Executor: e.ID, Limit: maxInstances, Brief: true})
}

// visitInstances calls visit for instances that were listed with Brief, with their labels and
// handlers. The handlers of about domain.MaxPageBytes are in memory at once.
func visitInstances(ctx context.Context, from store.Executors, tenant domain.TenantID, list []domain.Instance, visit func(*domain.Instance)) error {
	for len(list) > 0 {
		n, err := from.FillInstances(ctx, tenant, list)
		if err != nil {
			return err
		}
		for i := range n {
			visit(&list[i])
		}
		list = list[n:]
	}
	return nil
}

// shownVersions is how many builds are shown of a handler: with store.MaxHandlers times
// store.MaxBuilds an answer would have 80 MB.
const shownVersions = 20

// handlers puts handlers together with the builds and the instances that have them.
func (xs *executors) handlers(ctx context.Context, e domain.Executor, instances []domain.Instance, rows []domain.Handler) ([]Handler, error) {
	builds, err := xs.store.ListBuilds(ctx, e.TenantID, e.ID)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(builds, func(x, y domain.Build) int { return domain.CompareBuilds(&y, &x) })
	of := make(map[string][]*domain.Build, len(rows))
	for _, h := range rows {
		of[h.Name] = nil
	}
	for i := range builds {
		for _, name := range builds[i].Handlers {
			if has, asked := of[name]; asked {
				of[name] = append(has, &builds[i])
			}
		}
	}
	weights, err := xs.weights(ctx, e, of)
	if err != nil {
		return nil, err
	}
	count, seen, err := xs.onlineHandlers(ctx, e, instances)
	if err != nil {
		return nil, err
	}
	out := make([]Handler, 0, len(rows))
	for _, h := range rows {
		last := h.LastSeenAt
		if s := seen[h.Name]; s.After(last) {
			last = s
		}
		item := Handler{
			Name: h.Name, Description: h.Description, InputSchema: web.RawOrNull(h.InputSchema), OutputSchema: web.RawOrNull(h.OutputSchema),
			Idempotent: h.Idempotent, Weight: max(1, weights[h.Name]), InstancesOnline: count[h.Name], FirstSeenAt: web.Instant(h.FirstSeenAt), LastSeenAt: web.Instant(last),
			Versions: []HandlerVersion{},
		}
		for _, b := range of[h.Name][:min(len(of[h.Name]), shownVersions)] {
			item.Versions = append(item.Versions, HandlerVersion{
				Version: b.Version, Build: b.Digest, Generation: b.Generation, InForce: b.Present, InstancesOnline: b.Instances,
				FirstSeenAt: web.Instant(b.FirstSeenAt), LastSeenAt: web.Instant(b.LastSeenAt),
			})
		}
		out = append(out, item)
	}
	return out, nil
}

// weights are what the build says that each handler is of: the newest present
// one that has it, else the newest. of has the builds of each, the newest first. A handler
// that no build is known of has none. One catalogue at a time is in memory.
func (xs *executors) weights(ctx context.Context, e domain.Executor, of map[string][]*domain.Build) (map[string]int, error) {
	byBuild := map[string][]string{}
	for name, builds := range of {
		if len(builds) == 0 {
			continue
		}
		b := builds[max(0, slices.IndexFunc(builds, func(b *domain.Build) bool { return b.Present }))]
		byBuild[b.Digest] = append(byBuild[b.Digest], name)
	}
	out := map[string]int{}
	for digest, names := range byBuild {
		catalogues, err := xs.store.ReadCatalogues(ctx, e.TenantID, e.ID, []string{digest})
		if err != nil {
			return nil, err
		}
		weights, err := xs.readWeights(catalogues[digest])
		if err != nil {
			return nil, fmt.Errorf("read catalogue of build %s: %w", digest, err)
		}
		for _, name := range names {
			out[name] = weights[name]
		}
	}
	return out, nil
}

// onlineHandlers counts, by handler, the instances that are heard, and says when
// the last one was.
func (xs *executors) onlineHandlers(ctx context.Context, e domain.Executor, instances []domain.Instance) (count map[string]int, seen map[string]time.Time, err error) {
	count, seen = map[string]int{}, map[string]time.Time{}
	now := xs.now()
	err = visitInstances(ctx, xs.store, e.TenantID, instances, func(i *domain.Instance) {
		if i.Silent(now) {
			return
		}
		for _, name := range i.Handlers {
			count[name]++
			if i.LastSeenAt.After(seen[name]) {
				seen[name] = i.LastSeenAt
			}
		}
		i.Handlers = nil
	})
	return count, seen, err
}
