package api

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// policy says who may call an operation. The zero value is none, and
// registering with it panics at construction.
type policy struct {
	name string
	// signedIn: somebody has to be known.
	signedIn bool
	// fresh: a user who must change the password may not.
	fresh bool
	perm  domain.Permission
	// platform: only platform admins.
	platform bool
	// owner: only the account's owner, not an API key.
	owner bool
}

var (
	// public operations check nothing.
	public = policy{name: "public"}
	// signedIn operations are for everybody with valid credentials, also for
	// users who have to change their password first.
	signedIn = policy{name: "authenticated", signedIn: true}
	// accountOwner operations are about the own account, in whichever tenant.
	accountOwner = policy{name: "account_owner", signedIn: true, fresh: true, owner: true}
	// platformAdmin operations are for users who manage the platform itself.
	platformAdmin = policy{name: "platform_admin", signedIn: true, fresh: true, platform: true}
)

// may is the policy for those who have a right in their tenant.
func may(p domain.Permission) policy {
	return policy{name: "permission:" + strings.Join(permissionNames(p), "+"), signedIn: true, fresh: true, perm: p}
}

func permissionNames(p domain.Permission) []string {
	names := []string{}
	for i, name := range domain.PermissionNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// allow returns why the identity may not pass, or nil.
func (p policy) allow(id auth.Identity) error {
	switch {
	case !p.signedIn:
		return nil
	case !id.Known():
		return domain.Errorf(domain.CodeUnauthenticated, "log in, or send an API key: Authorization: Bearer …")
	case p.fresh && id.MustChangePassword:
		return domain.Errorf(domain.CodeDenied, "change your password first (POST %s/auth/password)", base)
	case p.platform && !id.PlatformAdmin:
		return domain.Errorf(domain.CodeDenied, "only a platform administrator may do this")
	case p.owner && id.Kind != auth.KindUser:
		return domain.Errorf(domain.CodeDenied, "only a user can do this, not an API key")
	case !id.May(p.perm):
		return domain.Errorf(domain.CodeDenied, "your role %q does not allow this (it needs %q)",
			id.Role, strings.Join(permissionNames(p.perm&^id.Permissions), ", "))
	}
	return nil
}

// operation describes a route; method, path and id are needed.
type operation struct {
	method, path string
	id           string
	tag          string
	summary      string
	description  string
	// status of success; 0 = 200, or 204 without a body.
	status int
	// also says what other statuses of success mean; their body is the same.
	also map[int]string
	// errors lists the statuses beyond those every route has.
	errors []int
	// cookies: the operation reads the refresh cookie, so other sites must not
	// be able to send it.
	cookies bool
	// produces is the media type of a streamed answer; empty = JSON.
	produces string
}

// handler answers one operation. The identity is nobody on public routes.
type handler[I, O any] func(ctx context.Context, id auth.Identity, in *I) (*O, error)

// register adds an operation. It is the only way to add one, so that there is
// no operation without a policy.
func register[I, O any](a *API, p policy, op operation, h handler[I, O]) {
	a.notePolicy(p, op.method, op.path)
	described := huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Tags: []string{op.tag},
		Summary: op.summary, Description: op.description, DefaultStatus: op.status,
		Errors:       op.errorStatuses(p),
		MaxBodyBytes: maxBody + 1, // huma refuses a body as long as the limit
		Extensions:   map[string]any{"x-policy": p.name},
		Middlewares:  huma.Middlewares{a.authorize(p, op)},
	}
	described.Security = []map[string][]string{} // said, or clients take it for forgotten
	switch {
	case p.signedIn:
		described.Security = append(described.Security, map[string][]string{"bearer": {}})
	case reflect.TypeFor[I]() == reflect.TypeFor[refreshInput]():
		described.Security = append(described.Security, map[string][]string{"refreshCookie": {}})
	}
	if op.produces != "" {
		described.Responses = map[string]*huma.Response{"200": {
			Description: http.StatusText(http.StatusOK),
			Content:     map[string]*huma.MediaType{op.produces: {Schema: &huma.Schema{Type: huma.TypeString}}},
		}}
	}
	huma.Register(a.huma, described, func(ctx context.Context, in *I) (*O, error) {
		requestOf(ctx).bodyIsRead()
		out, err := h(ctx, identityOf(ctx), in)
		if err != nil {
			return nil, a.problem(ctx, err)
		}
		return out, nil
	})
	item := a.huma.OpenAPI().Paths[op.path]
	documented := map[string]*huma.Operation{
		http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
	}[op.method]
	for _, r := range documented.Responses {
		for _, h := range r.Headers { // huma describes the schema only
			h.Description = h.Schema.Description
		}
	}
	if op.held() {
		describeTags(documented)
	}
	for status, meaning := range op.also {
		same := *documented.Responses[strconv.Itoa(documented.DefaultStatus)]
		same.Description = meaning
		documented.Responses[strconv.Itoa(status)] = &same
	}
}

func (op operation) errorStatuses(p policy) []int {
	list := append([]int{http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusServiceUnavailable}, op.errors...)
	if p.signedIn {
		list = append(list, http.StatusUnauthorized, http.StatusForbidden)
	}
	if op.cookies {
		list = append(list, http.StatusForbidden)
	}
	if strings.Contains(op.path, "{") {
		list = append(list, http.StatusNotFound)
	}
	if hasBody(op.method) {
		list = append(list, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	return list
}

// held tells whether answers are held back, to be compressed or left out.
func (op operation) held() bool { return op.method == http.MethodGet && op.produces == "" }

// describeTags says that what has not changed is not sent again. Where ETag is a
// revision to edit, it says nothing of the rest of the answer.
func describeTags(op *huma.Operation) {
	whole := op.Responses["200"]
	if whole == nil || whole.Headers["ETag"] != nil {
		return
	}
	text := &huma.Schema{Type: huma.TypeString}
	if whole.Headers == nil {
		whole.Headers = map[string]*huma.Param{}
	}
	whole.Headers["ETag"] = &huma.Param{Description: "Names what the answer says, for If-None-Match", Schema: text}
	op.Responses["304"] = &huma.Response{Description: "The answer would be the one that If-None-Match names", Headers: map[string]*huma.Param{"ETag": {Description: "As given", Schema: text}}}
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: "If-None-Match", In: "header", Schema: text,
		Description: "ETag of an answer that the client has: 304 without a body if it is still the same",
	})
}

// hasBody tells the methods of which bodies are read.
func hasBody(method string) bool { return method != http.MethodGet && method != http.MethodDelete }

// plain adds a route outside the OpenAPI document.
func (a *API) plain(p policy, method, path string, h gin.HandlerFunc) {
	a.notePolicy(p, method, path)
	a.engine.Handle(method, path, func(c *gin.Context) {
		id, err := a.identify(c, p)
		if err == nil {
			err = p.allow(id)
		}
		if err != nil {
			a.writeProblem(c, a.problem(c.Request.Context(), err))
			return
		}
		h(c)
	})
}

func (a *API) notePolicy(p policy, method, path string) {
	if p.name == "" {
		panic("api: " + method + " " + path + " has no policy")
	}
	a.policies[method+" "+path] = p
}

// authorize is the middleware that applies a policy, before anything of the
// request's body is read.
func (a *API) authorize(p policy, op operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		c := humagin.Unwrap(ctx)
		if op.cookies {
			if err := a.origins.Check(c.Request); err != nil {
				a.writeProblem(c, a.problem(ctx.Context(), domain.Errorf(domain.CodeDenied, "requests from other sites are refused here")))
				return
			}
		}
		if c.Request.ContentLength > maxBody && hasBody(c.Request.Method) {
			a.writeProblem(c, a.problem(ctx.Context(), errBodyTooLarge()))
			return
		}
		id, err := a.identify(c, p)
		if err == nil {
			err = p.allow(id)
		}
		if err == nil {
			err = checkQuery(c.Request.URL.RawQuery)
		}
		if err != nil {
			a.writeProblem(c, a.problem(ctx.Context(), err))
			return
		}
		if id.Known() {
			err = a.rates.take(ctx.Context(), id, op.operates(p))
		}
		if err != nil {
			a.writeProblem(c, a.problem(ctx.Context(), err))
			return
		}
		if id.Known() && op.takesLong(c.Request.URL.Query()) {
			end, err := a.waits.begin(id)
			if err != nil {
				a.writeProblem(c, a.problem(ctx.Context(), err))
				return
			}
			defer end()
		}
		requestOf(ctx.Context()).readUntil = ctx.SetReadDeadline
		ctx = huma.WithValue(ctx, identityKey{}, id)
		if op.held() {
			held(c, func() { next(ctx) })
			return
		}
		next(ctx)
	}
}

// checkQuery refuses what net/url would pass over in silence (a semicolon, a
// bad escape), and bytes that are not text.
func checkQuery(raw string) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return domain.Invalid("query", "is not well-formed: %s", err)
	}
	for name, list := range values {
		for _, v := range list {
			if !utf8.ValidString(v) || hasControl(v) {
				return domain.Invalid("query."+name, "must be text without control characters")
			}
		}
		if len(list) > 1 {
			return domain.Invalid("query."+name, "is given more than once")
		}
	}
	return nil
}

type identityKey struct{}

func identityOf(ctx context.Context) auth.Identity {
	id, _ := ctx.Value(identityKey{}).(auth.Identity)
	return id
}

// identify reads the credentials, if the policy asks for any.
func (a *API) identify(c *gin.Context, p policy) (auth.Identity, error) {
	if !p.signedIn {
		return auth.Identity{}, nil
	}
	scheme, bearer, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || bearer == "" {
		return auth.Identity{}, nil
	}
	id, err := a.deps.Auth.Authenticate(c.Request.Context(), strings.TrimSpace(bearer), requestOf(c.Request.Context()).ip)
	if err == nil {
		requestOf(c.Request.Context()).actor = id
	}
	return id, err
}
