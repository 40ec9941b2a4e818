package apply

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/client"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/login"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// inTenant calls do with a session in another tenant of the user.
func inTenant(ctx context.Context, a *cli.App, s *cli.Session, tenant string, do func(*cli.Session) error) (err error) {
	me, err := s.Me(ctx)
	if err != nil {
		return err
	}
	if me.Value.Tenant.Name == tenant {
		return do(s)
	}
	begun, err := s.Switch(ctx, tenant)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.LogOut(ctx, begun.Cookies)) }()
	settings, err := a.Settings()
	if err != nil {
		return err
	}
	there, err := client.New(a.ClientConfig(settings, login.APIKey(begun.AccessToken))) // it is sent as a key is
	if err != nil {
		return err
	}
	return do(&cli.Session{Client: there, Printer: s.Printer, Server: s.Server})
}

// each calls do with the documents that name no tenant, and then with those of each tenant and a
// session there. errDifferences comes after all calls.
func (d documents) each(ctx context.Context, a *cli.App, s *cli.Session, do func(*cli.Session, documents) error) error {
	order := []string{""}
	parts := map[string]documents{}
	for _, one := range d {
		if !slices.Contains(order, one.tenant) {
			order = append(order, one.tenant)
		}
		parts[one.tenant] = append(parts[one.tenant], one)
	}
	var differences error
	for _, tenant := range order[1:] {
		if n := parts[tenant].scripts(); n > 0 && d.makes(tenant) {
			a.Say("warning: %s of the tenant %s. No document sets what scripts may do, and a new tenant allows none.", spelling.Count(n, "document with or for scripts is", "documents with or for scripts are"), output.Clean(tenant))
			a.Say("    If it is new, make it first with carillon tenant create %s, and allow them there, as a platform administrator, with carillon script policy --languages shell", output.Clean(tenant))
		}
	}
	for _, tenant := range order {
		part := parts[tenant]
		if len(part) == 0 {
			continue
		}
		var err error
		if tenant == "" {
			err = do(s, part)
		} else {
			a.Say("Tenant %s:", output.Clean(tenant))
			err = inTenant(ctx, a, s, tenant, func(s *cli.Session) error { return do(s, part) })
		}
		p, refused := errors.AsType[*apiclient.Problem](err)
		switch {
		case refused && p.Code == apiclient.ProblemCodePermissionDenied && d.makes(tenant):
			a.Say("%s planned when the tenant is there.", spelling.Count(len(part), "document is", "documents are"))
			differences = errDifferences
		case errors.Is(err, errDifferences):
			differences = err
		case err != nil:
			return err
		}
	}
	return differences
}

// carry is each for commands that write. A plan that waits for its tenant is no error.
func (d documents) carry(ctx context.Context, a *cli.App, s *cli.Session, do func(*cli.Session, documents) error) error {
	if err := d.each(ctx, a, s, do); !errors.Is(err, errDifferences) {
		return err
	}
	return nil
}

// scripts counts the documents that need a script policy: scripts, and jobs that run scripts or
// HTTP requests of agents.
func (d documents) scripts() (n int) {
	for _, one := range d {
		handler := ""
		if spec := one.Field("spec"); spec != nil && spec.Field("handler") != nil {
			handler = spec.Field("handler").Text
		}
		if one.TextOf("kind") == "Script" || handler == "http.request" || strings.HasPrefix(handler, "script.") {
			n++
		}
	}
	return n
}

// makes reports whether the files have the document of a tenant.
func (d documents) makes(tenant string) bool {
	for _, one := range d {
		kind, name := one.Field("kind"), one.Field("name")
		if kind != nil && kind.Text == "Tenant" && name != nil && name.Text == tenant {
			return true
		}
	}
	return false
}

// exportAll exports each tenant with its settings and members. Documents name their tenant.
func exportAll(ctx context.Context, a *cli.App, s *cli.Session, only []string, declared bool) (out []json.RawMessage, err error) {
	tenants, err := apiclient.List[apiclient.Tenant](ctx, 0, s.ListTenants, apiclient.ListTenantsParams{})
	for _, one := range tenants {
		t := one.Value
		if t.State != "enabled" && t.State != "disabled" {
			a.Say("The tenant %s is %s, and left out.", output.Clean(t.Name), t.State)
			continue
		}
		err := inTenant(ctx, a, s, t.Name, func(s *cli.Session) error {
			part, err := export(ctx, s, only, declared, true, t.Name)
			out = append(out, part...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, err
}
