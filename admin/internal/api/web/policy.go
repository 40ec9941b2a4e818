package web

import (
	"context"
	"net/url"
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
