package script

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource/script"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// ScriptUse is the script that a job runs.
type ScriptUse struct {
	ID       string   `json:"id" doc:"Id of the script"`
	Revision *int64   `json:"revision" doc:"Version of the script. null: whichever is the newest when a run starts"`
	Args     []string `json:"args" doc:"May hold {{run.shardIndex}}, {{run.id}}, {{input.key}} and the like"`
}

// ScriptChoice names the script that a job is to run, by id or by name.
type ScriptChoice struct {
	ID       string   `json:"id,omitempty" doc:"Either this"`
	Name     string   `json:"name,omitempty" doc:"Or this; ignored beside an id"`
	Revision *int64   `json:"revision,omitempty" minimum:"1" nullable:"true" doc:"Version of the script. Default: whichever is the newest when a run starts"`
	Args     []string `json:"args,omitempty" maxItems:"64" doc:"May hold {{run.shardIndex}}, {{run.id}}, {{input.key}} and the like"`
}

// UseOf is the script that a job runs; nil: none.
func UseOf(u *domain.ScriptUse) *ScriptUse {
	if u == nil {
		return nil
	}
	out := &ScriptUse{ID: u.ID.String(), Args: web.EmptyIfNil(u.Args)}
	if u.Revision != 0 {
		out.Revision = &u.Revision
	}
	return out
}

// Choose finds the script that a job names, and refuses what the
// tenant's policy does not allow.
func Choose(ctx context.Context, from store.Scripts, tenant domain.TenantID, r *web.Reader, c *ScriptChoice, spec *domain.JobSpec) error {
	if !domain.IsAgentHandler(spec.Handler) && c == nil {
		return nil
	}
	if err := script.Allowed(ctx, from, tenant, spec.Handler); err != nil || c == nil {
		return err
	}
	var found domain.Script
	var err error
	location, value := "body.script.id", c.ID
	switch {
	case c.ID != "":
		found, err = web.ByID(ctx, tenant, c.ID, func(ctx context.Context, tenant domain.TenantID, id domain.ScriptID) (domain.Script, error) {
			return from.FindScript(ctx, tenant, domain.ScriptUse{ID: id})
		})
	case c.Name != "":
		location, value = "body.script.name", c.Name
		found, err = from.FindScriptByName(ctx, tenant, c.Name)
	default:
		r.Fail("body.script", nil, "needs an id or a name")
		return nil
	}
	if domain.Is(err, domain.CodeNotFound) {
		r.Fail(location, value, "there is no such script")
		return nil
	} else if err != nil {
		return err
	}
	use := domain.ScriptUse{ID: found.ID, Args: c.Args}
	if c.Revision != nil {
		use.Revision = *c.Revision
	}
	if use.Revision > found.Version {
		r.Fail("body.script.revision", use.Revision, "the script %q is at version %d", found.Name, found.Version)
	}
	if domain.ScriptHandlerPrefix+found.Language != spec.Handler && strings.HasPrefix(spec.Handler, domain.ScriptHandlerPrefix) {
		r.Fail("body.handler", spec.Handler, "the script %q is in %s: its handler is %s%s", found.Name, found.Language, domain.ScriptHandlerPrefix, found.Language)
	}
	spec.Script = &use
	return nil
}

// ScriptPolicy is what agents may do for a tenant. By default it is nothing.
type ScriptPolicy struct {
	Revision  int64                   `json:"revision" doc:"0: nobody has decided yet"`
	Languages []string                `json:"languages" enum:"shell,python,node,php,powershell" doc:"Scripts that may be written and run"`
	HTTP      bool                    `json:"http" doc:"Whether jobs may make HTTP calls through agents"`
	Callbacks *builtin.CallbackPolicy `json:"callbacks" doc:"What the admin nodes themselves may call, by the executor carillon; null: nothing"`
	Note      string                  `json:"note" doc:"Why, as whoever set it said; empty: not said"`
	CreatedAt *string                 `json:"createdAt" format:"date-time" doc:"When it was set; null: nobody has decided yet"`
	CreatedBy string                  `json:"createdBy" doc:"Who set it; empty: nobody yet"`
}

// ScriptPolicyWrite replaces a policy.
type ScriptPolicyWrite struct {
	Languages []string                     `json:"languages,omitempty" maxItems:"5" enum:"shell,python,node,php,powershell" doc:"Languages whose scripts may be written and run; default: none"`
	HTTP      bool                         `json:"http,omitempty" doc:"Whether jobs may make HTTP calls through agents; default false"`
	Callbacks *builtin.CallbackPolicyWrite `json:"callbacks,omitempty" doc:"What the admin nodes themselves may call, by the executor carillon; default: as it is"`
	Note      string                       `json:"note,omitempty" maxLength:"1024" doc:"Why; kept with the policy"`
}

// ScriptKey signs scripts.
type ScriptKey struct {
	PublicKey string `json:"publicKey" doc:"Ed25519, base64; what carillon agent --script-key takes"`
}

func scriptPolicyOf(p *domain.ScriptPolicy) ScriptPolicy {
	return ScriptPolicy{
		Revision: p.Revision, Languages: web.EmptyIfNil(p.Languages), HTTP: p.HTTP, Callbacks: builtin.PolicyOf(p.Callbacks), Note: p.Note,
		CreatedAt: web.InstantOrNull(p.CreatedAt), CreatedBy: p.CreatedBy,
	}
}

func (a *api) registerScriptPolicy() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/script-policy", ID: "get-script-policy", Tag: "scripts",
		Summary:     "What agents may do for the tenant",
		Description: "The newest decision; without one nothing is allowed.",
	}, func(ctx context.Context, id auth.Identity, _ *struct{}) (*struct{ Body ScriptPolicy }, error) {
		p, err := a.deps.Store.FindScriptPolicy(ctx, id.Tenant)
		return &struct{ Body ScriptPolicy }{scriptPolicyOf(&p)}, err
	})
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/script-policy/history", ID: "list-script-policies", Tag: "scripts",
		Summary:     "Who allowed what when, newest first",
		Description: "Each decision with who took it and why.",
	}, func(ctx context.Context, id auth.Identity, in *struct{ web.ShortPage }) (*web.PageOutput[ScriptPolicy], error) {
		rows, err := a.deps.Store.ListScriptPolicies(ctx, id.Tenant, web.MaxListed)
		return web.ListPage(rows, err, scriptPolicyOf, in.ShortPage, "script-policies")
	})
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodPut, Path: web.Base + "/script-policy", ID: "set-script-policy", Tag: "scripts",
		Summary:     "Say what agents may do for the tenant",
		Description: "For the tenant of the session. What is not allowed any more fails with that reason when its next run starts.",
		Errors:      []int{http.StatusConflict},
	}, a.setScriptPolicy)
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/script-key", ID: "get-script-key", Tag: "scripts",
		Summary: "The key that signs scripts", Description: "An agent that knows it runs nothing that was not written through this API.",
	}, func(context.Context, auth.Identity, *struct{}) (*struct{ Body ScriptKey }, error) {
		return &struct{ Body ScriptKey }{ScriptKey{base64.StdEncoding.EncodeToString(a.deps.ScriptKey)}}, nil
	})
}

func (a *api) setScriptPolicy(ctx context.Context, id auth.Identity, in *struct{ Body ScriptPolicyWrite }) (*struct{ Body ScriptPolicy }, error) {
	var languages []string
	for _, name := range domain.ScriptLanguages { // each once, in one order
		if slices.Contains(in.Body.Languages, name) {
			languages = append(languages, name)
		}
	}
	note := strings.TrimSpace(in.Body.Note)
	if domain.HasControl(strings.ReplaceAll(note, "\n", " ")) {
		return nil, domain.Invalid("body.note", "must not contain control characters")
	}
	callbacks, err := builtin.ReadPolicy(ctx, a.deps.Store, a.deps.Secrets, id.Tenant, in.Body.Callbacks)
	if err != nil {
		return nil, err
	}
	p, err := a.deps.Store.SetScriptPolicy(ctx, domain.ScriptPolicy{
		TenantID: id.Tenant, Languages: languages, HTTP: in.Body.HTTP, Callbacks: callbacks, Note: note, CreatedBy: id.Actor(),
	})
	if err != nil {
		return nil, err
	}
	a.deps.Log.Warn("script policy changed", "tenant_id", id.Tenant, "languages", languages, "http", p.HTTP, "callbacks", builtin.HostsOf(p.Callbacks), "revision", p.Revision, "by", id.Actor())
	if callbacks != nil {
		a.deps.Changed(ctx, id.Tenant)
	}
	return &struct{ Body ScriptPolicy }{scriptPolicyOf(&p)}, nil
}
