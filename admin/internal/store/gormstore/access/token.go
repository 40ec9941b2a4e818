package access

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type refreshTokenRow struct {
	Hash           []byte `gorm:"column:hash;primaryKey"`
	Family         int64  `gorm:"column:family"`
	UserID         int64  `gorm:"column:user_id"`
	TenantID       int64  `gorm:"column:tenant_id"`
	SessionVersion int64  `gorm:"column:session_version"`
	ExpiresAt      int64  `gorm:"column:expires_at"`
	UsedAt         int64  `gorm:"column:used_at"`
	UsedBy         int64  `gorm:"column:used_by"`
	RevokedAt      int64  `gorm:"column:revoked_at"`
}

func (refreshTokenRow) TableName() string { return "refresh_tokens" }

type apiKeyRow struct {
	ID         int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID   int64  `gorm:"column:tenant_id"`
	Name       string `gorm:"column:name"`
	Prefix     string `gorm:"column:prefix"`
	Hash       []byte `gorm:"column:hash"`
	Role       string `gorm:"column:role"`
	CreatedBy  string `gorm:"column:created_by"`
	OwnerID    int64  `gorm:"column:owner_id"`
	CreatedAt  int64  `gorm:"column:created_at;autoCreateTime:false"`
	ExpiresAt  int64  `gorm:"column:expires_at"`
	LastUsedAt int64  `gorm:"column:last_used_at"`
	RevokedAt  int64  `gorm:"column:revoked_at"`
	// Executors and CallHandlers have one name per line.
	Executors    string `gorm:"column:call_executors"`
	CallHandlers string `gorm:"column:call_handlers"`
}

func (apiKeyRow) TableName() string { return "api_keys" }

func newAPIKeyRow(k domain.APIKey) apiKeyRow {
	return apiKeyRow{
		ID: k.ID, TenantID: int64(k.TenantID), Name: k.Name, Prefix: k.Prefix, Hash: k.Hash[:], Role: string(k.Role),
		CreatedBy: k.CreatedBy, OwnerID: int64(k.Owner), CreatedAt: db.Millis(k.CreatedAt), ExpiresAt: db.Millis(k.ExpiresAt),
		Executors: strings.Join(k.Scope.Executors, "\n"), CallHandlers: strings.Join(k.Scope.Handlers, "\n"),
	}
}

func (r apiKeyRow) key() domain.APIKey {
	return domain.APIKey{
		ID: r.ID, TenantID: domain.TenantID(r.TenantID), Name: r.Name, Prefix: r.Prefix, Hash: toHash(r.Hash), Role: domain.Role(r.Role),
		CreatedBy: r.CreatedBy, Owner: domain.UserID(r.OwnerID), CreatedAt: db.Instant(r.CreatedAt), ExpiresAt: db.Instant(r.ExpiresAt),
		LastUsedAt: db.Instant(r.LastUsedAt), RevokedAt: db.Instant(r.RevokedAt),
		Scope: domain.Scope{Executors: db.Lines(r.Executors), Handlers: db.Lines(r.CallHandlers)},
	}
}

type joinTokenRow struct {
	ID         int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID   int64  `gorm:"column:tenant_id"`
	ExecutorID int64  `gorm:"column:executor_id"`
	Name       string `gorm:"column:name"`
	Prefix     string `gorm:"column:prefix"`
	Hash       []byte `gorm:"column:hash"`
	CreatedBy  string `gorm:"column:created_by"`
	CreatedAt  int64  `gorm:"column:created_at;autoCreateTime:false"`
	ExpiresAt  int64  `gorm:"column:expires_at"`
	MaxUses    int64  `gorm:"column:max_uses"`
	Uses       int64  `gorm:"column:uses"`
	RevokedAt  int64  `gorm:"column:revoked_at"`
	NoJobs     bool   `gorm:"column:no_jobs"`
}

func (joinTokenRow) TableName() string { return "join_tokens" }

func newJoinTokenRow(j domain.JoinToken) joinTokenRow {
	return joinTokenRow{
		ID: j.ID, TenantID: int64(j.TenantID), ExecutorID: int64(j.Executor), Name: j.Name, Prefix: j.Prefix, Hash: j.Hash[:],
		CreatedBy: j.CreatedBy, CreatedAt: db.Millis(j.CreatedAt), ExpiresAt: db.Millis(j.ExpiresAt), MaxUses: int64(j.MaxUses), NoJobs: j.NoJobs,
	}
}

func (r joinTokenRow) token() domain.JoinToken {
	return domain.JoinToken{
		ID: r.ID, TenantID: domain.TenantID(r.TenantID), Executor: domain.ExecutorID(r.ExecutorID), Name: r.Name, Prefix: r.Prefix,
		Hash: toHash(r.Hash), CreatedBy: r.CreatedBy, CreatedAt: db.Instant(r.CreatedAt), ExpiresAt: db.Instant(r.ExpiresAt),
		MaxUses: int(r.MaxUses), Uses: int(r.Uses), RevokedAt: db.Instant(r.RevokedAt), NoJobs: r.NoJobs,
	}
}

type joinTokenBootRow struct {
	TokenID  int64  `gorm:"column:token_id;primaryKey;autoIncrement:false"`
	BootID   string `gorm:"column:boot_id;primaryKey"`
	TenantID int64  `gorm:"column:tenant_id"`
	UsedAt   int64  `gorm:"column:used_at"`
}

func (joinTokenBootRow) TableName() string { return "join_token_boots" }

func toHash(b []byte) (h [32]byte) {
	copy(h[:], b)
	return h
}

func (s *Tokens) CreateRefreshToken(ctx context.Context, r domain.RefreshToken) error {
	return s.Run(ctx, "create refresh token", func(t *db.Tx) error {
		return t.Gorm.Create(&refreshTokenRow{
			Hash: r.Hash[:], Family: r.Family, UserID: int64(r.UserID), TenantID: int64(r.TenantID),
			SessionVersion: r.SessionVersion, ExpiresAt: db.Millis(r.ExpiresAt), UsedAt: db.Millis(r.UsedAt),
		}).Error
	})
}

// UseRefreshToken commits also when it refuses: revoking the family is the
// point of a refusal.
func (s *Tokens) UseRefreshToken(ctx context.Context, hash [32]byte, grace time.Duration) (domain.RefreshToken, error) {
	// What was never issued costs a read, no transaction: anybody can send it.
	if _, err := db.FindOne[refreshTokenRow](ctx, s.DB, "find refresh token", "hash = ?", hash[:]); domain.Is(err, domain.CodeNotFound) {
		return domain.RefreshToken{}, errNoRefreshToken()
	} else if err != nil {
		return domain.RefreshToken{}, err
	}
	call := rand.Int64() // tells our own use from another one, should the commit's answer be lost
	type use struct {
		row     refreshTokenRow
		refused error
	}
	used, err := db.Value(ctx, s.RunRepeatable, "use refresh token", func(t *db.Tx) (use, error) {
		now, err := t.Clock()
		if err != nil {
			return use{}, err
		}
		var rows []refreshTokenRow
		if err := t.Gorm.Clauses(t.Locking()...).Where("hash = ?", hash[:]).Find(&rows).Error; err != nil {
			return use{}, err
		}
		if len(rows) == 0 || rows[0].RevokedAt != 0 {
			return use{refused: errNoRefreshToken()}, nil
		}
		row := rows[0]
		switch {
		// now may be earlier than UsedAt: it was read before the row's lock was had.
		case row.UsedAt != 0 && (row.UsedBy == call || grace > 0 && db.Millis(now) < row.UsedAt+grace.Milliseconds()):
			return use{row: row}, nil
		case row.UsedAt != 0:
			return use{refused: domain.Errorf(domain.CodeUnauthenticated, "the refresh token was used before: all sessions made from it have ended")},
				revokeFamily(t, row.Family, now)
		case row.ExpiresAt <= db.Millis(now):
			return use{refused: domain.Errorf(domain.CodeTokenExpired, "the refresh token has expired")}, nil
		}
		row.UsedAt, row.UsedBy = db.Millis(now), call
		_, err = t.Exec(t.Ctx, "UPDATE refresh_tokens SET used_at = ?, used_by = ? WHERE hash = ? AND used_at = 0", row.UsedAt, call, hash[:])
		return use{row: row}, err
	})
	if err == nil {
		err = used.refused
	}
	if err != nil {
		return domain.RefreshToken{}, err
	}
	row := used.row
	return domain.RefreshToken{
		Hash: hash, Family: row.Family, UserID: domain.UserID(row.UserID), TenantID: domain.TenantID(row.TenantID),
		SessionVersion: row.SessionVersion, ExpiresAt: db.Instant(row.ExpiresAt), UsedAt: db.Instant(row.UsedAt),
	}, nil
}

func errNoRefreshToken() error {
	return domain.Errorf(domain.CodeUnauthenticated, "the refresh token is not valid")
}

func revokeFamily(t *db.Tx, family int64, now time.Time) error {
	_, err := t.Exec(t.Ctx, "UPDATE refresh_tokens SET revoked_at = ? WHERE family = ? AND revoked_at = 0", db.Millis(now), family)
	return err
}

func (s *Tokens) RevokeRefreshFamily(ctx context.Context, family int64) error {
	return s.RunRepeatableAt(ctx, "revoke refresh tokens", func(t *db.Tx, now time.Time) error {
		return revokeFamily(t, family, now)
	})
}

func (s *Tokens) RefreshFamilyEnded(ctx context.Context, family int64) (ended bool, err error) {
	err = s.Look(ctx, "find ended session", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		var rows []refreshTokenRow
		found := g.Select("family").Where("family = ? AND revoked_at <> 0", family).Limit(1).Find(&rows)
		ended = len(rows) > 0
		return found.Error
	})
	return ended, err
}

func (s *Tokens) CreateAPIKey(ctx context.Context, k domain.APIKey) error {
	return s.Run(ctx, "create API key", func(t *db.Tx) error {
		if err := record.Grow(t, k.TenantID, record.Growth{Kind: domain.QuotaAPIKeys, By: 1}); err != nil {
			return err
		}
		if err := forget(t, "api_keys", domain.MaxRevokedAPIKeys, "tenant_id = ? AND revoked_at > 0", int64(k.TenantID)); err != nil {
			return err
		}
		row := newAPIKeyRow(k)
		auditKey(t, nil, &row)
		return secretTaken(t.Gorm.Create(&row).Error)
	})
}

// secretTaken translates the error of a second row with the same hash: two nodes make what the
// same provision file declares.
func secretTaken(err error) error {
	if db.IsDuplicate(err) {
		return domain.Errorf(domain.CodeConflict, "another one has this secret")
	}
	return err
}

func (s *Tokens) FindAPIKeyByHash(ctx context.Context, hash [32]byte) (domain.APIKey, error) {
	row, err := db.FindOne[apiKeyRow](ctx, s.DB, "find API key", "hash = ?", hash[:])
	if err != nil {
		return domain.APIKey{}, err
	}
	return row.key(), nil
}

func (s *Tokens) ListAPIKeys(ctx context.Context, tenant domain.TenantID) ([]domain.APIKey, error) {
	rows, err := db.FindAll[apiKeyRow](ctx, s.DB, "list API keys", "id", "tenant_id = ?", int64(tenant))
	return domain.Collect(rows, (*apiKeyRow).key), err
}

// number is an id that has no type of its own.
type number int64

func (n number) String() string { return strconv.FormatInt(int64(n), 10) }

func (s *Tokens) RevokeAPIKey(ctx context.Context, tenant domain.TenantID, id int64) error {
	return s.RunRepeatable(ctx, "revoke API key", func(t *db.Tx) error {
		var was []apiKeyRow
		if err := t.Gorm.Where("id = ? AND tenant_id = ?", id, int64(tenant)).Find(&was).Error; err != nil {
			return err
		}
		for i := range was {
			auditKey(t, &was[i], nil)
		}
		return t.MustFind("API key", number(id), "UPDATE api_keys SET revoked_at = CASE WHEN revoked_at = 0 THEN "+t.Dialect.Clock()+
			" ELSE revoked_at END WHERE id = ? AND tenant_id = ?", id, int64(tenant))
	})
}

// auditKey tells the audit log of a key that is made or revoked.
func auditKey(t *db.Tx, before, after *apiKeyRow) {
	db.AuditedRow(t, before, after, func(r *apiKeyRow) domain.AuditObject {
		return domain.AuditObject{ID: number(r.ID).String(), Name: r.Name}
	}, func(r *apiKeyRow) db.Facts {
		return db.Facts{"role": r.Role, "executors": db.Lines(r.Executors), "handlers": db.Lines(r.CallHandlers), "expiresAt": instant(r.ExpiresAt)}
	})
}

// instant is a time for the audit log; nil: none.
func instant(ms int64) any {
	if ms == 0 {
		return nil
	}
	return db.Instant(ms)
}

func (s *Tokens) TouchAPIKeys(ctx context.Context, used map[int64]time.Time) error {
	ids := make([]int64, 0, len(used))
	for id := range used {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return s.RunRepeatable(ctx, "touch API keys", func(t *db.Tx) error {
		for _, id := range ids {
			at := db.Millis(used[id])
			if _, err := t.Exec(t.Ctx, "UPDATE api_keys SET last_used_at = ? WHERE id = ? AND last_used_at < ?", at, id, at); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Tokens) CreateJoinToken(ctx context.Context, j domain.JoinToken) error {
	return s.Run(ctx, "create join token", func(t *db.Tx) error {
		if name, err := record.ExecutorName(t, j.TenantID, j.Executor); err != nil {
			return err
		} else if name == domain.BuiltInExecutor {
			return domain.Errorf(domain.CodeConflict, "the admin nodes are the instances of %q: no process joins it", name)
		}
		if err := allowJoinToken(t, j.TenantID, j.Executor); err != nil {
			return err
		}
		row := newJoinTokenRow(j)
		auditJoinToken(t, nil, &row)
		return secretTaken(t.Gorm.Create(&row).Error)
	})
}

func (s *Tokens) FindJoinTokenByHash(ctx context.Context, hash [32]byte) (domain.JoinToken, error) {
	row, err := db.FindOne[joinTokenRow](ctx, s.DB, "find join token", "hash = ?", hash[:])
	return row.token(), err
}

func (s *Tokens) ListJoinTokens(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]domain.JoinToken, error) {
	rows, err := db.FindAll[joinTokenRow](ctx, s.DB, "list join tokens", "id", "tenant_id = ? AND executor_id = ?", int64(tenant), int64(executor))
	out := domain.Collect(rows, (*joinTokenRow).token)
	return out, err
}

func (s *Tokens) RevokeJoinToken(ctx context.Context, tenant domain.TenantID, id int64) error {
	return s.RunRepeatable(ctx, "revoke join token", func(t *db.Tx) error {
		var was []joinTokenRow
		if err := t.Gorm.Where("id = ? AND tenant_id = ?", id, int64(tenant)).Find(&was).Error; err != nil {
			return err
		}
		for i := range was {
			auditJoinToken(t, &was[i], nil)
		}
		return t.MustFind("join token", number(id), "UPDATE join_tokens SET revoked_at = CASE WHEN revoked_at = 0 THEN "+t.Dialect.Clock()+
			" ELSE revoked_at END WHERE id = ? AND tenant_id = ?", id, int64(tenant))
	})
}

// auditJoinToken tells the audit log of a join token that is made or revoked.
func auditJoinToken(t *db.Tx, before, after *joinTokenRow) {
	db.AuditedRow(t, before, after, func(r *joinTokenRow) domain.AuditObject {
		return domain.AuditObject{ID: number(r.ID).String(), Name: cmp.Or(r.Name, "of executor "+domain.ExecutorID(r.ExecutorID).String())}
	}, func(r *joinTokenRow) db.Facts {
		return db.Facts{"executor": domain.ExecutorID(r.ExecutorID), "name": r.Name, "expiresAt": instant(r.ExpiresAt), "maxUses": r.MaxUses, "noJobs": r.NoJobs}
	})
}
