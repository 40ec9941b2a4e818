package access

import (
	"context"
	"slices"
	"strings"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type invitationRow struct {
	ID         int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID   int64  `gorm:"column:tenant_id"`
	Username   string `gorm:"column:username"`
	UserID     int64  `gorm:"column:user_id"`
	Role       string `gorm:"column:role"`
	InvitedBy  string `gorm:"column:invited_by"`
	InviterID  int64  `gorm:"column:inviter_id"`
	CreatedAt  int64  `gorm:"column:created_at;autoCreateTime:false"`
	ExpiresAt  int64  `gorm:"column:expires_at"`
	DeclinedAt int64  `gorm:"column:declined_at"`
	Executors  string `gorm:"column:executors"` // one name per line
}

func (invitationRow) TableName() string { return "invitations" }

func (r invitationRow) invitation() domain.Invitation {
	return domain.Invitation{
		ID: domain.InvitationID(r.ID), TenantID: domain.TenantID(r.TenantID), Username: r.Username, Role: domain.Role(r.Role), Scope: domain.Scope{Executors: db.Lines(r.Executors)},
		InvitedBy: r.InvitedBy, Inviter: domain.UserID(r.InviterID), CreatedAt: db.Instant(r.CreatedAt), ExpiresAt: db.Instant(r.ExpiresAt),
	}
}

func (s *Invitations) CreateInvitation(ctx context.Context, p store.CreateInvitationParams) (domain.Invitation, error) {
	return db.Value(ctx, s.Run, "create invitation", func(t *db.Tx) (domain.Invitation, error) {
		i := p.Invitation
		// The tenant's row makes two of them count one after the other.
		var tenant record.TenantRow
		if err := t.Gorm.Clauses(t.Locking()...).Where("id = ?", int64(i.TenantID)).Take(&tenant).Error; err != nil {
			return i, err
		}
		now, err := t.Clock()
		if err != nil {
			return i, err
		}
		if _, err := t.Exec(t.Ctx, "DELETE FROM invitations WHERE tenant_id = ? AND expires_at <= ?", int64(i.TenantID), db.Millis(now)); err != nil {
			return i, err
		}
		var users []userRow
		if err := t.Gorm.Where("username = ?", i.Username).Find(&users).Error; err != nil {
			return i, err
		}
		var user, member, open int64
		if len(users) > 0 {
			user = users[0].ID
		}
		if err := t.Gorm.Model(&membershipRow{}).Where("tenant_id = ? AND user_id = ?", int64(i.TenantID), user).Count(&member).Error; err != nil {
			return i, err
		}
		if member > 0 {
			return i, domain.Errorf(domain.CodeConflict, "%q belongs to this tenant already", i.Username)
		}
		if err := t.Gorm.Model(&invitationRow{}).Where("tenant_id = ?", int64(i.TenantID)).Count(&open).Error; err != nil {
			return i, err
		}
		if open >= int64(p.Most) {
			return i, domain.Errorf(domain.CodeConflict, "there are %d open invitations, which is the most; take one back first", open)
		}
		i.CreatedAt, i.ExpiresAt = now, now.Add(p.TTL)
		t.Audited(domain.AuditObject{ID: i.ID.String(), Name: i.Username, After: domain.AuditedRole(i.Role, i.Scope)})
		err = t.Gorm.Create(&invitationRow{
			ID: int64(i.ID), TenantID: int64(i.TenantID), Username: i.Username, UserID: user, Role: string(i.Role), Executors: strings.Join(i.Scope.Executors, "\n"),
			InvitedBy: i.InvitedBy, InviterID: int64(i.Inviter), CreatedAt: db.Millis(i.CreatedAt), ExpiresAt: db.Millis(i.ExpiresAt),
		}).Error
		if db.IsDuplicate(err) {
			return i, domain.Errorf(domain.CodeConflict, "%q is invited already", i.Username)
		}
		return i, err
	})
}

func (s *Invitations) ListInvitations(ctx context.Context, tenant domain.TenantID) ([]domain.Invitation, error) {
	rows, err := db.FindAll[invitationRow](ctx, s.DB, "list invitations", "id", "tenant_id = ?", int64(tenant))
	return s.open(ctx, rows, err)
}

func (s *Invitations) ListInvitationsOf(ctx context.Context, user domain.UserID) ([]domain.Invitation, error) {
	if user == 0 {
		return nil, nil // those are nobody's
	}
	rows, err := db.FindAll[invitationRow](ctx, s.DB, "list invitations", "id", "user_id = ? AND declined_at = 0", int64(user))
	return s.open(ctx, rows, err)
}

// open leaves out what has expired, by the database's clock.
func (s *Invitations) open(ctx context.Context, rows []invitationRow, err error) ([]domain.Invitation, error) {
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]domain.Invitation, 0, len(rows))
	for _, r := range rows {
		if r.ExpiresAt > db.Millis(now) {
			out = append(out, r.invitation())
		}
	}
	return out, nil
}

func (s *Invitations) DeleteInvitation(ctx context.Context, tenant domain.TenantID, id domain.InvitationID) error {
	return s.Run(ctx, "delete invitation", func(t *db.Tx) error {
		var was []invitationRow
		if err := t.Gorm.Where("id = ? AND tenant_id = ?", int64(id), int64(tenant)).Find(&was).Error; err != nil {
			return err
		}
		for _, r := range was {
			t.Audited(domain.AuditObject{Name: r.Username, Before: domain.AuditedRole(domain.Role(r.Role), domain.Scope{Executors: db.Lines(r.Executors)})})
		}
		return t.MustFind("invitation", id, "DELETE FROM invitations WHERE id = ? AND tenant_id = ?", int64(id), int64(tenant))
	})
}

func (s *Invitations) AcceptInvitation(ctx context.Context, user domain.UserID, id domain.InvitationID) error {
	return s.Run(ctx, "accept invitation", func(t *db.Tx) error {
		// The account's row: what its tenants may do with it depends on how many
		// they are (UpdateUser, DeleteMembership).
		if _, err := lockUser(t, user); err != nil {
			return err
		}
		row, err := answerable(t, user, id)
		if err != nil {
			return err
		}
		m := domain.Membership{TenantID: domain.TenantID(row.TenantID), UserID: user, Role: domain.Role(row.Role), Scope: domain.Scope{Executors: db.Lines(row.Executors)}}
		if err := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).Create(toMembershipRow(m)).Error; err != nil {
			return err
		}
		return t.MustFind("invitation", id, "DELETE FROM invitations WHERE id = ? AND tenant_id = ?", int64(id), row.TenantID)
	})
}

func (s *Invitations) DeclineInvitation(ctx context.Context, user domain.UserID, id domain.InvitationID) error {
	return s.Run(ctx, "decline invitation", func(t *db.Tx) error {
		row, err := answerable(t, user, id)
		if err != nil {
			return err
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		_, err = t.Exec(t.Ctx, "UPDATE invitations SET declined_at = ? WHERE id = ? AND tenant_id = ?", db.Millis(now), int64(id), row.TenantID)
		return err
	})
}

// answerable locks an invitation that the account can answer. CodeNotFound.
func answerable(t *db.Tx, user domain.UserID, id domain.InvitationID) (row invitationRow, err error) {
	var rows []invitationRow
	if err := t.Gorm.Clauses(t.Locking()...).Where("id = ?", int64(id)).Find(&rows).Error; err != nil {
		return row, err
	}
	now, err := t.Clock()
	if err != nil {
		return row, err
	}
	rows = slices.DeleteFunc(rows, func(r invitationRow) bool {
		return r.UserID == 0 || r.UserID != int64(user) || r.DeclinedAt != 0 || r.ExpiresAt <= db.Millis(now)
	})
	if len(rows) == 0 {
		return row, db.NotFound("invitation", id)
	}
	return rows[0], nil
}

// lockUser locks an account. CodeNotFound.
func lockUser(t *db.Tx, user domain.UserID) (row userRow, err error) {
	err = t.Gorm.Clauses(t.Locking()...).Where("id = ?", int64(user)).Take(&row).Error
	return row, err
}
