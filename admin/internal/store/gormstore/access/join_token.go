package access

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// UseJoinTokens takes locks only when boots come that were not here before:
// after a node's restart thousands come at once that were.
func (s *Tokens) UseJoinTokens(ctx context.Context, list []store.JoinTokenUse) ([]store.UsedJoinToken, error) {
	u := joining{list: list}
	err := s.Look(ctx, "find join tokens", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		u = joining{list: list}
		return u.read(ctx, q, s.Dialect, "")
	})
	if err != nil {
		return nil, err
	}
	if len(u.strangers()) > 0 {
		return db.Value(ctx, s.RunRepeatable, "use join tokens", func(t *db.Tx) ([]store.UsedJoinToken, error) {
			u := joining{list: list}
			err := u.use(t)
			return u.out, err
		})
	}
	return u.out, nil
}

// joining is one look at the tokens that boots show.
type joining struct {
	list   []store.JoinTokenUse
	out    []store.UsedJoinToken
	tokens map[[32]byte]*joinTokenRow
	known  map[joinedBoot]bool // boots that were let in
	// aliases are the former names of executors that one comes by
	aliases map[executorAlias]bool
}

type executorAlias struct {
	executor int64
	name     string
}

type joinedBoot struct {
	token int64
	boot  string
}

// read finds the tokens and which boots they have let in, and answers. lock is
// appended to what finds the tokens' rows.
func (u *joining) read(ctx context.Context, q db.Querier, d db.Dialect, lock string) error {
	u.out, u.tokens, u.known = make([]store.UsedJoinToken, len(u.list)), map[[32]byte]*joinTokenRow{}, map[joinedBoot]bool{}
	names, now, err := u.readTokens(ctx, q, d, lock)
	if err == nil {
		err = u.readBoots(ctx, q)
	}
	if err == nil {
		err = u.readAliases(ctx, q, names)
	}
	if err != nil {
		return err
	}
	for i, use := range u.list {
		row := u.tokens[use.Hash]
		switch {
		case row == nil || row.RevokedAt != 0:
			u.out[i].Err = domain.Errorf(domain.CodeUnauthenticated, "the join token is not valid")
		case row.ExpiresAt != 0 && row.ExpiresAt <= now:
			u.out[i].Err = domain.Errorf(domain.CodeTokenExpired, "the join token has expired")
		default:
			u.out[i].Token, u.out[i].Executor = row.token(), names[row.ID]
			if u.aliases[executorAlias{row.ExecutorID, use.Executor}] {
				u.out[i].Executor = use.Executor
			}
		}
	}
	return nil
}

// readAliases looks for former names, if one comes by another than the present one.
func (u *joining) readAliases(ctx context.Context, q db.Querier, names map[int64]string) error {
	u.aliases = map[executorAlias]bool{}
	var ids []int64
	for _, use := range u.list {
		if row := u.tokens[use.Hash]; row != nil && use.Executor != "" && names[row.ID] != use.Executor && names[row.ID] != "" {
			ids = append(ids, row.ExecutorID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return db.Query(ctx, q, func(rows *sql.Rows) error {
		var a executorAlias
		err := rows.Scan(&a.executor, &a.name)
		u.aliases[a] = true
		return err
	}, "SELECT executor_id, name FROM executor_aliases WHERE executor_id IN ("+db.IDList(ids)+")")
}

// readTokens goes in the order of the ids, so that those who lock do not wait
// for each other in a circle.
func (u *joining) readTokens(ctx context.Context, q db.Querier, d db.Dialect, lock string) (names map[int64]string, now int64, err error) {
	names = map[int64]string{}
	var hashes []any
	seen := map[[32]byte]bool{}
	for _, use := range u.list {
		if !seen[use.Hash] {
			seen[use.Hash] = true
			hashes = append(hashes, use.Hash[:])
		}
	}
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		row, name := &joinTokenRow{}, ""
		err := rows.Scan(&now, &row.ID, &row.TenantID, &row.ExecutorID, &row.Name, &row.Prefix, &row.Hash, &row.CreatedBy, &row.CreatedAt,
			&row.ExpiresAt, &row.MaxUses, &row.Uses, &row.RevokedAt, &row.NoJobs, &name)
		u.tokens[toHash(row.Hash)], names[row.ID] = row, name
		return err
	}, "SELECT "+d.Clock()+", j.id, j.tenant_id, j.executor_id, j.name, j.prefix, j.hash, j.created_by, j.created_at, j.expires_at, j.max_uses, j.uses, j.revoked_at, j.no_jobs,"+
		" COALESCE((SELECT e.name FROM executors AS e WHERE e.id = j.executor_id AND e.tenant_id = j.tenant_id AND e."+record.LivingExecutor+"), '')"+
		" FROM join_tokens AS j WHERE j.hash IN ("+db.Placeholders(len(hashes))+") ORDER BY j.id"+lock, hashes...)
	return names, now, err
}

// readBoots asks for each token's boots by the primary key.
func (u *joining) readBoots(ctx context.Context, q db.Querier) error {
	boots := map[int64][]any{}
	for _, use := range u.list {
		if row := u.tokens[use.Hash]; row != nil {
			boots[row.ID] = append(boots[row.ID], use.BootID)
		}
	}
	if len(boots) == 0 {
		return nil
	}
	var where []string
	var args []any
	for id, list := range boots {
		where = append(where, fmt.Sprintf("(token_id = %d AND boot_id IN (%s))", id, db.Placeholders(len(list))))
		args = append(args, list...)
	}
	return db.Query(ctx, q, func(rows *sql.Rows) error {
		var b joinedBoot
		err := rows.Scan(&b.token, &b.boot)
		u.known[b] = true
		return err
	}, "SELECT token_id, boot_id FROM join_token_boots WHERE "+strings.Join(where, " OR "), args...)
}

// strangers are the numbers of those who were let in, by what was read, and had
// not come with their token before.
func (u *joining) strangers() (out []int) {
	for i, use := range u.list {
		if u.out[i].Err == nil && !u.known[joinedBoot{u.tokens[use.Hash].ID, use.BootID}] {
			out = append(out, i)
		}
	}
	return out
}

// use counts under the locks of the tokens' rows, so that the last use is given
// away once. A boot that was let in may come back as long as the token is valid,
// also when all uses are taken.
func (u *joining) use(t *db.Tx) error {
	if err := u.read(t.Ctx, t.Conn, t.Dialect, t.Dialect.ForUpdate()); err != nil {
		return err
	}
	now, err := t.Clock()
	if err != nil {
		return err
	}
	var boots []joinTokenBootRow
	used := map[int64]*joinTokenRow{}
	for _, i := range u.strangers() {
		use := u.list[i]
		row := u.tokens[use.Hash]
		if u.known[joinedBoot{row.ID, use.BootID}] { // twice in this list
			u.out[i].Token = row.token()
			continue
		}
		if row.MaxUses > 0 && row.Uses >= row.MaxUses {
			u.out[i] = store.UsedJoinToken{Err: domain.Errorf(domain.CodeUnauthenticated, "the join token is used up")}
			continue
		}
		row.Uses++
		used[row.ID], u.known[joinedBoot{row.ID, use.BootID}] = row, true
		u.out[i].Token = row.token()
		boots = append(boots, joinTokenBootRow{TokenID: row.ID, BootID: use.BootID, TenantID: row.TenantID, UsedAt: db.Millis(now)})
	}
	for _, row := range used {
		if _, err := t.Exec(t.Ctx, "UPDATE join_tokens SET uses = ? WHERE id = ? AND tenant_id = ?", row.Uses, row.ID, row.TenantID); err != nil {
			return err
		}
	}
	if len(boots) == 0 {
		return nil
	}
	slices.SortFunc(boots, func(a, b joinTokenBootRow) int { return strings.Compare(a.BootID, b.BootID) })
	return t.Gorm.Create(&boots).Error
}
