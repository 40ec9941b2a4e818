package provision

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/document"
)

// Tenants is what this room asks of the store.
type Tenants interface {
	FindTenantByName(ctx context.Context, name string) (domain.Tenant, error)
}

// Try makes the documents on an empty cluster, which is thrown away. All mistakes of the file are
// an *Error. Afterwards all texts have their values.
func (d *Declaration) Try(ctx context.Context, empty *web.Server, tenants Tenants) error {
	kinds := empty.Kinds().List()
	d.fill(func(kind string) []string {
		for i := range kinds {
			if kinds[i].Name == kind {
				return kinds[i].Literal
			}
		}
		return nil
	})
	var found []mistake
	err := d.each(ctx, empty, tenants, true, func(o *one, out apply.Outcome) {
		if out.Err == nil {
			return
		}
		fields, _ := web.FieldsOf("", out.Err)
		for _, f := range fields {
			text := f.Message
			if v, is := f.Value.(string); is && v != "" && len(v) <= maxFound && !strings.Contains(text, v) && !strings.Contains(f.Location, "secret") {
				text += ": " + strconv.Quote(v)
			}
			if f.Hint != "" {
				text += "; " + f.Hint
			}
			found = append(found, mistake{o, trimDot(f.Location), text})
		}
	})
	if err != nil {
		return err
	}
	d.tell(found)
	return d.err()
}

// maxFound bounds the value that a mistake repeats, in bytes.
const maxFound = 60

// mistake is what the trial says of a document.
type mistake struct {
	o          *one
	path, text string
}

// tell notes the mistakes of a trial. Left out are those of fields that have one already, and those
// of references to documents that were not made because they are wrong themselves.
func (d *Declaration) tell(found []mistake) {
	known := map[string]bool{}
	for _, o := range d.documents {
		for _, path := range o.told {
			known[fmt.Sprintf("%p %s", o, path)] = true
		}
	}
	for _, m := range found {
		m.o.wrong = true
	}
	for _, m := range found {
		if !known[fmt.Sprintf("%p %s", m.o, m.path)] && !d.dangles(m) {
			d.fail(m.o, m.path, "%s", m.text)
		}
	}
}

// dangles reports whether a mistake is a reference to a document of the file that has mistakes.
func (d *Declaration) dangles(m mistake) bool {
	v := m.o.At(m.path)
	if v == nil || !strings.HasPrefix(m.text, "there is no ") {
		return false
	}
	if v.Kind == document.Object && v.Field("name") != nil {
		v = v.Field("name")
	}
	name, _, _ := strings.Cut(v.Text, "/") // a handler has its executor before it
	return slices.ContainsFunc(d.documents, func(o *one) bool {
		return o.wrong && o != m.o && (o.name == v.Text || o.name == name) && (o.tenant == "" || m.o.tenant == "" || o.tenant == m.o.tenant)
	})
}

func trimDot(path string) string {
	if path != "" && path[0] == '.' {
		return path[1:]
	}
	return path
}

// Apply makes the documents that are missing. Other differences are logged and left alone, since
// a node that runs its jobs is worth more.
func (d *Declaration) Apply(ctx context.Context, server *web.Server, tenants Tenants, log *slog.Logger) error {
	made := 0
	err := d.each(ctx, server, tenants, false, func(o *one, out apply.Outcome) {
		log := log.With("kind", o.kind, "name", o.name)
		if o.tenant != "" {
			log = log.With("tenant", o.tenant)
		}
		switch {
		case out.Err != nil:
			log.Warn("not as the provision file declares, and left so", "reason", out.Err.Error())
		case out.Made:
			made++
			log.Info("made")
		case len(out.Differs) > 0:
			log.Info("changed since the provision file made it, and left so", "fields", len(out.Differs), "field", out.Differs[0].Path)
		}
	})
	if err == nil {
		log.Info("what the provision file declares is there", "file", d.name, "declared", d.Summary(), "made", made)
	}
	return err
}

// each makes the documents and tells what became of them: of the cluster, the accounts, and then
// of each tenant. A trial leaves out documents that cannot be told apart, and the start those with
// mistakes.
func (d *Declaration) each(ctx context.Context, server *web.Server, tenants Tenants, trial bool, told func(*one, apply.Outcome)) error {
	groups := map[[2]string][]*one{}
	var order [][2]string
	for _, kind := range clusterKinds {
		order = append(order, [2]string{"", kind})
	}
	for _, o := range d.documents {
		group := [2]string{o.tenant, ""}
		if o.tenant == "" {
			group[1] = o.kind
		}
		if !slices.Contains(order, group) {
			order = append(order, group)
		}
		if !o.wrong || trial && !o.headless {
			groups[group] = append(groups[group], o)
		}
	}
	for _, group := range order {
		if err := d.group(ctx, server, tenants, group[0], groups[group], trial, told); err != nil {
			return err
		}
	}
	return nil
}

func (d *Declaration) group(ctx context.Context, server *web.Server, tenants Tenants, tenant string, of []*one, trial bool, told func(*one, apply.Outcome)) error {
	if len(of) == 0 {
		return nil
	}
	id := auth.Provisioning(0)
	if tenant != "" {
		t, err := tenants.FindTenantByName(ctx, tenant)
		switch {
		case domain.Is(err, domain.CodeNotFound) && trial: // its document is wrong, or there is none
			if t, err = standIn(ctx, server, tenants); err != nil {
				return err
			}
		case domain.Is(err, domain.CodeNotFound):
			for _, o := range of {
				told(o, apply.Outcome{Err: domain.Errorf(domain.CodeNotFound, "there is no tenant %q", tenant)})
			}
			return nil
		case err != nil:
			return fmt.Errorf("find tenant: %w", err)
		}
		id.Tenant = t.ID
	}
	raws := make([]json.RawMessage, len(of))
	for i, o := range of {
		var err error
		if raws[i], err = o.MarshalJSON(); err != nil {
			return err
		}
	}
	outcomes, err := apply.Make(ctx, server, id, raws, trial)
	if err != nil {
		return err
	}
	for i, o := range of {
		told(o, outcomes[i])
	}
	return nil
}

// standIn is an empty tenant in which the documents of a tenant are judged that could not be made.
func standIn(ctx context.Context, server *web.Server, tenants Tenants) (domain.Tenant, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("trial-%d", n)
		if _, err := tenants.FindTenantByName(ctx, name); !domain.Is(err, domain.CodeNotFound) {
			if err != nil {
				return domain.Tenant{}, fmt.Errorf("find tenant: %w", err)
			}
			continue
		}
		raw, err := json.Marshal(map[string]any{"kind": "Tenant", "name": name, "spec": map[string]any{}})
		if err != nil {
			return domain.Tenant{}, err
		}
		made, err := apply.Make(ctx, server, auth.Provisioning(0), []json.RawMessage{raw}, true)
		if err == nil {
			err = made[0].Err
		}
		if err != nil {
			return domain.Tenant{}, fmt.Errorf("try the provision file: %w", err)
		}
		return tenants.FindTenantByName(ctx, name)
	}
}

// Access is what an application needs to take part: a join token for its
// executor, and API keys that call its handlers and set timers for them. All are
// secrets.
type Access struct {
	JoinToken string `json:"joinToken"`
	APIKey    string `json:"apiKey"`
	TimerKey  string `json:"timerKey"`
	// Others are the join tokens of further executors, by their names.
	Others map[string]string `json:"others,omitempty"`
}

// Executors is what GiveAccess asks of the store.
type Executors interface {
	FindTenantByName(ctx context.Context, name string) (domain.Tenant, error)
	FindExecutorByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Executor, error)
	CreateExecutor(ctx context.Context, e domain.Executor) error
}

// GiveAccess makes the executors in the first tenant, unless they exist, and gives access to the
// first one, and join tokens to the others. It is for the owner of the process, such as the demo.
// Others use the API.
func GiveAccess(ctx context.Context, s Executors, a *auth.Service, newID func() int64, executor string, others ...string) (out Access, err error) {
	tenant, err := s.FindTenantByName(ctx, auth.FirstTenant)
	if err != nil {
		return Access{}, err
	}
	owner := auth.Identity{
		Kind: auth.KindUser, Tenant: tenant.ID, Name: "demo",
		Role: domain.RoleAdmin, Permissions: domain.RoleAdmin.Permissions(),
	}
	if out.JoinToken, err = letIn(ctx, s, a, owner, newID(), executor); err != nil {
		return Access{}, err
	}
	for _, name := range others {
		token, err := letIn(ctx, s, a, owner, newID(), name)
		if err != nil {
			return Access{}, err
		}
		if out.Others == nil {
			out.Others = map[string]string{}
		}
		out.Others[name] = token
	}
	scope := domain.Scope{Executors: []string{executor}}
	if _, out.APIKey, err = a.CreateAPIKey(ctx, owner, executor, domain.RoleCaller, time.Time{}, scope); err != nil {
		return Access{}, err
	}
	_, out.TimerKey, err = a.CreateAPIKey(ctx, owner, executor+" timers", domain.RoleTimer, time.Time{}, scope)
	return out, err
}

// letIn makes an executor, unless it exists, and a join token of it.
func letIn(ctx context.Context, s Executors, a *auth.Service, owner auth.Identity, id int64, name string) (token string, err error) {
	e, err := s.FindExecutorByName(ctx, owner.Tenant, name)
	if domain.Is(err, domain.CodeNotFound) {
		e = domain.Executor{ID: domain.ExecutorID(id), TenantID: owner.Tenant, Name: name, CreatedAt: time.Now().UTC()}
		err = s.CreateExecutor(ctx, e)
	}
	if err == nil {
		_, token, err = a.CreateJoinToken(ctx, owner, auth.JoinTokenParams{Executor: e.ID, Name: name})
	}
	return token, err
}
