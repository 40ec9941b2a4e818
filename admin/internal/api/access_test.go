package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/tenant"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestAPIKeys(t *testing.T) {
	w := newWorld(t)
	created := w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": " deploy ", "role": "operator"}).is(201).golden("api_key_created")
	key := into[access.CreatedAPIKey](created)
	w.bearers["key"] = key.Secret
	me := into[Me](w.call("key", "GET", "/me", nil).is(200))
	require.Equal(t, "api_key", me.Kind)
	require.Equal(t, []string{"read", "operate", "call", "timer"}, me.Permissions)
	require.Equal(t, "key:deploy", me.User.Username)
	require.Equal(t, "acme", me.Tenant.Name)
	require.Len(t, me.Tenants, 1)
	w.call("key", "POST", "/jobs", nil).problem(403, "permission_denied")
	w.call("key", "POST", "/auth/password", map[string]any{"current": "x", "new": "a new long password"}).problem(403, "permission_denied")
	w.call("key", "POST", "/auth/tenant", map[string]any{"tenant": "acme"}).problem(403, "permission_denied")

	list := w.call("acme/admin", "GET", "/api-keys", nil).is(200)
	require.NotContains(t, string(list.body), key.Secret)
	require.Len(t, into[web.Page[access.APIKey]](list).Items, 1)
	w.call("acme/admin", "DELETE", "/api-keys/"+key.ID, nil).is(204)
	w.call("key", "GET", "/me", nil).problem(401, "unauthenticated")
	require.Empty(t, into[web.Page[access.APIKey]](w.call("acme/admin", "GET", "/api-keys", nil).is(200)).Items)

	for name, body := range map[string]map[string]any{
		"past expiry":  {"name": "x", "role": "viewer", "expiresAt": "2020-01-01T00:00:00Z"},
		"unknown role": {"name": "x", "role": "king"},
		"blank name":   {"name": " ", "role": "viewer"},
	} {
		w.run(t, name, func(*testing.T) {
			w.call("acme/admin", "POST", "/api-keys", body).problem(422, "validation_failed")
		})
	}
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	key = into[access.CreatedAPIKey](w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "x", "role": "viewer", "expiresAt": expires.Format(time.RFC3339)}).is(201))
	require.Equal(t, web.Instant(expires), *key.ExpiresAt)
}

func TestUsers(t *testing.T) {
	w := newWorld(t)
	admin := "acme/admin"
	created := into[access.UserWithPassword](w.call(admin, "POST", "/users", map[string]any{"username": "Ann", "role": "viewer", "password": "a long password"}).is(201))
	require.Equal(t, "ann", created.Username)
	require.Empty(t, created.Password, "it was not generated")
	w.call(admin, "POST", "/users", map[string]any{"username": "ann", "role": "viewer"}).problem(409, "conflict")
	w.call("beta/admin", "POST", "/users", map[string]any{"username": "ann", "role": "viewer"}).problem(409, "conflict")
	login := func(password string) answer {
		return w.call("", "POST", "/auth/login", map[string]any{"username": "ann", "password": password})
	}
	w.bearers["ann"] = into[Login](login("a long password").is(200)).AccessToken
	w.call("ann", "POST", "/jobs", map[string]any{}).problem(403, "permission_denied")

	path := "/users/" + created.ID
	require.Equal(t, "editor", into[access.UserWithPassword](w.call(admin, "PATCH", path, map[string]any{"role": "editor"}).is(200)).Role)
	require.Equal(t, "editor", into[Me](w.call("ann", "GET", "/me", nil).is(200)).User.Role, "at once")

	w.call(admin, "PATCH", path, map[string]any{"disabled": true}).is(200)
	w.call("ann", "GET", "/me", nil).problem(401, "unauthenticated")
	login("a long password").problem(401, "unauthenticated")
	w.call(admin, "PATCH", path, map[string]any{"disabled": false}).is(200)

	reset := into[access.UserWithPassword](w.call(admin, "PATCH", path, map[string]any{"password": ""}).is(200))
	require.NotEmpty(t, reset.Password)
	require.True(t, into[Login](login(reset.Password).is(200)).User.MustChangePassword)

	w.call(admin, "DELETE", path, nil).is(204)
	login(reset.Password).problem(401, "unauthenticated")
	w.call(admin, "GET", "/users", nil).is(200)
	for _, u := range into[web.Page[access.User]](w.call(admin, "GET", "/users", nil).is(200)).Items {
		require.NotEqual(t, "ann", u.Username)
	}
	for name, body := range map[string]map[string]any{
		"weak password":   {"username": "bob", "role": "viewer", "password": "short"},
		"bad name":        {"username": "bob smith", "role": "viewer"},
		"path in name":    {"username": "../bob", "role": "viewer"},
		"unknown role":    {"username": "bob", "role": "root"},
		"platform rights": {"username": "bob", "role": "viewer", "platformAdmin": true},
	} {
		w.run(t, name, func(*testing.T) { w.call(admin, "POST", "/users", body).problem(422, "validation_failed") })
	}
}

// TestNamesOfOtherTenantsAreNotAsked without a bound: by many accounts or keys of a tenant
// neither. Names that the tenant sees anyway do not count, and other tenants go on.
func TestNamesOfOtherTenantsAreNotAsked(t *testing.T) {
	w := newWorld(t)
	w.key("second", "admin")
	ask := func(who, name string) answer {
		return w.call(who, "POST", "/users", map[string]any{"username": name, "role": "viewer", "password": "a long password"})
	}
	for range 30 {
		ask("acme/admin", "acme-viewer").problem(409, "conflict")
	}
	for n := range 10 {
		ask([]string{"acme/admin", "second"}[n%2], "beta-viewer").problem(409, "conflict")
	}
	for _, who := range []string{"acme/admin", "second"} {
		for _, name := range []string{"beta-viewer", "nobody-has-this"} {
			a := ask(who, name)
			a.problem(429, "rate_limited")
			require.NotEmpty(t, a.header.Get("Retry-After"))
		}
	}
	ask("beta/admin", "acme-viewer").problem(409, "conflict")
	ask("beta/admin", "somebody-new").is(201)
	ask("platform", "beta-viewer").problem(409, "conflict")
}

func TestAdministratorsCannotLockThemselvesOut(t *testing.T) {
	w := newWorld(t)
	self := "/users/" + w.users["acme-admin"].String()
	w.call("acme/admin", "PATCH", self, map[string]any{"role": "viewer"}).problem(409, "conflict")
	w.call("acme/admin", "PATCH", self, map[string]any{"disabled": true}).problem(409, "conflict")
	w.call("acme/admin", "DELETE", self, nil).problem(409, "conflict")
}

// TestAccountsOfOtherTenants: whoever administers one tenant must not get at
// an account that also belongs to another one.
func TestAccountsOfOtherTenants(t *testing.T) {
	w := newWorld(t)
	shared := w.users["beta-editor"]
	require.NoError(t, w.store.SaveMembership(t.Context(), domain.Membership{TenantID: w.tenants["acme"], UserID: shared, Role: domain.RoleViewer}))
	path := "/users/" + shared.String()
	w.call("acme/admin", "PATCH", path, map[string]any{"password": "taken over by acme"}).problem(403, "permission_denied")
	w.call("acme/admin", "PATCH", path, map[string]any{"disabled": true}).problem(403, "permission_denied")
	w.call("acme/admin", "PATCH", path, map[string]any{"role": "operator"}).is(200)
	w.call("acme/admin", "DELETE", path, nil).is(204)
	require.Equal(t, "editor", into[Me](w.call("beta/editor", "GET", "/me", nil).is(200)).User.Role, "still at home in beta")

	var platform domain.User
	platform, err := w.store.FindUserByName(t.Context(), "admin")
	require.NoError(t, err)
	require.NoError(t, w.store.SaveMembership(t.Context(), domain.Membership{TenantID: w.tenants["acme"], UserID: platform.ID, Role: domain.RoleViewer}))
	w.call("acme/admin", "PATCH", "/users/"+platform.ID.String(), map[string]any{"password": "taken over by acme"}).problem(403, "permission_denied")
	w.call("acme/admin", "DELETE", "/users/"+platform.ID.String(), nil).is(204)
	w.call("platform", "GET", "/me", nil).is(200)
}

// TestInvitation: an account gets into another tenant by its owner's consent,
// and by nothing else.
func TestInvitation(t *testing.T) {
	w := newWorld(t)
	there := into[Login](w.call("platform", "POST", "/auth/tenant", map[string]any{"tenant": "acme"}).is(200))
	w.bearers["platform@acme"] = there.AccessToken
	members := func() string { return string(w.call("acme/admin", "GET", "/users", nil).is(200).body) }
	before := members()
	taken := w.call("acme/admin", "POST", "/users", map[string]any{"username": "beta-viewer", "role": "operator"}).problem(409, "conflict")
	require.Equal(t, `the user name "beta-viewer" is taken`, taken.Detail)
	w.call("platform@acme", "POST", "/users", map[string]any{"username": "beta-viewer", "role": "operator"}).problem(409, "conflict")
	require.Equal(t, before, members(), "nobody was added by that")

	invite := func(name string) answer {
		return w.call("acme/admin", "POST", "/invitations", map[string]any{"username": name, "role": "operator"})
	}
	one, none := into[access.Invitation](invite("Beta-Viewer").is(201)), into[access.Invitation](invite("nobody-at-all").is(201))
	require.Equal(t, "beta-viewer", one.Username)
	none.ID, none.Username, none.CreatedAt, none.ExpiresAt = one.ID, one.Username, one.CreatedAt, one.ExpiresAt
	require.Equal(t, one, none, "a name that nobody has is answered the same")
	require.Equal(t, before, members(), "nothing changes before the owner answers")
	require.Len(t, into[Me](w.call("beta/viewer", "GET", "/me", nil).is(200)).Tenants, 1)
	invite("beta-viewer").problem(409, "conflict")
	invite("acme-viewer").problem(409, "conflict")
	invite("no name").problem(422, "validation_failed")

	mine := into[web.Page[access.MyInvitation]](w.call("beta/viewer", "GET", "/me/invitations", nil).is(200).golden("my_invitations"))
	require.Len(t, mine.Items, 1)
	require.Equal(t, "acme", mine.Items[0].Tenant.Name)
	require.Empty(t, into[web.Page[access.MyInvitation]](w.call("beta/editor", "GET", "/me/invitations", nil).is(200)).Items)
	accept := "/me/invitations/" + one.ID + "/accept"
	w.call("beta/admin", "POST", accept, nil).problem(404, "not_found")
	w.call("acme/admin", "POST", accept, nil).problem(404, "not_found")
	w.call("beta/viewer", "POST", accept, nil).is(204)
	w.call("beta/viewer", "POST", accept, nil).problem(404, "not_found")
	me := into[Me](w.call("beta/viewer", "GET", "/me", nil).is(200))
	require.Len(t, me.Tenants, 2)
	require.Contains(t, members(), "beta-viewer")
	for _, said := range []string{"account invited", "invitation accepted"} {
		require.Contains(t, w.logText(), said)
	}
	// Since then neither tenant's administrator can take the account.
	for _, admin := range []string{"acme/admin", "beta/admin"} {
		for _, change := range []map[string]any{{"password": "taken over by " + admin}, {"password": ""}, {"disabled": true}} {
			w.call(admin, "PATCH", "/users/"+w.users["beta-viewer"].String(), change).problem(403, "permission_denied")
		}
	}

	// The name that nobody has cannot be claimed by making it.
	w.call("beta/admin", "POST", "/users", map[string]any{"username": "nobody-at-all", "role": "viewer", "password": "late but welcome"}).is(201)
	w.bearers["late"] = into[Login](w.call("", "POST", "/auth/login", map[string]any{"username": "nobody-at-all", "password": "late but welcome"}).is(200)).AccessToken
	require.Empty(t, into[web.Page[access.MyInvitation]](w.call("late", "GET", "/me/invitations", nil).is(200)).Items)
}

func TestInvitationsThatAreNotAccepted(t *testing.T) {
	w := newWorld(t)
	invite := func(by, name string) access.Invitation {
		return into[access.Invitation](w.call(by, "POST", "/invitations", map[string]any{"username": name, "role": "admin"}).is(201))
	}
	open := func() int {
		return len(into[web.Page[access.Invitation]](w.call("acme/admin", "GET", "/invitations", nil).is(200)).Items)
	}

	declined := invite("acme/admin", "beta-viewer")
	w.call("beta/viewer", "POST", "/me/invitations/"+declined.ID+"/decline", nil).is(204)
	w.call("beta/viewer", "POST", "/me/invitations/"+declined.ID+"/accept", nil).problem(404, "not_found")
	require.Empty(t, into[web.Page[access.MyInvitation]](w.call("beta/viewer", "GET", "/me/invitations", nil).is(200)).Items)
	require.Equal(t, 1, open(), "the tenant does not learn that there is somebody who declined")

	taken := invite("acme/admin", "beta-editor")
	w.call("beta/admin", "DELETE", "/invitations/"+taken.ID, nil).problem(404, "not_found")
	w.call("acme/admin", "DELETE", "/invitations/"+taken.ID, nil).is(204)
	w.call("beta/editor", "POST", "/me/invitations/"+taken.ID+"/accept", nil).problem(404, "not_found")

	// Who loses the right to invite takes his invitations along.
	second := into[access.UserWithPassword](w.call("acme/admin", "POST", "/users", map[string]any{"username": "second", "role": "admin", "password": "a password of my own"}).is(201))
	w.bearers["second"] = into[Login](w.call("", "POST", "/auth/login", map[string]any{"username": "second", "password": "a password of my own"}).is(200)).AccessToken
	stale := invite("second", "beta-operator")
	w.call("acme/admin", "PATCH", "/users/"+second.ID, map[string]any{"role": "viewer"}).is(200)
	w.call("beta/operator", "POST", "/me/invitations/"+stale.ID+"/accept", nil).problem(404, "not_found")

	key := into[access.CreatedAPIKey](w.call("beta/admin", "POST", "/api-keys", map[string]any{"name": "k", "role": "admin"}).is(201))
	w.bearers["key"] = key.Secret
	w.call("key", "GET", "/me/invitations", nil).problem(403, "permission_denied")
	refused := w.call("key", "POST", "/invitations", map[string]any{"username": "acme-viewer", "role": "viewer"}).problem(403, "permission_denied")
	require.Contains(t, refused.Detail, "an API key cannot invite", "what it sends would outlive it")

	for n := open(); n < domain.MaxInvitations; n++ {
		invite("acme/admin", fmt.Sprint("guest-", n))
	}
	w.call("acme/admin", "POST", "/invitations", map[string]any{"username": "one-more", "role": "viewer"}).problem(409, "conflict")
}

func TestTenants(t *testing.T) {
	w := newWorld(t)
	made := into[tenant.Tenant](w.call("platform", "POST", "/tenants", map[string]any{"name": "gamma"}).is(201))
	require.Equal(t, "gamma", made.Name)
	w.call("platform", "POST", "/tenants", map[string]any{"name": "gamma"}).problem(409, "conflict")
	for _, name := range []string{"Gamma", "1gamma", "ga mma", "-x", "x-", "123", "a/b"} {
		w.call("platform", "POST", "/tenants", map[string]any{"name": name}).problem(422, "validation_failed")
	}
	require.Len(t, into[web.Page[tenant.Tenant]](w.call("platform", "GET", "/tenants", nil).is(200)).Items, 4)
}

func TestJoinTokens(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	path := "/executors/" + e.ID.String() + "/join-tokens"
	created := w.call("acme/admin", "POST", path, map[string]any{"name": "prod", "maxUses": 2}).is(201).golden("join_token_created")
	token := into[access.CreatedJoinToken](created)
	verify := func(boot string) domain.JoinVerdict {
		out, err := w.auth.VerifyJoinTokens(t.Context(), []domain.JoinClaim{{Secret: token.Secret, BootID: boot, Executor: "shop"}})
		require.NoError(t, err)
		return out[0]
	}
	require.Equal(t, domain.JoinVerdict{Tenant: w.tenants["acme"], Executor: e.ID}, verify("boot-1"))

	list := w.call("acme/admin", "GET", path, nil).is(200)
	require.NotContains(t, string(list.body), token.Secret)
	require.Equal(t, 1, into[web.Page[access.JoinToken]](list).Items[0].Uses)

	w.call("acme/admin", "DELETE", path+"/"+token.ID, nil).is(204)
	require.Equal(t, domain.CodeUnauthenticated, domain.CodeOf(verify("boot-2").Err))
	w.call("acme/admin", "DELETE", path+"/12345", nil).problem(404, "not_found")
	w.call("acme/admin", "POST", path, map[string]any{"maxUses": -1}).problem(422, "validation_failed")
	w.call("acme/admin", "POST", path, map[string]any{"expiresAt": "2020-01-01T00:00:00Z"}).problem(422, "validation_failed")
	// By default it is named after its executor, never expires, and has no limit.
	plain := into[access.CreatedJoinToken](w.call("acme/admin", "POST", path, map[string]any{}).is(201))
	require.Equal(t, "shop", plain.Name)
	require.Nil(t, plain.ExpiresAt)
	require.Nil(t, plain.MaxUses)
}

// A right names executors of the tenant.
func TestRightsNameKnownExecutors(t *testing.T) {
	w := newWorld(t)
	w.executor("acme", "shop")
	w.executor("beta", "bank")
	for at, body := range map[string]map[string]any{
		"/users":       {"username": "mei", "role": "viewer", "executors": []string{"shop", "shpo"}, "password": peerPassword},
		"/api-keys":    {"name": "k", "role": "viewer", "executors": []string{"shop", "shpo"}},
		"/invitations": {"username": "bo", "role": "viewer", "executors": []string{"shop", "shpo"}},
	} {
		p := w.call("acme/admin", "POST", at, body).problem(422, "validation_failed")
		require.Equal(t, "body.executors[1]", p.Errors[0].Location, at)
		require.Equal(t, []string{`there is no executor "shpo": create it first`, `did you mean "shop"?`}, []string{p.Errors[0].Message, p.Errors[0].Hint}, at)
		body["executors"] = []string{"shop"}
		w.call("acme/admin", "POST", at, body).is(201)
	}
	p := w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "c", "role": "caller", "callHandlers": []string{"shpo/x"}}).problem(422, "validation_failed")
	require.Equal(t, "body.callHandlers[0]", p.Errors[0].Location)
	users := into[web.Page[access.User]](w.call("acme/admin", "GET", "/users", nil).is(200)).Items
	for _, u := range users {
		if u.Username == "mei" {
			w.call("acme/admin", "PATCH", "/users/"+u.ID, map[string]any{"executors": []string{"bank"}}).problem(422, "validation_failed")
		}
	}
	member := map[string]any{"kind": "Member", "name": "new.person", "spec": map[string]any{"role": "viewer", "executors": []string{"books"}}}
	p = w.call("acme/admin", "POST", "/plan", documentsBody(member)).problem(422, "validation_failed")
	require.Equal(t, "body.documents[0].spec.executors[0]", p.Errors[0].Location)
	require.Equal(t, 2, w.planned("acme/admin", documentsBody(member, executorDocumentBody("books", map[string]any{}))).Create, "it comes with the same apply")
}
