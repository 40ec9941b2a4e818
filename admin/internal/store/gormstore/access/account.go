package access

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Access is the nouns of this package.
type Access struct {
	Accounts
	Tokens
	Invitations
	Trust
	Refusals
}

type (
	// Accounts is tenants, users and memberships of store.Accounts.
	Accounts struct {
		*db.DB
		// engine counts a tenant's instances anew when its quota has changed.
		engine *engine.Engine
	}
	// Tokens is the refresh tokens, API keys and join tokens of store.Accounts.
	Tokens struct{ *db.DB }
	// Invitations is store.Invitations.
	Invitations struct{ *db.DB }
	// Trust is store.Trust.
	Trust struct{ *db.DB }
	// Refusals is store.Refusals.
	Refusals struct{ *db.DB }
)

// New works on the engine's database.
func New(db *db.DB, engine *engine.Engine) Access {
	return Access{Accounts{db, engine}, Tokens{db}, Invitations{db}, Trust{db}, Refusals{db}}
}

type userRow struct {
	ID                 int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	Username           string `gorm:"column:username"`
	PasswordHash       string `gorm:"column:password_hash"`
	PlatformAdmin      bool   `gorm:"column:platform_admin"`
	MustChangePassword bool   `gorm:"column:must_change_password"`
	Disabled           bool   `gorm:"column:disabled"`
	SessionVersion     int64  `gorm:"column:session_version"`
	Preferences        string `gorm:"column:preferences"`
	CreatedAt          int64  `gorm:"column:created_at;autoCreateTime:false"`
}

func (userRow) TableName() string { return "users" }

func toUserRow(u domain.User) *userRow {
	return &userRow{
		ID: int64(u.ID), Username: u.Username, PasswordHash: u.PasswordHash, PlatformAdmin: u.PlatformAdmin,
		MustChangePassword: u.MustChangePassword, Disabled: u.Disabled, SessionVersion: u.SessionVersion, Preferences: preferencesText(u.Preferences), CreatedAt: db.Millis(u.CreatedAt),
	}
}

func (r userRow) user() domain.User {
	var chosen domain.Preferences
	if r.Preferences != "" {
		_ = json.Unmarshal([]byte(r.Preferences), &chosen) // of a newer version: nothing is chosen
	}
	return domain.User{
		Preferences: chosen,
		ID:          domain.UserID(r.ID), Username: r.Username, PasswordHash: r.PasswordHash, PlatformAdmin: r.PlatformAdmin,
		MustChangePassword: r.MustChangePassword, Disabled: r.Disabled, SessionVersion: r.SessionVersion, CreatedAt: db.Instant(r.CreatedAt),
	}
}

type membershipRow struct {
	TenantID int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	UserID   int64  `gorm:"column:user_id;primaryKey;autoIncrement:false"`
	Role     string `gorm:"column:role"`
	// Executors has one name per line.
	Executors string `gorm:"column:executors"`
}

func (membershipRow) TableName() string { return "memberships" }

func toMembershipRow(m domain.Membership) *membershipRow {
	return &membershipRow{int64(m.TenantID), int64(m.UserID), string(m.Role), strings.Join(m.Scope.Executors, "\n")}
}

func (r membershipRow) membership() domain.Membership {
	return domain.Membership{
		TenantID: domain.TenantID(r.TenantID), UserID: domain.UserID(r.UserID), Role: domain.Role(r.Role), Scope: domain.Scope{Executors: db.Lines(r.Executors)},
	}
}

func (s *Accounts) CreateTenant(ctx context.Context, tenant domain.Tenant) error {
	return s.Run(ctx, "create tenant", func(t *db.Tx) error { return createTenant(t, tenant) })
}

func createTenant(t *db.Tx, tenant domain.Tenant) error {
	row := record.TenantRow{ID: int64(tenant.ID), Name: tenant.Name, State: int64(domain.TenantEnabled), Version: 1, CreatedAt: db.Millis(tenant.CreatedAt)}
	auditTenant(t, nil, &row)
	return db.NameTaken(t.Gorm.Create(&row).Error, "tenant", tenant.Name)
}

func (s *Accounts) FindTenant(ctx context.Context, id domain.TenantID) (domain.Tenant, error) {
	row, err := db.FindOne[record.TenantRow](ctx, s.DB, "find tenant", "id = ?", int64(id))
	return row.Tenant(), err
}

func (s *Accounts) FindTenantByName(ctx context.Context, name string) (domain.Tenant, error) {
	row, err := db.FindOne[record.TenantRow](ctx, s.DB, "find tenant", "name = ?", name)
	return row.Tenant(), err
}

func (s *Accounts) ListTenants(ctx context.Context) ([]domain.Tenant, error) {
	rows, err := db.FindAll[record.TenantRow](ctx, s.DB, "list tenants", "name", "1 = 1")
	out := domain.Collect(rows, (*record.TenantRow).Tenant)
	return out, err
}

// firstUserMark is a row that only one of several nodes can insert.
const firstUserMark = "first_user"

func (s *Accounts) CreateFirstUser(ctx context.Context, tenant domain.Tenant, u domain.User, role domain.Role) (created bool, err error) {
	return db.Value(ctx, s.RunRepeatable, "create first user", func(t *db.Tx) (created bool, err error) {
		mark := record.ClusterValueRow{Name: firstUserMark, Value: u.ID.String()}
		if err := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).Create(&mark).Error; err != nil {
			return false, err
		}
		var stored record.ClusterValueRow
		if err := t.Gorm.Where("name = ?", firstUserMark).Take(&stored).Error; err != nil {
			return false, err
		}
		var users, mine int64
		if err := t.Gorm.Model(&userRow{}).Count(&users).Error; err != nil {
			return false, err
		}
		if users > 0 || stored.Value != mark.Value {
			// A repetition after a lost commit finds its own user.
			err := t.Gorm.Model(&userRow{}).Where("id = ?", int64(u.ID)).Count(&mine).Error
			domain.AuditOf(t.Ctx).Drop() // an earlier start has made it
			return mine == 1 && stored.Value == mark.Value, err
		}
		if err := createTenant(t, tenant); err != nil {
			return false, err
		}
		if !s.AuditMark.IsSet() {
			domain.AuditOf(t.Ctx).Drop()
		}
		return true, createUser(t, u, domain.Membership{TenantID: tenant.ID, UserID: u.ID, Role: role})
	})
}

func (s *Accounts) CreateUser(ctx context.Context, u domain.User, places ...domain.Membership) error {
	return s.Run(ctx, "create user", func(t *db.Tx) error { return createUser(t, u, places...) })
}

func createUser(t *db.Tx, u domain.User, places ...domain.Membership) error {
	slices.SortFunc(places, func(a, b domain.Membership) int { return cmp.Compare(a.TenantID, b.TenantID) }) // in the order of locks
	for _, m := range places {
		if err := record.Grow(t, m.TenantID, record.Growth{Kind: domain.QuotaUsers, By: 1}); err != nil {
			return err
		}
	}
	if err := t.Gorm.Create(toUserRow(u)).Error; err != nil {
		if db.IsDuplicate(err) { // by an account here or in another tenant: that is not told
			err = domain.Errorf(domain.CodeConflict, "the user name %q is taken", u.Username)
		}
		return err
	}
	for _, m := range places {
		m.UserID = u.ID
		if err := t.Gorm.Create(toMembershipRow(m)).Error; err != nil {
			return err
		}
	}
	return auditAccount(t, &u, places)
}

// auditAccount tells the audit log of a new account. The entry of the operation has all its
// memberships, unless it is about one of their tenants. Each other tenant has an entry with its
// own.
func auditAccount(t *db.Tx, u *domain.User, places []domain.Membership) error {
	if domain.AuditOf(t.Ctx) == nil {
		return nil
	}
	o := domain.AuditObject{Kind: "user", ID: u.ID.String(), Name: u.Username}
	if len(places) == 1 && !u.PlatformAdmin && places[0].TenantID == domain.AuditOf(t.Ctx).Entry().Tenant {
		o.After = domain.AuditedRole(places[0].Role, places[0].Scope)
		t.Audited(o)
		return nil
	}
	names := map[int64]string{}
	if len(places) > 0 {
		var err error
		ids := domain.Collect(places, func(m *domain.Membership) domain.TenantID { return m.TenantID })
		if names, err = db.Pairs[int64, string](t.Ctx, t.Conn, "SELECT id, name FROM tenants WHERE id IN ("+db.IDList(ids)+")"); err != nil {
			return err
		}
	}
	members := make([]db.Facts, len(places))
	for i, m := range places {
		members[i] = db.Facts{"tenant": names[int64(m.TenantID)], "role": m.Role}
		if len(m.Scope.Executors) > 0 {
			members[i]["executors"] = m.Scope.Executors
		}
	}
	t.AuditedChange(o, nil, db.Facts{"platformAdmin": u.PlatformAdmin, "memberships": members})
	for _, m := range places {
		o.After = domain.AuditedRole(m.Role, m.Scope)
		t.AuditedElsewhere(m.TenantID, o)
	}
	return nil
}

func (s *Accounts) FindUser(ctx context.Context, id domain.UserID) (domain.User, error) {
	row, err := db.FindOne[userRow](ctx, s.DB, "find user", "id = ?", int64(id))
	return row.user(), err
}

func (s *Accounts) FindUserByName(ctx context.Context, username string) (domain.User, error) {
	row, err := db.FindOne[userRow](ctx, s.DB, "find user", "username = ?", username)
	return row.user(), err
}

func (s *Accounts) ListMembers(ctx context.Context, tenant domain.TenantID) (out []store.Member, err error) {
	err = s.Look(ctx, "list members", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		var rows []struct {
			User      userRow `gorm:"embedded"`
			Role      string  `gorm:"column:role"`
			Executors string  `gorm:"column:executors"`
		}
		err := g.Table("memberships AS m").Select("u.*, m.role, m.executors").Joins("JOIN users AS u ON u.id = m.user_id").
			Where("m.tenant_id = ?", int64(tenant)).Order("u.username").Find(&rows).Error
		out = make([]store.Member, len(rows))
		for i, r := range rows {
			out[i] = store.Member{User: r.User.user(), Role: domain.Role(r.Role), Scope: domain.Scope{Executors: db.Lines(r.Executors)}}
		}
		return err
	})
	return out, err
}

func (s *Accounts) ListMemberships(ctx context.Context, user domain.UserID) ([]domain.Membership, error) {
	rows, err := db.FindAll[membershipRow](ctx, s.DB, "list memberships", "tenant_id", "user_id = ?", int64(user))
	out := domain.Collect(rows, (*membershipRow).membership)
	return out, err
}

func (s *Accounts) SaveMembership(ctx context.Context, m domain.Membership) error {
	return s.RunRepeatable(ctx, "save membership", func(t *db.Tx) error {
		var there int64
		if err := t.Gorm.Model(&membershipRow{}).Where("tenant_id = ? AND user_id = ?", int64(m.TenantID), int64(m.UserID)).Count(&there).Error; err != nil {
			return err
		}
		if err := record.Grow(t, m.TenantID, record.Growth{Kind: domain.QuotaUsers, By: 1 - there}); err != nil {
			return err
		}
		return t.Gorm.Clauses(clause.OnConflict{UpdateAll: true}).Create(toMembershipRow(m)).Error
	})
}

func (s *Accounts) DeleteMembership(ctx context.Context, tenant domain.TenantID, user domain.UserID) error {
	return s.Run(ctx, "delete membership", func(t *db.Tx) error {
		u, err := lockUser(t, user)
		if err != nil {
			return err
		}
		var was []membershipRow
		if err := t.Gorm.Where("tenant_id = ? AND user_id = ?", int64(tenant), int64(user)).Find(&was).Error; err != nil {
			return err
		}
		if err := t.MustFind("user", user, "DELETE FROM memberships WHERE tenant_id = ? AND user_id = ?", int64(tenant), int64(user)); err != nil {
			return err
		}
		t.Audited(domain.AuditObject{Name: u.Username, Before: domain.AuditedRole(domain.Role(was[0].Role), was[0].membership().Scope)})
		_, err = t.Exec(t.Ctx, "UPDATE api_keys SET revoked_at = "+t.Dialect.Clock()+" WHERE tenant_id = ? AND owner_id = ? AND revoked_at = 0", int64(tenant), int64(user))
		if err != nil {
			return err
		}
		left, err := tenantsBut(t, tenant, user)
		if err != nil || left > 0 || u.PlatformAdmin {
			return err
		}
		_, err = t.Exec(t.Ctx, "UPDATE users SET disabled = 1, session_version = session_version + 1 WHERE id = ?", int64(user))
		return err
	})
}

// tenantsBut counts the tenants of an account without one.
func tenantsBut(t *db.Tx, tenant domain.TenantID, user domain.UserID) (n int64, err error) {
	err = t.Gorm.Model(&membershipRow{}).Where("user_id = ? AND tenant_id <> ?", int64(user), int64(tenant)).Count(&n).Error
	return n, err
}

func (s *Accounts) SetPreferences(ctx context.Context, user domain.UserID, p domain.Preferences) error {
	return s.Run(ctx, "set preferences", func(t *db.Tx) error {
		return t.MustFind("user", user, "UPDATE users SET preferences = ? WHERE id = ?", preferencesText(p), int64(user))
	})
}

func preferencesText(p domain.Preferences) string {
	if p == (domain.Preferences{}) {
		return ""
	}
	text, _ := json.Marshal(p) // it has strings alone
	return string(text)
}

func (s *Accounts) UpdateUser(ctx context.Context, u domain.User, only domain.TenantID) error {
	return s.RunRepeatable(ctx, "update user", func(t *db.Tx) error {
		if only != 0 {
			row, err := lockUser(t, u.ID)
			if err != nil {
				return err
			}
			others, err := tenantsBut(t, only, u.ID)
			if err != nil {
				return err
			}
			if others > 0 || row.PlatformAdmin {
				return domain.Errorf(domain.CodeDenied, "the account of %q does not belong to this tenant alone: only its owner or a platform administrator may change it", row.Username)
			}
		}
		return t.MustFind("user", u.ID, "UPDATE users SET password_hash = ?, platform_admin = ?, must_change_password = ?, disabled = ?, session_version = ? WHERE id = ?",
			u.PasswordHash, db.Flag(u.PlatformAdmin), db.Flag(u.MustChangePassword), db.Flag(u.Disabled), u.SessionVersion, int64(u.ID))
	})
}
