package api

import (
	"context"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// SessionUser is the person (or key) behind the credentials.
type SessionUser struct {
	ID                 string `json:"id" doc:"Id of the user, or of the API key"`
	Username           string `json:"username" doc:"Name of the user, or key: and the name of the key"`
	Role               string `json:"role" doc:"In the session's tenant: viewer, operator, editor, scripter or admin. API keys may also have caller, timer and manager, or several joined by +"`
	PlatformAdmin      bool   `json:"platformAdmin" doc:"May manage all tenants"`
	MustChangePassword bool   `json:"mustChangePassword" doc:"Until then only /me, /auth/password and /auth/logout answer"`
	// Executors is empty for the whole tenant.
	Executors []string `json:"executors" doc:"Names of the executors that the role is bound to; empty: the whole tenant"`
	// Preferences are empty for an API key.
	Preferences domain.Preferences `json:"preferences" doc:"What the user chose for the pages"`
}

// Login is a session's begin or renewal.
type Login struct {
	AccessToken string           `json:"accessToken" doc:"For Authorization: Bearer; keep it in memory only"`
	ExpiresAt   string           `json:"expiresAt" format:"date-time" doc:"When the access token ends; refresh before"`
	User        SessionUser      `json:"user" doc:"Who is logged in"`
	Tenant      access.TenantRef `json:"tenant" doc:"The tenant that the session is in"`
}

// Me is who asks.
type Me struct {
	User        SessionUser      `json:"user" doc:"The user, or the API key"`
	Tenant      access.TenantRef `json:"tenant" doc:"The tenant of the session, or of the key"`
	Tenants     []TenantWithRole `json:"tenants" doc:"Where the user may switch to"`
	Permissions []string         `json:"permissions" doc:"read, operate, edit, admin, script, call, timer"`
	Executors   []string         `json:"executors" doc:"Names of the executors that the role is bound to; empty: it is about the whole tenant, or about single handlers"`
	Kind        string           `json:"kind" enum:"user,api_key" doc:"Whether a user or an API key asks"`
	Maintenance []Maintenance    `json:"maintenance" doc:"What is on for the tenant, its executors and the cluster"`
}

// TenantWithRole is a membership.
type TenantWithRole struct {
	ID   string `json:"id" doc:"Id of the tenant, a decimal string"`
	Name string `json:"name" doc:"Its name"`
	Role string `json:"role" doc:"What the user, or the API key, may do there"`
}

type loginOutput struct {
	SetCookie string `header:"Set-Cookie" doc:"The refresh cookie"`
	Body      Login
}

type cookieOutput struct {
	SetCookie string `header:"Set-Cookie" doc:"The refresh cookie"`
}

// SecureCookies says when the refresh cookie is marked Secure, so that browsers
// send it over TLS only.
type SecureCookies string

const (
	// SecureCookiesAuto: when the request came over TLS, or a trusted proxy says
	// that it did. It is the default.
	SecureCookiesAuto   SecureCookies = "auto"
	SecureCookiesAlways SecureCookies = "always"
	SecureCookiesNever  SecureCookies = "never"
)

func (s SecureCookies) on(secure bool) bool {
	return s == SecureCookiesAlways || s != SecureCookiesNever && secure
}

// The refresh cookie holds the refresh token. Scripts cannot read it, other sites
// cannot send it, and it goes nowhere but to the paths that need it, below that of the
// node. Its name ends with
// that of the cluster: browsers keep the cookies of all ports of a host together, and two
// installations there would take each other's.
const (
	refreshCookiePrefix = "carillon_refresh_"
	refreshCookieBelow  = web.Base + "/auth"
)

func (ss *sessions) refreshCookie() string { return refreshCookiePrefix + ss.auth.Cluster() }

// refreshToken is what login or the last refresh has set.
func (ss *sessions) refreshToken(ctx context.Context) string {
	return web.RequestOf(ctx).Cookie(ss.refreshCookie())
}

func (ss *sessions) cookie(ctx context.Context, value string, expires time.Time) string {
	c := http.Cookie{
		Name: ss.refreshCookie(), Value: value, Path: ss.path + refreshCookieBelow, Expires: expires.UTC(),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: ss.secure.on(web.RequestOf(ctx).Secure),
	}
	if value == "" {
		c.MaxAge = -1
	}
	return c.String()
}

func (ss *sessions) loginAnswer(ctx context.Context, s auth.Session) *loginOutput {
	return &loginOutput{
		SetCookie: ss.cookie(ctx, s.RefreshToken, s.RefreshExpiresAt),
		Body: Login{
			AccessToken: s.AccessToken, ExpiresAt: web.Instant(s.ExpiresAt),
			User: sessionUser(s.Identity), Tenant: access.TenantRef{ID: s.Tenant.ID.String(), Name: s.Tenant.Name},
		},
	}
}

func sessionUser(id auth.Identity) SessionUser {
	u := SessionUser{
		ID: id.User.String(), Username: id.Name, Role: string(id.Role),
		PlatformAdmin: id.PlatformAdmin, MustChangePassword: id.MustChangePassword, Executors: web.EmptyIfNil(id.Scope.Executors),
		Preferences: id.Preferences,
	}
	if id.Kind == auth.KindAPIKey {
		u.ID, u.Username = domain.UserID(id.APIKey).String(), id.Actor()
	}
	return u
}

type loginInput struct {
	Body struct {
		Username string `json:"username" minLength:"1" maxLength:"190" doc:"Name of the user"`
		Password string `json:"password" minLength:"1" maxLength:"1024" doc:"The password"`
		Tenant   string `json:"tenant,omitempty" maxLength:"190" doc:"Name or id; default: the user's first"`
	}
}

type passwordInput struct {
	Body struct {
		Current string `json:"current" minLength:"1" maxLength:"1024" doc:"The password as it is"`
		New     string `json:"new" maxLength:"1024" doc:"At least 12 characters, not the user name, and not easily guessed"`
	}
}

type switchInput struct {
	Body struct {
		Tenant string `json:"tenant" minLength:"1" maxLength:"190" doc:"Name or id"`
	}
}

// sessions log people in and out, and tell them their rights.
type sessions struct {
	// fixed after construction
	auth        *auth.Service
	maintenance *maintenance
	path        string
	secure      SecureCookies
}

func (ss *sessions) register(server *web.Server) {
	web.Register(server, web.Public, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/auth/login", ID: "login", Tag: "session",
		Summary:     "Log in with user name and password",
		Description: "Sets the refresh cookie. Of an account at an address, at most ten wrong passwords a minute are checked.",
		Errors:      []int{http.StatusUnauthorized, http.StatusForbidden}, Cookies: true,
	}, func(ctx context.Context, _ auth.Identity, in *loginInput) (*loginOutput, error) {
		s, err := ss.auth.Login(ctx, auth.LoginParams{
			Username: in.Body.Username, Password: in.Body.Password, Tenant: in.Body.Tenant, Address: web.RequestOf(ctx).IP,
		})
		if err != nil {
			return nil, err
		}
		return ss.loginAnswer(ctx, s), nil
	})
	web.Register(server, web.Public, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/auth/refresh", ID: "refresh", Unaudited: "it renews a session that login has recorded", Tag: "session",
		Summary:     "Renew the session with the refresh cookie",
		Description: "The cookie is exchanged. A cookie that was used before ends the whole session.",
		Errors:      []int{http.StatusUnauthorized}, Cookies: true, ReadsCookie: true,
	}, func(ctx context.Context, _ auth.Identity, _ *struct{}) (*loginOutput, error) {
		s, err := ss.auth.Refresh(ctx, ss.refreshToken(ctx), web.RequestOf(ctx).IP)
		if err != nil {
			return nil, err
		}
		return ss.loginAnswer(ctx, s), nil
	})
	web.Register(server, web.Public, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/auth/logout", ID: "logout", Tag: "session",
		Summary:     "End the session of the refresh cookie",
		Description: "All sessions of the cookie's family end, and the cookie is taken back. Without a cookie there is nothing to do, and the answer is the same.", Status: http.StatusNoContent, Cookies: true, ReadsCookie: true,
	}, func(ctx context.Context, _ auth.Identity, _ *struct{}) (*cookieOutput, error) {
		if err := ss.auth.Logout(ctx, ss.refreshToken(ctx), web.RequestOf(ctx).IP); err != nil {
			return nil, err
		}
		return &cookieOutput{SetCookie: ss.cookie(ctx, "", time.Unix(1, 0))}, nil
	})
	web.Register(server, web.SignedIn, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/auth/password", ID: "change-password", Tag: "session",
		Summary:     "Change one's own password",
		Description: "Ends all sessions of the user; the answer's cookie begins a new one (POST /auth/refresh).",
		Status:      http.StatusNoContent, Cookies: true,
	}, func(ctx context.Context, id auth.Identity, in *passwordInput) (*cookieOutput, error) {
		s, err := ss.auth.ChangePassword(ctx, id, in.Body.Current, in.Body.New, web.RequestOf(ctx).IP)
		if err != nil {
			return nil, err
		}
		return &cookieOutput{SetCookie: ss.cookie(ctx, s.RefreshToken, s.RefreshExpiresAt)}, nil
	})
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/auth/tenant", ID: "switch-tenant", Tag: "session",
		Summary:     "Begin a session in another tenant of the user",
		Description: "Sets the refresh cookie of the new session; the one before goes on until it is used no more.", Cookies: true,
	}, func(ctx context.Context, id auth.Identity, in *switchInput) (*loginOutput, error) {
		s, err := ss.auth.SwitchTenant(ctx, id, in.Body.Tenant)
		if err != nil {
			return nil, err
		}
		return ss.loginAnswer(ctx, s), nil
	})
	web.Register(server, web.SignedIn, web.Operation{
		Method: http.MethodGet, Path: web.Base + "/me", ID: "me", Tag: "session", Summary: "Who asks, and what is allowed",
		Description: "The user or API key, the tenant, and the rights that the role gives there.",
	}, ss.me)
	web.Register(server, web.SignedIn, web.Operation{
		Method: http.MethodPut, Path: web.Base + "/me/preferences", ID: "set-preferences", Tag: "session", Summary: "Choose language, colours and times of the pages",
		Description: "For the user who asks, on each machine. Replaces all of them.",
		Unaudited:   "it is how the pages look for one person", Status: http.StatusNoContent,
	}, func(ctx context.Context, id auth.Identity, in *struct{ Body domain.Preferences }) (*struct{}, error) {
		return nil, ss.auth.SetPreferences(ctx, id, in.Body)
	})
}

func (ss *sessions) me(ctx context.Context, id auth.Identity, _ *struct{}) (*struct{ Body Me }, error) {
	memberships, err := ss.auth.Memberships(ctx, id)
	if err != nil {
		return nil, err
	}
	me := Me{User: sessionUser(id), Permissions: web.PermissionNames(id.Permissions), Executors: web.EmptyIfNil(id.Scope.Executors), Kind: string(id.Kind), Tenants: []TenantWithRole{}}
	for _, m := range memberships {
		me.Tenants = append(me.Tenants, TenantWithRole{ID: m.Tenant.ID.String(), Name: m.Tenant.Name, Role: string(m.Role)})
		if m.Tenant.ID == id.Tenant {
			me.Tenant = access.TenantRef{ID: m.Tenant.ID.String(), Name: m.Tenant.Name}
		}
	}
	me.Maintenance, err = ss.maintenance.maintenancesOn(ctx, id)
	return &struct{ Body Me }{me}, err
}
