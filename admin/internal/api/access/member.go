package access

import (
	"context"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// memberKind is the kind of documents that are members of a tenant.
var memberKind = resource.Of(resource.Kind{
	Name: "Member", Component: "MemberDocument", Noun: "member", Path: "users", Read: domain.PermAdmin, Edit: domain.PermAdmin,
}, resource.Rules[MemberRole]{})

// MemberRole is what is written of a member beside the name of the account.
type MemberRole struct {
	Role      string   `json:"role" enum:"viewer,operator,editor,scripter,admin" doc:"What the account may do in this tenant"`
	Executors []string `json:"executors,omitempty" maxItems:"30" doc:"Names of the executors that the role is bound to; default: the whole tenant"`

	invited bool // nobody has accepted yet
}

type memberDocument = resource.Document[MemberRole]

// registerMembers adds members as documents. The document of an account that is no member is an
// invitation: a tenant does not learn whether the account exists.
func (a *api) registerMembers() {
	k := &document.Kept[MemberRole]{Kind: memberKind, NewID: a.deps.NewID, Read: a.readMembers, Check: a.checkMember, Write: a.writeMember, Remove: a.removeMember}
	op := k.Add(a.Server)
	op.Tag, op.Summary = "access", "List members as documents"
	op.Description = "By name, with those that are invited, as apply-documents takes them. The document of an account that is no member is an invitation of it."
	web.Register(a.Server, web.May(domain.PermAdmin), op, func(ctx context.Context, id auth.Identity, in *web.PageParams) (*document.List, error) {
		at, err := web.DecodeCursor(in.Cursor, op.ID)
		if err != nil {
			return nil, err
		}
		all, err := a.members(ctx, id.Tenant)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(d *memberDocument) bool { return d.Name <= at.Name })
		rows, more := web.Cut(all[:min(len(all), in.Limit+1)], in.Limit)
		var next *string
		if more {
			next = web.Cursor{List: op.ID, Name: rows[len(rows)-1].Name}.Encode()
		}
		return k.Page(rows, next)
	})
}

// members are the members and the invitations of a tenant, by name.
func (a *api) members(ctx context.Context, tenant domain.TenantID) ([]*memberDocument, error) {
	list, err := a.deps.Store.ListMembers(ctx, tenant)
	if err != nil {
		return nil, err
	}
	invitations, err := a.deps.Store.ListInvitations(ctx, tenant)
	if err != nil {
		return nil, err
	}
	out := domain.Collect(list, func(m *store.Member) *memberDocument {
		return &memberDocument{
			Meta: resource.Meta{ID: int64(m.User.ID), Tenant: tenant, Name: m.User.Username, Version: 1, CreatedAt: m.User.CreatedAt, UpdatedAt: m.User.CreatedAt},
			Spec: MemberRole{Role: string(m.Role), Executors: m.Scope.Executors},
		}
	})
	for _, i := range invitations {
		out = append(out, &memberDocument{
			Meta: resource.Meta{ID: int64(i.ID), Tenant: tenant, Name: i.Username, Version: 1, CreatedAt: i.CreatedAt, CreatedBy: i.InvitedBy, UpdatedAt: i.CreatedAt, UpdatedBy: i.InvitedBy},
			Spec: MemberRole{Role: string(i.Role), Executors: i.Scope.Executors, invited: true},
		})
	}
	slices.SortStableFunc(out, func(a, b *memberDocument) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (a *api) readMembers(ctx context.Context, id auth.Identity, names []string, ids []int64) ([]*memberDocument, error) {
	all, err := a.members(ctx, id.Tenant)
	if err != nil {
		return nil, err
	}
	byName, byID := map[string]*memberDocument{}, map[int64]*memberDocument{}
	for _, d := range slices.Backward(all) { // a member before an invitation of the same name
		byName[d.Name], byID[d.ID] = d, d
	}
	out := make([]*memberDocument, 0, len(names)+len(ids))
	for _, name := range names {
		out = append(out, byName[auth.NormalUsername(name)])
	}
	for _, one := range ids {
		out = append(out, byID[one])
	}
	return out, nil
}

func (a *api) checkMember(ctx context.Context, id auth.Identity, d *resource.Draft[MemberRole], coming resource.Coming) error {
	if d.Name != auth.NormalUsername(d.Name) || !domain.UserNames.MatchString(d.Name) {
		return domain.Invalid("body.name", "must be lower-case letters, digits and . _ @ + -, beginning with a letter or digit")
	}
	if len(d.Spec.Executors) == 0 {
		d.Spec.Executors = nil
	}
	scope, err := readScope("body.spec.", domain.Role(d.Spec.Role), d.Spec.Executors)
	if err == nil {
		err = a.exist(ctx, id.Tenant, "body.spec.", scope, func(name string) bool {
			return coming[[2]string{"Executor", name}] || d.Old != nil && slices.Contains(d.Old.Spec.Executors, name)
		})
	}
	if err != nil {
		return err
	}
	switch {
	case d.Old == nil || d.Old.Spec.invited:
		if id.Kind == auth.KindAPIKey && (d.Old == nil || !sameRole(&d.Old.Spec, &d.Spec)) {
			return errKeyInvites()
		}
		if d.Old == nil {
			d.Warnings = []resource.Warning{{Code: "invites", Text: "a document makes no account: it invites the account of this name, which has to accept; a platform administrator makes one with carillon user create"}}
		}
	case d.Old.ID == int64(id.User) && !sameRole(&d.Old.Spec, &d.Spec):
		return domain.Errorf(domain.CodeConflict, "you cannot change your own role; ask another administrator")
	}
	return nil
}

func sameRole(a, b *MemberRole) bool {
	return a.Role == b.Role && slices.Equal(a.Executors, b.Executors)
}

func (a *api) writeMember(ctx context.Context, id auth.Identity, meta resource.Meta, old *memberDocument, spec *MemberRole) (int64, error) {
	scope := domain.Scope{Executors: spec.Executors}
	if old != nil && !old.Spec.invited {
		user := domain.UserID(meta.ID)
		if err := a.deps.Store.SaveMembership(ctx, domain.Membership{TenantID: id.Tenant, UserID: user, Role: domain.Role(spec.Role), Scope: scope}); err != nil {
			return 0, err
		}
		a.deps.Auth.Forget(user)
		a.deps.Log.Info("user changed", "user", meta.Name, "role", spec.Role, "executors", spec.Executors, "by", id)
		return 1, nil
	}
	if old != nil { // an invitation is not edited
		if err := a.deps.Store.DeleteInvitation(domain.WithAudit(ctx, nil), id.Tenant, domain.InvitationID(old.ID)); err != nil {
			return 0, err
		}
	}
	_, err := a.invite(ctx, id, domain.InvitationID(meta.ID), meta.Name, domain.Role(spec.Role), scope)
	return 1, err
}

func (a *api) removeMember(ctx context.Context, id auth.Identity, old *memberDocument) error {
	if old.Spec.invited {
		return a.deps.Store.DeleteInvitation(ctx, id.Tenant, domain.InvitationID(old.ID))
	}
	return a.removeFrom(ctx, id, domain.UserID(old.ID), old.Name)
}
