package domain

import (
	"encoding/json"
	"slices"
	"strings"
)

// Role is a fixed set of permissions, or several of them joined by "+", such as
// "caller+manager". Only API keys have several.
type Role string

const (
	// RoleCaller may only call handlers, and see and cancel its own calls.
	RoleCaller Role = "caller"
	// RoleTimer may only set, see, move and cancel timers.
	RoleTimer  Role = "timer"
	RoleViewer Role = "viewer"
	// RoleManager may read, change and run jobs. Calls and timers are not part of it.
	RoleManager  Role = "manager"
	RoleOperator Role = "operator"
	RoleEditor   Role = "editor"
	RoleScripter Role = "scripter" // an editor who also writes what agents run
	RoleAdmin    Role = "admin"
)

// Permission is one right, as a bit.
type Permission uint32

const (
	PermRead    Permission = 1 << iota // see everything of the tenant but secrets
	PermOperate                        // run, pause, resume, cancel, retry
	PermEdit                           // create, edit, delete jobs and executors
	PermAdmin                          // users, API keys, join tokens
	PermScript                         // write scripts, which is to run programs where agents are
	PermCall                           // call handlers, and see and cancel one's own calls
	PermTimer                          // set, see, move and cancel timers
)

// PermissionNames are the names in API answers, in bit order.
var PermissionNames = []string{"read", "operate", "edit", "admin", "script", "call", "timer"}

// rolePermissions are the rights of each single role.
var rolePermissions = map[Role]Permission{
	RoleCaller:   PermCall,
	RoleTimer:    PermTimer,
	RoleViewer:   PermRead,
	RoleManager:  PermRead | PermOperate | PermEdit,
	RoleOperator: PermRead | PermOperate | PermCall | PermTimer,
	RoleEditor:   PermRead | PermOperate | PermCall | PermTimer | PermEdit,
	RoleScripter: PermRead | PermOperate | PermCall | PermTimer | PermEdit | PermScript,
	RoleAdmin:    PermRead | PermOperate | PermCall | PermTimer | PermEdit | PermAdmin | PermScript,
}

// KeyRoles are the single roles that an API key may have, the least one first.
var KeyRoles = []Role{RoleCaller, RoleTimer, RoleViewer, RoleManager, RoleOperator, RoleEditor, RoleScripter, RoleAdmin}

// Permissions returns the rights of a role; none if a part of it is unknown.
func (r Role) Permissions() (all Permission) {
	for part := range strings.SplitSeq(string(r), "+") {
		one := rolePermissions[Role(part)]
		if one == 0 {
			return 0
		}
		all |= one
	}
	return all
}

// KeyRole reads the role of an API key. Its parts come in the order of KeyRoles, each once.
// ok is false if one of them is unknown.
func KeyRole(text string) (role Role, ok bool) {
	parts := strings.Split(text, "+")
	var all []string
	for _, one := range KeyRoles {
		if slices.Contains(parts, string(one)) {
			all = append(all, string(one))
		}
	}
	for _, part := range parts {
		if !slices.Contains(KeyRoles, Role(part)) {
			return "", false
		}
	}
	return Role(strings.Join(all, "+")), true
}

// MaxScopeNames bounds the executors of a scope, and its handlers.
const MaxScopeNames = 30

// Scope bounds what a role is for. The zero value is all of the tenant.
type Scope struct {
	Executors []string // by name, with all their handlers
	// Handlers are each "executor/handler"; executors' names have no slash. They bound calls
	// and timers only.
	Handlers []string
}

// Bounded reports whether there is anything that the scope does not allow.
func (s Scope) Bounded() bool { return len(s.Executors)+len(s.Handlers) > 0 }

// Allows reports whether the handler is in the scope.
func (s Scope) Allows(executor, handler string) bool {
	return !s.Bounded() || slices.Contains(s.Executors, executor) || slices.Contains(s.Handlers, executor+"/"+handler)
}

// Contains reports whether s allows all that other does.
func (s Scope) Contains(other Scope) bool {
	if !s.Bounded() {
		return true
	}
	beyond := func(target string) bool {
		executor, handler, _ := strings.Cut(target, "/")
		return !s.Allows(executor, handler)
	}
	return other.Bounded() && !slices.ContainsFunc(other.Executors, func(e string) bool { return !slices.Contains(s.Executors, e) }) &&
		!slices.ContainsFunc(other.Handlers, beyond)
}

// Intersect returns what both scopes allow. ok is false if that is nothing.
func (s Scope) Intersect(other Scope) (both Scope, ok bool) {
	switch {
	case !s.Bounded():
		return other, true
	case !other.Bounded():
		return s, true
	}
	add := func(from, by Scope) {
		for _, e := range from.Executors {
			if slices.Contains(by.Executors, e) && !slices.Contains(both.Executors, e) {
				both.Executors = append(both.Executors, e)
			}
		}
		for _, target := range from.Handlers {
			executor, handler, _ := strings.Cut(target, "/")
			if by.Allows(executor, handler) && !slices.Contains(both.Handlers, target) {
				both.Handlers = append(both.Handlers, target)
			}
		}
	}
	add(s, other)
	add(other, s)
	return both, both.Bounded()
}

// WrongScope says which list of a scope does not go with a role, executors or handlers, and
// why. Both are empty if the scope does.
func WrongScope(r Role, s Scope) (list, why string) {
	switch has := r.Permissions(); {
	case len(s.Handlers) > 0 && has&^(PermCall|PermTimer) != 0:
		return "handlers", "handlers bound calls and timers only, and the role " + string(r) + " may do more: name executors, or use the roles caller and timer"
	case s.Bounded() && has&(PermAdmin|PermScript) != 0:
		return "executors", "the role " + string(r) + " is about the whole tenant: name no executors, or use the role viewer, operator, editor or manager"
	}
	return "", ""
}

// AuditedRole is a role with its executors, as JSON for the audit log.
func AuditedRole(r Role, s Scope) string {
	raw, err := json.Marshal(struct {
		Role      Role     `json:"role"`
		Executors []string `json:"executors,omitempty"`
	}{r, s.Executors})
	if err != nil {
		panic("domain: " + err.Error()) // texts only
	}
	return string(raw)
}

// Reach is the executors whose jobs, runs and instances a question may be about. The zero
// value is those of the whole tenant.
type Reach struct {
	bounded bool
	ids     []ExecutorID
}

// Within is the reach of these executors, which may be none.
func Within(ids ...ExecutorID) Reach { return Reach{bounded: true, ids: ids} }

// Bounded reports whether there is anything out of reach.
func (r Reach) Bounded() bool { return r.bounded }

// IDs are the executors of a bounded reach.
func (r Reach) IDs() []ExecutorID { return r.ids }

// Has reports whether an executor is in reach.
func (r Reach) Has(id ExecutorID) bool { return !r.bounded || slices.Contains(r.ids, id) }

// Only is the reach of one executor; of none if it is out of reach.
func (r Reach) Only(id ExecutorID) Reach {
	if !r.Has(id) {
		return Within()
	}
	return Within(id)
}

// ReachNoun is a kind of object that belongs to an executor.
type ReachNoun string

const (
	ReachExecutor ReachNoun = "executor"
	ReachInstance ReachNoun = "instance"
	ReachJob      ReachNoun = "job"
	ReachRun      ReachNoun = "run"
	ReachBackfill ReachNoun = "backfill"
	ReachProposal ReachNoun = "proposal"
)

// ReachQuery asks whether an object of a tenant belongs to an executor in reach.
type ReachQuery struct {
	Tenant TenantID
	Noun   ReachNoun
	ID     int64
	Within Reach
}
