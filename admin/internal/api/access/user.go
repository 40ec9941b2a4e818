package access

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// User is a member of the tenant.
type User struct {
	ID        string   `json:"id" doc:"Id of the user, a decimal string"`
	Username  string   `json:"username" doc:"Name to log in with"`
	Role      string   `json:"role" enum:"viewer,operator,editor,scripter,admin" doc:"What the user may do in this tenant"`
	Disabled  bool     `json:"disabled" doc:"The account is locked"`
	Executors []string `json:"executors" doc:"Names of the executors that the role is bound to: the user sees only their jobs and runs; empty: the whole tenant"`
	CreatedAt string   `json:"createdAt" format:"date-time" doc:"When the user was made"`
}

// UserWithPassword also has a password that was generated.
type UserWithPassword struct {
	User
	Password string `json:"password,omitempty" doc:"Only when it was generated; shown once, to be changed at the first login"`
}

func userOf(m *store.Member) User {
	return User{
		ID: m.User.ID.String(), Username: m.User.Username, Role: string(m.Role),
		Executors: web.EmptyIfNil(m.Scope.Executors), Disabled: m.User.Disabled, CreatedAt: web.Instant(m.User.CreatedAt),
	}
}

type userOutput struct{ Body UserWithPassword }

type createUserInput struct {
	Body struct {
		Username  string   `json:"username" minLength:"1" maxLength:"64" doc:"Name to log in with, unique on the platform"`
		Role      string   `json:"role" enum:"viewer,operator,editor,scripter,admin" doc:"What the user may do in this tenant"`
		Password  string   `json:"password,omitempty" maxLength:"1024" doc:"Default: a random one, to be changed at the first login"`
		Executors []string `json:"executors,omitempty" maxItems:"30" doc:"Names of the executors that the role is bound to: the user then sees only their jobs and runs. Default: the whole tenant. Refused with the roles scripter and admin"`
	}
}

type updateUserInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body struct {
		Role     string  `json:"role,omitempty" enum:"viewer,operator,editor,scripter,admin" doc:"New role in this tenant; default: as it is"`
		Disabled *bool   `json:"disabled,omitempty" doc:"true locks the account and ends its sessions, false unlocks it; default: as it is"`
		Password *string `json:"password,omitempty" maxLength:"1024" doc:"Empty: a random one. Ends all sessions of the user"`
		// Executors replaces the list; nil leaves it as it is.
		Executors *[]string `json:"executors,omitempty" maxItems:"30" doc:"Names of the executors that the role is to be bound to; an empty list: the whole tenant; default: as it is"`
	}
}

func errUserName() error {
	return domain.Invalid("body.username", "must be letters, digits and . _ @ + -, beginning with a letter or digit")
}

func (a *api) registerUsers() {
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/users", ID: "list-users", Tag: "access", Summary: "List the tenant's users",
		Description: "By name, those of the caller's tenant.",
	}, func(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[User], error) {
		members, err := a.deps.Store.ListMembers(ctx, id.Tenant)
		return web.ListPage(members, err, userOf, in.ShortPage, "users")
	})
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/users", ID: "create-user", Tag: "access",
		Summary:     "Make a user of the tenant",
		Description: "409 when the name is taken, here or elsewhere. An account that exists is invited: POST /invitations. 429 when the tenant has asked for many names of accounts elsewhere.",
		Status:      http.StatusCreated, Errors: []int{http.StatusConflict},
	}, a.createUser)
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodPatch, Path: web.Base + "/users/{id}", ID: "update-user", Tag: "access",
		Summary:     "Change a user's role and its executors, lock the account, or set a password",
		Description: "Lock and password concern the account as a whole; if it belongs to other tenants too, only a platform administrator may change them.",
		Errors:      []int{http.StatusConflict},
	}, a.updateUser)
	web.Register(a.Server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/users/{id}", ID: "delete-user", Tag: "access",
		Summary:     "Remove a user from the tenant",
		Description: "The API keys end that the user has made here, within 5 seconds on all nodes. An account that belongs to no other tenant is locked.",
		Status:      http.StatusNoContent, Errors: []int{http.StatusConflict},
	}, a.deleteUser)
}

func (a *api) createUser(ctx context.Context, id auth.Identity, in *createUserInput) (*userOutput, error) {
	username := auth.NormalUsername(in.Body.Username)
	if !domain.UserNames.MatchString(username) {
		return nil, errUserName()
	}
	scope, err := readScope("body.", domain.Role(in.Body.Role), in.Body.Executors)
	if err == nil {
		err = a.exist(ctx, id.Tenant, "body.", scope, nil)
	}
	if err != nil {
		return nil, err
	}
	password, generated, err := choosePassword("body.password", username, in.Body.Password)
	if err != nil {
		return nil, err
	}
	if err := a.deps.Auth.MayAskNames(id); err != nil {
		return nil, err
	}
	phc, err := a.deps.Auth.HashPassword(ctx, id.Tenant, password)
	if err != nil {
		return nil, err
	}
	m := store.Member{
		User: domain.User{
			ID: domain.UserID(a.deps.NewID()), Username: username, PasswordHash: phc,
			MustChangePassword: generated, SessionVersion: 1, CreatedAt: a.deps.Now(),
		},
		Role: domain.Role(in.Body.Role), Scope: scope,
	}
	err = a.deps.Store.CreateUser(ctx, m.User, domain.Membership{TenantID: id.Tenant, UserID: m.User.ID, Role: m.Role, Scope: m.Scope})
	if domain.Is(err, domain.CodeConflict) {
		return nil, a.nameTaken(ctx, id, username, err)
	}
	if err != nil {
		return nil, err
	}
	a.deps.Log.Info("user created", "user", username, "role", m.Role, "executors", m.Scope.Executors, "by", id)
	out := &userOutput{UserWithPassword{User: userOf(&m)}}
	if generated {
		out.Body.Password = password
	}
	return out, nil
}

// nameTaken counts a name that the caller's tenant cannot see by itself.
func (a *api) nameTaken(ctx context.Context, id auth.Identity, username string, taken error) error {
	members, err := a.deps.Store.ListMembers(ctx, id.Tenant)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(members, func(m store.Member) bool { return m.User.Username == username }) {
		a.deps.Auth.NameWasTaken(id)
	}
	return taken
}

func choosePassword(location, username, given string) (password string, generated bool, err error) {
	if given != "" {
		return given, false, auth.CheckPassword(location, username, given)
	}
	password, err = auth.GeneratePassword()
	return password, true, err
}

// member finds a user of the identity's tenant, and in how many tenants the
// user is.
func (a *api) member(ctx context.Context, id auth.Identity, text string) (m store.Member, tenants int, err error) {
	user, err := domain.ParseID[domain.UserID](text)
	if err != nil {
		return m, 0, err
	}
	memberships, err := a.deps.Store.ListMemberships(ctx, user)
	if err != nil {
		return m, 0, err
	}
	for _, ms := range memberships {
		if ms.TenantID == id.Tenant {
			m.User, err = a.deps.Store.FindUser(ctx, user)
			m.Role, m.Scope = ms.Role, ms.Scope
			return m, len(memberships), err
		}
	}
	return m, 0, domain.Errorf(domain.CodeNotFound, "no user has the id %q", text)
}

func (a *api) updateUser(ctx context.Context, id auth.Identity, in *updateUserInput) (*userOutput, error) {
	m, tenants, err := a.member(ctx, id, in.ID)
	if err != nil {
		return nil, err
	}
	if err := mayChange(id, m, tenants, in); err != nil {
		return nil, err
	}
	role, scope, err := newRole(&m, in)
	if err == nil { // the executor of an old right may be deleted
		err = a.exist(ctx, id.Tenant, "body.", scope, func(name string) bool { return slices.Contains(m.Scope.Executors, name) })
	}
	if err != nil {
		return nil, err
	}
	auditUser(ctx, &m, role, scope, in)
	out := &userOutput{}
	if role != m.Role || !slices.Equal(scope.Executors, m.Scope.Executors) {
		m.Role, m.Scope = role, scope
		if err := a.deps.Store.SaveMembership(ctx, domain.Membership{TenantID: id.Tenant, UserID: m.User.ID, Role: m.Role, Scope: m.Scope}); err != nil {
			return nil, err
		}
	}
	if in.Body.Disabled != nil && *in.Body.Disabled != m.User.Disabled {
		m.User.Disabled = *in.Body.Disabled
		m.User.SessionVersion++
		if err := a.deps.Store.UpdateUser(ctx, m.User, only(id)); err != nil {
			return nil, err
		}
	}
	if in.Body.Password != nil {
		password, generated, err := choosePassword("body.password", m.User.Username, *in.Body.Password)
		if err != nil {
			return nil, err
		}
		if m.User, err = a.deps.Auth.SetPassword(ctx, m.User, password, true, only(id)); err != nil {
			return nil, err
		}
		if generated {
			out.Body.Password = password
		}
	}
	a.deps.Auth.Forget(m.User.ID)
	a.deps.Log.Info("user changed", "user", m.User.Username, "role", m.Role, "executors", m.Scope.Executors, "disabled", m.User.Disabled,
		"new_password", in.Body.Password != nil, "by", id)
	out.Body.User = userOf(&m)
	return out, nil
}

// readScope reads the executors that the role of a person is to be bound to. Errors have
// locations below the given one.
func readScope(below string, role domain.Role, names []string) (domain.Scope, error) {
	var r web.Reader
	scope := domain.Scope{Executors: executors(&r, below, names)}
	boundable(&r, below, role, scope)
	return scope, r.Err()
}

// newRole is the role that a member is to have, with its executors.
func newRole(m *store.Member, in *updateUserInput) (role domain.Role, scope domain.Scope, err error) {
	role, names := cmp.Or(domain.Role(in.Body.Role), m.Role), m.Scope.Executors
	if in.Body.Executors != nil {
		names = *in.Body.Executors
	}
	scope, err = readScope("body.", role, names)
	return role, scope, err
}

// auditUser adds the facts before and after to the audit entry. The change itself takes up to
// three transactions.
func auditUser(ctx context.Context, m *store.Member, role domain.Role, scope domain.Scope, in *updateUserInput) {
	disabled := m.User.Disabled
	if in.Body.Disabled != nil {
		disabled = *in.Body.Disabled
	}
	before := auditFacts{Role: m.Role, Executors: m.Scope.Executors, Disabled: m.User.Disabled}.text()
	after := auditFacts{Role: role, Executors: scope.Executors, Disabled: disabled, NewPassword: in.Body.Password != nil}.text()
	if before == after {
		domain.AuditOf(ctx).Drop()
	}
	domain.AuditOf(ctx).Object(domain.AuditObject{Name: m.User.Username, Before: before, After: after})
}

// auditFacts is what the audit log keeps of an account.
type auditFacts struct {
	Role        domain.Role `json:"role"`
	Executors   []string    `json:"executors,omitempty"`
	Disabled    bool        `json:"disabled"`
	NewPassword bool        `json:"newPassword"`
}

func (f auditFacts) text() string {
	raw, err := json.Marshal(f)
	if err != nil {
		panic("access: " + err.Error()) // texts and truth values only
	}
	return string(raw)
}

// only is the tenant on whose word an account is changed; of a platform
// administrator it need not be the account's only one.
func only(id auth.Identity) domain.TenantID {
	if id.PlatformAdmin {
		return 0
	}
	return id.Tenant
}

// mayChange keeps administrators from locking themselves out, and those of one
// tenant from taking over accounts of another.
func mayChange(id auth.Identity, m store.Member, tenants int, in *updateUserInput) error {
	if m.User.ID == id.User {
		return domain.Errorf(domain.CodeConflict, "you cannot change your own role, lock or password here; ask another administrator, or use %s/auth/password", web.Base)
	}
	account := in.Body.Disabled != nil || in.Body.Password != nil
	if account && !id.PlatformAdmin && (tenants > 1 || m.User.PlatformAdmin) {
		return domain.Errorf(domain.CodeDenied, "the account of %q belongs to other tenants too: only a platform administrator may change it", m.User.Username)
	}
	return nil
}

func (a *api) deleteUser(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{}, error) {
	m, _, err := a.member(ctx, id, in.ID)
	if err != nil {
		return nil, err
	}
	return nil, a.removeFrom(ctx, id, m.User.ID, m.User.Username)
}

// removeFrom removes an account from the tenant of an administrator.
func (a *api) removeFrom(ctx context.Context, id auth.Identity, user domain.UserID, name string) error {
	if user == id.User {
		return domain.Errorf(domain.CodeConflict, "you cannot remove yourself; ask another administrator")
	}
	if err := a.deps.Store.DeleteMembership(ctx, id.Tenant, user); err != nil {
		return err
	}
	a.deps.Auth.Forget(user)
	a.deps.Log.Info("user removed from the tenant", "user", name, "by", id)
	return nil
}
