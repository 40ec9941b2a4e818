package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// ScriptPolicy is what agents may do for a tenant. By default it is nothing.
type ScriptPolicy struct {
	Revision  int64    `json:"revision" doc:"0: nobody has decided yet"`
	Languages []string `json:"languages" enum:"shell,python,node,php,powershell" doc:"Scripts that may be written and run"`
	HTTP      bool     `json:"http" doc:"Whether jobs may make HTTP calls through agents"`
	Note      string   `json:"note" doc:"Why, as whoever set it said; empty: not said"`
	CreatedAt *string  `json:"createdAt" format:"date-time" doc:"When it was set; null: nobody has decided yet"`
	CreatedBy string   `json:"createdBy" doc:"Who set it; empty: nobody yet"`
}

// ScriptPolicyWrite replaces a policy.
type ScriptPolicyWrite struct {
	Languages []string `json:"languages,omitempty" maxItems:"5" enum:"shell,python,node,php,powershell" doc:"Languages whose scripts may be written and run; default: none"`
	HTTP      bool     `json:"http,omitempty" doc:"Whether jobs may make HTTP calls through agents; default false"`
	Note      string   `json:"note,omitempty" maxLength:"1024" doc:"Why; kept with the policy"`
}

// ScriptKey signs scripts.
type ScriptKey struct {
	PublicKey string `json:"publicKey" doc:"Ed25519, base64; what carillon agent --script-key takes"`
}

func scriptPolicyOf(p domain.ScriptPolicy) ScriptPolicy {
	return ScriptPolicy{
		Revision: p.Revision, Languages: emptyIfNil(p.Languages), HTTP: p.HTTP, Note: p.Note,
		CreatedAt: instantOrNull(p.CreatedAt), CreatedBy: p.CreatedBy,
	}
}

func (a *API) registerScriptPolicy() {
	register(a, may(domain.PermRead), operation{
		method: http.MethodGet, path: base + "/script-policy", id: "get-script-policy", tag: "scripts",
		summary:     "What agents may do for the tenant",
		description: "The newest decision; without one nothing is allowed.",
	}, func(ctx context.Context, id auth.Identity, _ *struct{}) (*struct{ Body ScriptPolicy }, error) {
		p, err := a.deps.Store.FindScriptPolicy(ctx, id.Tenant)
		return &struct{ Body ScriptPolicy }{scriptPolicyOf(p)}, err
	})
	register(a, may(domain.PermRead), operation{
		method: http.MethodGet, path: base + "/script-policy/history", id: "list-script-policies", tag: "scripts",
		summary:     "Who allowed what when, newest first",
		description: "Each decision with who took it and why.",
	}, func(ctx context.Context, id auth.Identity, in *struct{ ShortPage }) (*pageOutput[ScriptPolicy], error) {
		rows, err := a.deps.Store.ListScriptPolicies(ctx, id.Tenant, maxRevisions)
		if err != nil {
			return nil, err
		}
		items := make([]ScriptPolicy, 0, len(rows))
		for _, p := range rows {
			items = append(items, scriptPolicyOf(p))
		}
		return slicePage(items, in.ShortPage, "script-policies")
	})
	register(a, platformAdmin, operation{
		method: http.MethodPut, path: base + "/script-policy", id: "set-script-policy", tag: "scripts",
		summary:     "Say what agents may do for the tenant",
		description: "For the tenant of the session. What is not allowed any more fails with that reason when its next run starts.",
		errors:      []int{http.StatusConflict},
	}, a.setScriptPolicy)
	register(a, may(domain.PermRead), operation{
		method: http.MethodGet, path: base + "/script-key", id: "get-script-key", tag: "scripts",
		summary: "The key that signs scripts", description: "An agent that knows it runs nothing that was not written through this API.",
	}, func(context.Context, auth.Identity, *struct{}) (*struct{ Body ScriptKey }, error) {
		return &struct{ Body ScriptKey }{ScriptKey{base64.StdEncoding.EncodeToString(a.deps.ScriptKey)}}, nil
	})
}

func (a *API) setScriptPolicy(ctx context.Context, id auth.Identity, in *struct{ Body ScriptPolicyWrite }) (*struct{ Body ScriptPolicy }, error) {
	var languages []string
	for _, name := range domain.ScriptLanguages { // each once, in one order
		if slices.Contains(in.Body.Languages, name) {
			languages = append(languages, name)
		}
	}
	note := strings.TrimSpace(in.Body.Note)
	if hasControl(strings.ReplaceAll(note, "\n", " ")) {
		return nil, domain.Invalid("body.note", "must not contain control characters")
	}
	p, err := a.deps.Store.SetScriptPolicy(ctx, domain.ScriptPolicy{
		TenantID: id.Tenant, Languages: languages, HTTP: in.Body.HTTP, Note: note, CreatedBy: id.Actor(),
	})
	if err != nil {
		return nil, err
	}
	a.log.Warn("script policy changed", "tenant_id", id.Tenant, "languages", languages, "http", p.HTTP, "revision", p.Revision, "by", id.Actor())
	return &struct{ Body ScriptPolicy }{scriptPolicyOf(p)}, nil
}
