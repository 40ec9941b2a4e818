package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// ChangeScopes changes the API keys, memberships and invitations of a tenant whose scopes
// name an executor. change is asked for each entry that is of the executor.
func ChangeScopes(t *db.Tx, tenant int64, executor string, change func(list []string, entry string) []string) error {
	edit := func(text string) string {
		list := db.Lines(text)
		for _, entry := range slices.Clone(list) {
			if of, _, _ := strings.Cut(entry, "/"); of == executor {
				list = change(list, entry)
			}
		}
		return strings.Join(list, "\n")
	}
	if err := changeKeys(t, tenant, executor, edit); err != nil {
		return err
	}
	for _, people := range []struct{ table, id, who string }{{"memberships", "user_id", "member"}, {"invitations", "id", "invitation"}} {
		if err := changePeople(t, tenant, executor, people.table, people.id, people.who, edit); err != nil {
			return err
		}
	}
	return nil
}

func changeKeys(t *db.Tx, tenant int64, executor string, edit func(string) string) error {
	var keys []apiKeyRow
	if err := t.Gorm.Where("tenant_id = ? AND revoked_at = 0 AND (call_executors <> '' OR call_handlers <> '')", tenant).Find(&keys).Error; err != nil {
		return fmt.Errorf("find scopes of API keys: %w", err)
	}
	for _, k := range keys {
		executors, handlers := edit(k.Executors), edit(k.CallHandlers)
		if executors == k.Executors && handlers == k.CallHandlers {
			continue
		}
		if len(executors) > maxScopeExecutors || len(handlers) > maxScopeHandlers {
			return domain.Errorf(domain.CodeConflict, "the API key %q names so many handlers of %q that there is no room for another name; replace it by one of the executor as a whole", k.Name, executor)
		}
		if _, err := t.Exec(t.Ctx, "UPDATE api_keys SET call_executors = ?, call_handlers = ? WHERE id = ? AND tenant_id = ?", executors, handlers, k.ID, tenant); err != nil {
			return fmt.Errorf("change scope of API key: %w", err)
		}
	}
	return nil
}

// changePeople changes the scopes of memberships or invitations.
func changePeople(t *db.Tx, tenant int64, executor, table, id, who string, edit func(string) string) error {
	bound, err := db.Pairs[int64, string](t.Ctx, t.Conn, "SELECT "+id+", executors FROM "+table+" WHERE tenant_id = ? AND executors <> ''", tenant)
	if err != nil {
		return fmt.Errorf("find scopes of %s: %w", table, err)
	}
	for one, text := range bound {
		executors := edit(text)
		if executors == text {
			continue
		}
		if len(executors) > maxScopeExecutors {
			return domain.Errorf(domain.CodeConflict, "the %s %d is bound to so many executors that there is no room for another name of %q; take one of them away", who, one, executor)
		}
		if _, err := t.Exec(t.Ctx, "UPDATE "+table+" SET executors = ? WHERE tenant_id = ? AND "+id+" = ?", executors, tenant, one); err != nil {
			return fmt.Errorf("change scope of %s: %w", who, err)
		}
	}
	return nil
}

// The columns of scopes, in bytes.
const maxScopeExecutors, maxScopeHandlers = 4096, 8192
