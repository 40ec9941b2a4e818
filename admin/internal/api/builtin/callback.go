package builtin

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/internal/httpcall"
)

// builtInWait bounds how long a change that the built-in executor goes by waits
// until it counts on this node.
const builtInWait = 5 * time.Second

// CallbackSecret signs callbacks.
type CallbackSecret struct {
	Secret string `json:"secret" doc:"The key of the HMAC, as the bytes of this text"`
	KeyID  string `json:"keyId" doc:"What Carillon-Key-Id says of it"`
}

// CallbackPolicy is what the admin nodes may call for a tenant.
type CallbackPolicy struct {
	Hosts      []string `json:"hosts" doc:"Whom: api.example.com, *.example.com or *, each with or without a port"`
	MaxTimeout string   `json:"maxTimeout" doc:"The longest that a call may take"`
	PerHost    int      `json:"perHost" doc:"Calls to one host that each node makes at a time"`
}

// CallbackPolicyWrite replaces one.
type CallbackPolicyWrite struct {
	Hosts      []string `json:"hosts" maxItems:"64" doc:"Whom: api.example.com, *.example.com or *, each with or without a port; none: callbacks are off"`
	MaxTimeout string   `json:"maxTimeout,omitempty" maxLength:"32" doc:"The longest that a call may take, up to 10m; default 30s"`
	PerHost    *int     `json:"perHost,omitempty" minimum:"1" maximum:"512" doc:"Calls to one host that each node makes at a time; default 32"`
	NewSecret  bool     `json:"newSecret,omitempty" doc:"Sign with a new secret from now on"`
}

func (a *api) registerCallbacks() {
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/callback-secret", ID: "get-callback-secret", Tag: "scripts",
		Summary:     "The secret that signs the tenant's callbacks",
		Description: "For those who receive them. It is made when callbacks are allowed for the first time; set-script-policy makes a new one.",
		Errors:      []int{http.StatusNotFound},
	}, func(ctx context.Context, id auth.Identity, _ *struct{}) (*struct{ Body CallbackSecret }, error) {
		sealed, err := a.deps.Store.FindCallbackSecret(ctx, id.Tenant)
		if err != nil {
			return nil, err
		}
		plain, err := a.deps.Secrets.Open(id.Tenant, secret.PurposeCallbacks, int64(id.Tenant), sealed)
		if err != nil {
			return nil, err
		}
		return &struct{ Body CallbackSecret }{CallbackSecret{string(plain), httpcall.KeyID(plain)}}, nil
	})
}

// PolicyOf is what the admin nodes may call, as the API tells it; nil: nothing.
func PolicyOf(p *domain.CallbackPolicy) *CallbackPolicy {
	if p == nil {
		return nil
	}
	return &CallbackPolicy{Hosts: p.Hosts, MaxTimeout: p.MaxTimeout.String(), PerHost: p.PerHost}
}

// HostsOf are those that a policy allows.
func HostsOf(p *domain.CallbackPolicy) []string {
	if p == nil {
		return nil
	}
	return p.Hosts
}

// ReadPolicy reads what is to be allowed; nil: as it is. A tenant that has no
// secret yet gets one.
func ReadPolicy(ctx context.Context, from store.Scripts, secrets web.Sealer, tenant domain.TenantID, w *CallbackPolicyWrite) (*domain.CallbackPolicy, error) {
	if w == nil {
		return nil, nil
	}
	var r web.Reader
	p := &domain.CallbackPolicy{
		Hosts: w.Hosts, MaxTimeout: r.Duration("body.callbacks.maxTimeout", w.MaxTimeout, domain.DefaultCallbackTimeout), PerHost: domain.DefaultCallbacksPerHost,
	}
	if w.PerHost != nil {
		p.PerHost = *w.PerHost
	}
	for _, host := range w.Hosts {
		if _, err := httpcall.ParseHost(host); err != nil {
			r.Fail("body.callbacks.hosts", host, "%v", err)
		}
	}
	if err := r.Add(domain.CheckCallbackPolicy(p)); err != nil {
		return nil, err
	}
	if err := r.Err(); err != nil || len(p.Hosts) == 0 && !w.NewSecret {
		return p, err
	}
	_, err := from.FindCallbackSecret(ctx, tenant)
	if err == nil && !w.NewSecret || err != nil && !domain.Is(err, domain.CodeNotFound) {
		return p, err
	}
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return nil, err
	}
	p.Secret, err = secrets.Seal(tenant, secret.PurposeCallbacks, int64(tenant), []byte(hex.EncodeToString(raw)))
	return p, err
}

// Within calls changed and bounds the wait for it.
func Within(changed func(context.Context, domain.TenantID)) func(context.Context, domain.TenantID) {
	return func(ctx context.Context, tenant domain.TenantID) {
		within, cancel := context.WithTimeout(ctx, builtInWait)
		defer cancel()
		changed(within, tenant)
	}
}

// CheckFunc says why an input is not one that a handler of the built-in executor
// would take. None at all is judged when it comes with a run.
type CheckFunc func(handler string, input []byte) error

// Inputs judges the inputs of one request: what they are judged by is read
// once.
func Inputs(ctx context.Context, from Store, handlers nodehandler.List, tenant domain.TenantID) CheckFunc {
	caller := sync.OnceValues(func() (*httpcall.Caller, error) { return callbackCaller(ctx, from, tenant) })
	checks := map[string]func(input []byte) error{} // by handler
	return func(handler string, input []byte) error {
		if handler == domain.CallbackHandler {
			c, err := caller()
			if err != nil || len(input) == 0 {
				return err
			}
			in, err := httpcall.Decode(input)
			if err == nil {
				err = c.Check(&in)
			}
			if err != nil {
				return domain.Invalid("body.input", "%v", err)
			}
			return nil
		}
		own, is := handlers.Find(handler)
		if !is || own.Inputs == nil || len(input) == 0 {
			return nil
		}
		if checks[handler] == nil {
			checks[handler] = own.Inputs(ctx, tenant)
		}
		return checks[handler](input)
	}
}

// callbackCaller knows what the tenant may call.
func callbackCaller(ctx context.Context, from store.Scripts, tenant domain.TenantID) (*httpcall.Caller, error) {
	policy, err := from.FindScriptPolicy(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if policy.Callbacks == nil {
		return nil, domain.Errorf(domain.CodePolicyRefused, "callbacks are off for this tenant; a platform administrator switches them on (carillon script policy)")
	}
	hosts, err := httpcall.ParseHosts(policy.Callbacks.Hosts)
	return &httpcall.Caller{Hosts: hosts, MaxTimeout: policy.Callbacks.MaxTimeout, Who: "a callback of this tenant", HostsBy: "carillon script policy"}, err
}
