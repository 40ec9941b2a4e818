package web

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Policy says who may call an operation. The zero value is none, and
// registering with it panics at construction.
type Policy struct {
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
	// bound: also for those whose role is bound to executors; the operation keeps to them.
	bound bool
}

var (
	// Public operations check nothing.
	Public = Policy{name: "public"}
	// SignedIn operations are for everybody with valid credentials, also for
	// users who have to change their password first.
	SignedIn = Policy{name: "authenticated", signedIn: true}
	// AccountOwner operations are about the own account, in whichever tenant.
	AccountOwner = Policy{name: "account_owner", signedIn: true, fresh: true, owner: true}
	// PlatformAdmin operations are for users who manage the platform itself.
	PlatformAdmin = Policy{name: "platform_admin", signedIn: true, fresh: true, platform: true}
)

// May is the policy for those who have a right in their tenant.
func May(p domain.Permission) Policy {
	return Policy{name: "permission:" + strings.Join(PermissionNames(p), "+"), signedIn: true, fresh: true, perm: p}
}

// extensions tell clients of the policy.
func (p Policy) extensions() map[string]any {
	out := map[string]any{"x-policy": p.name}
	if p.bound {
		out["x-in-executors"] = true
	}
	return out
}

// InExecutors admits callers whose role is bound to executors. The server checks the object in
// the path, and the handler keeps everything else to auth.Identity.Reach. An operation without
// it refuses such callers.
func (p Policy) InExecutors() Policy {
	p.bound = true
	return p
}

// PermissionNames are the names of the rights in p, as the API tells them; never nil.
func PermissionNames(p domain.Permission) []string {
	names := []string{}
	for i, name := range domain.PermissionNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// allow returns why the identity may not pass, or nil.
func (p Policy) allow(id auth.Identity) error {
	switch {
	case !p.signedIn:
		return nil
	case !id.Known():
		return domain.Errorf(domain.CodeUnauthenticated, "log in, or send an API key: Authorization: Bearer …")
	case p.fresh && id.MustChangePassword:
		return domain.Errorf(domain.CodeDenied, "change your password first (POST %s/auth/password)", Base)
	case p.platform && !id.PlatformAdmin:
		return domain.Errorf(domain.CodeDenied, "only a platform administrator may do this")
	case p.owner && id.Kind != auth.KindUser:
		return domain.Errorf(domain.CodeDenied, "only a user can do this, not an API key")
	case !id.May(p.perm):
		return domain.Errorf(domain.CodeDenied, "your role %q does not allow this (it needs %q)",
			id.Role, strings.Join(PermissionNames(p.perm&^id.Permissions), ", "))
	case p.perm != 0 && !p.bound && id.Scope.Bounded():
		return domain.Errorf(domain.CodeDenied, "your role %q is bound to %s and does not allow this (it needs %q in the whole tenant)",
			id.Role, boundTo(id.Scope), strings.Join(PermissionNames(p.perm), ", "))
	}
	return nil
}

// boundTo names what a scope has.
func boundTo(s domain.Scope) string {
	if len(s.Executors) == 0 {
		return "single handlers"
	}
	return "the executors " + strings.Join(s.Executors, ", ")
}

// Operation describes a route; method, path and id are needed.
type Operation struct {
	Method, Path string
	ID           string
	Tag          string
	Summary      string
	Description  string
	// Status of success; 0 = 200, or 204 without a body.
	Status int
	// Also says what other statuses of success mean; their body is the same.
	Also map[int]string
	// Errors lists the statuses beyond those every route has.
	Errors []int
	// MaxBody bounds the request's body, in bytes; 0 = MaxBody of the package.
	MaxBody int64
	// Cookies: the operation reads the refresh cookie, so other sites must not
	// be able to send it.
	Cookies bool
	// ReadsCookie: the refresh cookie is the credential.
	ReadsCookie bool
	// Large: the answer may have as many bytes as a page of a list has at most. Few of
	// them are built at once.
	Large bool
	// Computes marks an operation that may compute for more than some milliseconds. Few of
	// them do so at once. Its answer is sent when it is whole.
	Computes bool
	// Reaches marks an operation that waits for another host, such as a receiver or a broker. Few
	// of them do so at once.
	Reaches bool
	// Unaudited is why an operation that is no GET leaves no audit entry: it changes nothing, or
	// it writes data, such as timers. Empty: it leaves one.
	Unaudited string
	// Produces is the media type of a streamed answer; empty = JSON.
	Produces string
	// Request and Answer are the schemas of bodies that the handler has as JSON. nil: the
	// handler's types are the schemas.
	Request, Answer *huma.Schema
}

// Handler answers one operation. The identity is nobody on public routes.
type Handler[I, O any] func(ctx context.Context, id auth.Identity, in *I) (*O, error)

// Register adds an operation. It is the only way to add one, so that there is
// no operation without a policy. It is compiled for each pair of types, so that code that
// does not depend on them stands in describe and document.
func Register[I, O any](s *Server, p Policy, op Operation, h Handler[I, O]) {
	s.notePolicy(p, op.Method, op.Path)
	s.noteBounds(op)
	if op.Unaudited != "" {
		s.audit.unaudited[op.ID] = op.Unaudited
	}
	huma.Register(s.huma, s.describe(p, op), func(ctx context.Context, in *I) (*O, error) {
		if err := s.begin(ctx, op); err != nil {
			return nil, s.Problem(ctx, err)
		}
		var out *O
		err := s.audit.around(ctx, p, op, in, func(ctx context.Context) (err error) {
			out, err = h(ctx, identityOf(ctx), in)
			return err
		})
		if err == nil && op.Large {
			err = s.compute(ctx) // to be written as JSON
		}
		if err != nil {
			return nil, s.Problem(ctx, err)
		}
		return out, nil
	})
	s.document(op)
}

// noteBounds keeps what bounds an operation that computes, reaches other hosts or has a large
// answer.
func (s *Server) noteBounds(op Operation) {
	var list []string
	for _, bound := range []struct {
		is   bool
		name string
	}{{op.Computes, "computes"}, {op.Reaches, "reaches"}, {op.Large, "large"}} {
		if bound.is {
			list = append(list, bound.name)
		}
	}
	if len(list) > 0 {
		s.bounds[op.ID] = strings.Join(list, ", ")
	}
}

// Bounds says of operations by id what few requests at once may do: compute, reach other
// hosts, or read and build a large answer.
func (s *Server) Bounds() map[string]string { return maps.Clone(s.bounds) }

// begin is called when all of a request has been read.
func (s *Server) begin(ctx context.Context, op Operation) error {
	RequestOf(ctx).bodyIsRead()
	if op.Reaches {
		if err := s.reach(ctx); err != nil {
			return err
		}
	}
	if !op.Computes {
		return nil
	}
	return s.compute(ctx)
}

func (s *Server) describe(p Policy, op Operation) huma.Operation {
	described := huma.Operation{
		OperationID: op.ID, Method: op.Method, Path: op.Path, Tags: []string{op.Tag},
		Summary: op.Summary, Description: op.Description, DefaultStatus: op.Status,
		Errors: op.errorStatuses(p),
		// The body is bounded and checked before huma gets it. Without a bound of its own huma
		// copies it in one piece.
		MaxBodyBytes: -1, SkipValidateBody: true,
		Extensions:  p.extensions(),
		Middlewares: huma.Middlewares{s.authorize(p, op)},
	}
	described.Security = []map[string][]string{} // said, or clients take it for forgotten
	switch {
	case p.signedIn:
		described.Security = append(described.Security, map[string][]string{"bearer": {}})
	case op.ReadsCookie:
		described.Security = append(described.Security, map[string][]string{"refreshCookie": {}})
	}
	if op.Produces != "" {
		described.Responses = oneResponse(http.StatusOK, op.Produces, &huma.Schema{Type: huma.TypeString})
	}
	if op.Answer != nil {
		described.Responses = oneResponse(cmp.Or(op.Status, http.StatusOK), "application/json", op.Answer)
	}
	if op.Request != nil {
		described.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: op.Request}}}
	}
	return described
}

func oneResponse(status int, media string, schema *huma.Schema) map[string]*huma.Response {
	return map[string]*huma.Response{strconv.Itoa(status): {
		Description: http.StatusText(status), Content: map[string]*huma.MediaType{media: {Schema: schema}},
	}}
}

// document completes the description that huma wrote of an operation.
func (s *Server) document(op Operation) {
	item := s.huma.OpenAPI().Paths[op.Path]
	documented := map[string]*huma.Operation{
		http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
	}[op.Method]
	for _, r := range documented.Responses {
		for _, h := range r.Headers { // huma describes the schema only
			h.Description = h.Schema.Description
		}
	}
	if op.held() && op.Method == http.MethodGet {
		describeTags(documented)
	}
	if body := documented.RequestBody; body != nil {
		s.bodies[op.ID] = body.Content["application/json"].Schema
	}
	for status, meaning := range op.Also {
		same := *documented.Responses[strconv.Itoa(documented.DefaultStatus)]
		same.Description = meaning
		documented.Responses[strconv.Itoa(status)] = &same
	}
}

func (op Operation) errorStatuses(p Policy) []int {
	list := append([]int{http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusServiceUnavailable}, op.Errors...)
	if p.signedIn {
		list = append(list, http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest)
	}
	if op.Cookies {
		list = append(list, http.StatusForbidden)
	}
	if strings.Contains(op.Path, "{") {
		list = append(list, http.StatusNotFound)
	}
	if hasBody(op.Method) {
		list = append(list, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	return list
}

func (op Operation) maxBody(p Policy) int64 {
	if !p.signedIn {
		return publicBody
	}
	return cmp.Or(op.MaxBody, MaxBody)
}

// held tells whether answers are held back until they are whole.
func (op Operation) held() bool {
	return op.Produces == "" && (op.Method == http.MethodGet || op.Computes)
}

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

// Plain adds a route outside the OpenAPI document.
func (s *Server) Plain(p Policy, method, path string, h gin.HandlerFunc) {
	s.notePolicy(p, method, path)
	s.engine.Handle(method, path, func(c *gin.Context) {
		id, err := s.identify(c, p)
		if err == nil {
			err = p.allow(id)
		}
		if err != nil {
			s.WriteProblem(c, s.Problem(c.Request.Context(), err))
			return
		}
		h(c)
	})
}

func (s *Server) notePolicy(p Policy, method, path string) {
	if p.name == "" {
		panic("api: " + method + " " + path + " has no policy")
	}
	s.policies[method+" "+path] = p
}

// authorize is the middleware that applies a policy, before anything of the
// request's body is read.
func (s *Server) authorize(p Policy, op Operation) func(huma.Context, func(huma.Context)) {
	reach := reachOf(p, op)
	return func(ctx huma.Context, next func(huma.Context)) {
		c := humagin.Unwrap(ctx)
		if op.Cookies {
			if err := s.origins.Check(c.Request); err != nil {
				s.WriteProblem(c, s.Problem(ctx.Context(), domain.Errorf(domain.CodeDenied, "requests from other sites are refused here")))
				return
			}
		}
		if c.Request.ContentLength > op.maxBody(p) && hasBody(c.Request.Method) {
			s.WriteProblem(c, s.Problem(ctx.Context(), errBodyTooLarge(op.maxBody(p))))
			return
		}
		RequestOf(ctx.Context()).params = c.Params
		id, err := s.identify(c, p)
		if err == nil {
			err = p.allow(id)
		}
		if err != nil {
			s.audit.refuse(ctx.Context(), p, op, id, "", err)
		}
		if err == nil {
			err = checkQuery(c.Request.URL.RawQuery)
		}
		if err == nil {
			err = s.inReach(ctx.Context(), id, reach, c.Params)
		}
		if err != nil {
			s.WriteProblem(c, s.Problem(ctx.Context(), err))
			return
		}
		if id.Known() {
			err = s.rates.take(ctx.Context(), id, op.operates(p))
		}
		if err != nil {
			s.WriteProblem(c, s.Problem(ctx.Context(), err))
			return
		}
		if id.Known() && op.takesLong(c.Request.URL.Query()) {
			end, err := s.waits.begin(id)
			if err != nil {
				s.WriteProblem(c, s.Problem(ctx.Context(), err))
				return
			}
			defer end()
		}
		defer RequestOf(ctx.Context()).stopComputing()
		defer RequestOf(ctx.Context()).stopReaching()
		defer RequestOf(ctx.Context()).answerIsRead()
		if hasBody(c.Request.Method) {
			done, err := s.readOperation(ctx, c, op, p, id)
			if err != nil {
				s.WriteProblem(c, s.Problem(ctx.Context(), err))
				return
			}
			defer done()
			if op.takesLong(c.Request.URL.Query()) {
				RequestOf(ctx.Context()).release = done // what waits for a run holds no share
			}
		}
		RequestOf(ctx.Context()).allowed = func() error {
			now, err := s.identify(c, p)
			if err != nil {
				return err
			}
			return p.allow(now)
		}
		ctx = huma.WithValue(ctx, identityKey{}, id)
		done, err := s.answerShare(ctx.Context(), c, op, id)
		if err != nil {
			s.WriteProblem(c, s.Problem(ctx.Context(), err))
			return
		}
		defer done()
		if op.held() {
			s.held(c, done, func() { next(ctx) })
		} else {
			next(ctx)
		}
	}
}

// answerShare takes the share of the budget that an answer needs. A stream holds it until it
// has been read, and a large answer while it is built.
func (s *Server) answerShare(ctx context.Context, c *gin.Context, op Operation, id auth.Identity) (done func(), err error) {
	who := ownerOf(id, RequestOf(ctx).IP)
	switch {
	case op.Produces != "":
		return s.budgets.sending.take(ctx, who, largeAnswer)
	case op.Large && !op.takesLong(c.Request.URL.Query()):
		return s.budgets.answers.take(ctx, who, largeAnswer)
	}
	return func() {}, nil
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
			if !utf8.ValidString(v) || domain.HasControl(v) {
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
func (s *Server) identify(c *gin.Context, p Policy) (auth.Identity, error) {
	if !p.signedIn {
		return auth.Identity{}, nil
	}
	scheme, bearer, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || bearer == "" {
		return auth.Identity{}, nil
	}
	RequestOf(c.Request.Context()).bearer = true
	id, err := s.options.Authenticate(c.Request.Context(), strings.TrimSpace(bearer), RequestOf(c.Request.Context()).IP)
	for agent, via := range s.via {
		if strings.HasPrefix(c.GetHeader("User-Agent"), agent) {
			id.Via = via
		}
	}
	if err == nil {
		RequestOf(c.Request.Context()).actor = id
	}
	return id, err
}

// Via names the way of requests whose User-Agent begins with agent. It is said beside the
// name of the person who answers for them, and gives and takes no right.
func (s *Server) Via(agent, via string) {
	s.via[agent] = via
}
