package provision

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/internal/document"
)

// Bounds of a file; more than that is made through the API.
const (
	maxFile   = 1 << 20 // bytes
	maxThings = 1000    // of all kinds together
	maxUsers  = 100     // each costs a password's hash
	maxSecret = 4 << 10 // bytes
)

// by is who is said to have made what a file declares.
const by = "provisioning"

// Declaration is a file that was found to be good.
type Declaration struct {
	// Receivers are the default receivers of tenants that name some.
	Receivers []Receiver

	file string
	// adminPassword is that of the first administrator; empty: the file says none.
	adminPassword string
	params        store.ProvisionParams
	passwords     []string // of params.Users
}

// Read judges a file. What is wrong with it is an *Error. Secrets are read, too:
// from files, whose paths count from the folder of this one, and from variables.
func Read(path string, getenv func(string) string) (*Declaration, error) {
	raw, err := readBounded(path, maxFile)
	if err != nil {
		return nil, &Error{File: path, Problems: []Problem{{Text: err.Error()}}}
	}
	r := &reader{dir: filepath.Dir(path), getenv: getenv, names: map[string]int{}, secrets: map[string]int{}}
	d := &Declaration{file: path, params: store.ProvisionParams{By: by}}
	if root := r.parse(raw); root != nil {
		r.declaration(d, root)
	}
	if len(r.problems) > 0 {
		return nil, &Error{File: path, Problems: r.sorted()}
	}
	return d, nil
}

// Receiver has the default addresses for failures of a tenant.
type Receiver struct {
	Tenant string
	Emails []string
	// Line and Where are its place in the file.
	Line  int
	Where string
}

// Fits holds the file against the node's own settings: an administrator's password that they
// name already, and the check of addresses for alerts. What is wrong is an *Error. It returns
// the password that counts.
func (d *Declaration) Fits(password string, check func(addresses []string) error) (string, error) {
	var wrong []Problem
	for _, r := range d.Receivers {
		if err := check(r.Emails); err != nil {
			wrong = append(wrong, Problem{Line: r.Line, Where: r.Where, Text: err.Error()})
		}
	}
	if d.adminPassword != "" && password != "" {
		wrong = append(wrong, Problem{
			Where: "administrator.password", Text: "it is given by --admin-password-file or CARILLON_ADMIN_PASSWORD, too: leave one of them out",
		})
	}
	if len(wrong) > 0 {
		return "", &Error{File: d.file, Problems: wrong}
	}
	return cmp.Or(d.adminPassword, password), nil
}

// Summary counts what is declared.
func (d *Declaration) Summary() string {
	counts := map[string]int{"tenant": len(d.params.Tenants), "user": len(d.params.Users)}
	for _, t := range d.params.Tenants {
		counts["executor"] += len(t.Executors)
		counts["API key"] += len(t.APIKeys)
		for _, e := range t.Executors {
			counts["join token"] += len(e.JoinTokens)
		}
	}
	var out []string
	for _, kind := range []string{"tenant", "executor", "join token", "API key", "user"} {
		n := strconv.Itoa(counts[kind]) + " " + kind
		if counts[kind] != 1 {
			n += "s"
		}
		out = append(out, n)
	}
	return strings.Join(out, ", ")
}

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return raw, err
}

// parse returns the root of the only document.
func (r *reader) parse(raw []byte) *document.Value {
	values, err := document.Read(raw)
	var wrong *document.Error
	switch {
	case errors.As(err, &wrong):
		r.problems = append(r.problems, Problem{Line: wrong.Line, Text: wrong.Text})
	case len(values) == 0:
		r.problems = append(r.problems, Problem{Line: 1, Text: "the file declares nothing"})
	case len(values) > 1:
		r.fail(values[1], "", "the file has more than one document")
	default:
		return values[0]
	}
	return nil
}

func (r *reader) declaration(d *Declaration, root *document.Value) {
	r.object(root, "", fields{
		"administrator": func(n *document.Value, at string) {
			r.object(n, at, fields{"password": func(n *document.Value, at string) {
				d.adminPassword = r.secret(n, at)
				r.strong(n, at, auth.FirstUser, d.adminPassword)
			}})
		},
		"tenants": func(n *document.Value, at string) {
			r.list(n, at, func(n *document.Value, at string) { d.params.Tenants = append(d.params.Tenants, r.tenant(d, n, at)) })
		},
		"users": func(n *document.Value, at string) {
			r.list(n, at, func(n *document.Value, at string) { r.user(d, n, at) })
			if len(d.params.Users) > maxUsers {
				r.fail(n, at, "there are more than %d: make the others through the API", maxUsers)
			}
		},
	})
	for _, check := range r.atEnd {
		check()
	}
}

func (r *reader) tenant(d *Declaration, n *document.Value, at string) (t store.ProvisionTenant) {
	var to *Receiver
	r.object(n, at, fields{
		"name": func(n *document.Value, at string) {
			t.Name = r.name(n, at, domain.TenantNames, "must be lower-case letters, digits and hyphens, beginning with a letter")
			r.unique(n, at, "tenant", t.Name)
		},
		"quotas": func(n *document.Value, at string) {
			t.Quotas = map[domain.QuotaKind]int64{}
			kinds := fields{}
			for _, k := range domain.QuotaKinds {
				kinds[string(k)] = func(n *document.Value, at string) { t.Quotas[k] = r.number(n, at, k.Most()) }
			}
			r.object(n, at, kinds)
		},
		"alertTo": func(n *document.Value, at string) {
			to = &Receiver{Line: n.Line, Where: at}
			r.list(n, at, func(n *document.Value, at string) { to.Emails = append(to.Emails, r.address(n, at)) })
		},
		"executors": func(n *document.Value, at string) {
			names := map[string]int{}
			r.list(n, at, func(n *document.Value, at string) { t.Executors = append(t.Executors, r.executor(n, at, names)) })
		},
		"apiKeys": func(n *document.Value, at string) {
			r.list(n, at, func(n *document.Value, at string) { t.APIKeys = append(t.APIKeys, r.apiKey(n, at)) })
		},
	}, "name")
	if to != nil && len(to.Emails) > 0 {
		to.Tenant = t.Name
		d.Receivers = append(d.Receivers, *to)
	}
	return t
}

// address reads a mail address.
func (r *reader) address(n *document.Value, at string) string {
	text := r.text(n, at)
	parsed, err := netmail.ParseAddress(text)
	if err != nil {
		if n.IsScalar() {
			r.fail(n, at, "%q is no mail address: use one such as ops@example.com", text)
		}
		return ""
	}
	return parsed.Address
}

func (r *reader) executor(n *document.Value, at string, names map[string]int) (e store.ProvisionExecutor) {
	r.object(n, at, fields{
		"name": func(n *document.Value, at string) {
			e.Name = r.name(n, at, domain.ExecutorNames, "must be letters, digits and . _ -, beginning with a letter or digit")
			if e.Name == domain.BuiltInExecutor {
				r.fail(n, at, "is the name of the executor that the admin nodes are the instances of")
			}
			r.uniqueIn(names, n, at, "executor", e.Name)
		},
		"description": func(n *document.Value, at string) { e.Description = r.text(n, at) },
		"joinTokens": func(n *document.Value, at string) {
			r.list(n, at, func(n *document.Value, at string) { e.JoinTokens = append(e.JoinTokens, r.joinToken(n, at)) })
		},
	}, "name")
	for i := range e.JoinTokens {
		if e.JoinTokens[i].Name == "" {
			e.JoinTokens[i].Name = e.Name
		}
	}
	return e
}

func (r *reader) joinToken(n *document.Value, at string) (j domain.JoinToken) {
	r.object(n, at, fields{
		"name": func(n *document.Value, at string) { j.Name = r.label(n, at) },
		"secret": func(n *document.Value, at string) {
			j.Prefix, j.Hash = r.imported(n, at, auth.ImportJoinToken, "join-token")
		},
		"expiresAt":   func(n *document.Value, at string) { j.ExpiresAt = r.instant(n, at) },
		"maxUses":     func(n *document.Value, at string) { j.MaxUses = int(r.number(n, at, 1_000_000)) },
		"declareJobs": func(n *document.Value, at string) { j.NoJobs = !r.flag(n, at) },
	}, "secret")
	return j
}

func (r *reader) apiKey(n *document.Value, at string) (k domain.APIKey) {
	bounds := map[string]func(why string){} // refuse a scope; the role may stand below
	r.object(n, at, fields{
		"name": func(n *document.Value, at string) { k.Name = r.label(n, at) },
		"role": func(n *document.Value, at string) { k.Role = r.keyRole(n, at) },
		"secret": func(n *document.Value, at string) {
			k.Prefix, k.Hash = r.imported(n, at, auth.ImportAPIKey, "api-key")
		},
		"expiresAt": func(n *document.Value, at string) { k.ExpiresAt = r.instant(n, at) },
		"executors": func(n *document.Value, at string) {
			bounds["executors"] = func(why string) { r.fail(n, at, "%s", why) }
			k.Scope.Executors = r.targets(n, at, func(name string) bool { return domain.ExecutorNames.MatchString(name) }, "must be the name of an executor")
		},
		"callHandlers": func(n *document.Value, at string) {
			bounds["handlers"] = func(why string) { r.fail(n, at, "%s", why) }
			k.Scope.Handlers = r.targets(n, at, func(name string) bool {
				executor, handler, _ := strings.Cut(name, "/")
				return domain.ExecutorNames.MatchString(executor) && handler != "" && strings.TrimSpace(handler) == handler
			}, "must be an executor and one of its handlers, such as shop/cancel-order")
		},
	}, "name", "role", "secret")
	if list, why := domain.WrongScope(k.Role, k.Scope); bounds[list] != nil {
		bounds[list](why)
	}
	return k
}

func (r *reader) targets(n *document.Value, at string, ok func(string) bool, must string) (out []string) {
	r.list(n, at, func(n *document.Value, at string) {
		name := r.label(n, at)
		if name != "" && !ok(name) {
			r.fail(n, at, "%q: %s", name, must)
		}
		out = append(out, name)
	})
	if len(out) == 0 && n.Kind == document.List {
		r.fail(n, at, "names nothing: leave it out for all, or name some")
	}
	if len(out) > domain.MaxScopeNames {
		r.fail(n, at, "there are more than %d", domain.MaxScopeNames)
	}
	return out
}

func (r *reader) user(d *Declaration, n *document.Value, at string) {
	u := store.ProvisionUser{User: domain.User{SessionVersion: 1}, Roles: map[string]domain.Role{}}
	password, check := "", func() {}
	r.object(n, at, fields{
		"username": func(n *document.Value, at string) {
			u.User.Username = r.name(n, at, domain.UserNames, "must be small letters, digits and . _ @ + -, beginning with a letter or digit")
			r.unique(n, at, "user", u.User.Username)
			if u.User.Username == auth.FirstUser {
				r.fail(n, at, "is the first administrator: give the password below administrator")
			}
		},
		"password": func(n *document.Value, at string) {
			password = r.secret(n, at)
			check = func() { r.strong(n, at, u.User.Username, password) }
		},
		"mustChangePassword": func(n *document.Value, at string) { u.User.MustChangePassword = r.flag(n, at) },
		"platformAdmin":      func(n *document.Value, at string) { u.User.PlatformAdmin = r.flag(n, at) },
		"memberships": func(n *document.Value, at string) {
			r.list(n, at, func(n *document.Value, at string) { r.membership(u.Roles, n, at) })
		},
	}, "username", "password")
	check()
	if len(u.Roles) == 0 && !u.User.PlatformAdmin {
		r.fail(n, at, "belongs to no tenant: name some as memberships, each with a role")
	}
	d.params.Users, d.passwords = append(d.params.Users, u), append(d.passwords, password)
}

func (r *reader) membership(roles map[string]domain.Role, n *document.Value, at string) {
	var tenant string
	var role domain.Role
	r.object(n, at, fields{
		"tenant": func(n *document.Value, at string) {
			tenant = r.text(n, at)
			r.atEnd = append(r.atEnd, func() {
				if _, declared := r.names["tenant "+tenant]; !declared && tenant != auth.FirstTenant {
					r.fail(n, at, "this file declares no tenant %q", tenant)
				}
			})
		},
		"role": func(n *document.Value, at string) { role = r.role(n, at) },
	}, "tenant", "role")
	if _, twice := roles[tenant]; twice {
		r.fail(n, at, "the user has a role in %q already", tenant)
	}
	roles[tenant] = role
}
