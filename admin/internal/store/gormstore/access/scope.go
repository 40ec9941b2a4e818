package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// ChangeScopes changes those API keys of a tenant whose scopes name an executor.
// change is asked for each entry that is of the executor.
func ChangeScopes(t *db.Tx, tenant int64, executor string, change func(list []string, entry string) []string) error {
	var keys []apiKeyRow
	if err := t.Gorm.Where("tenant_id = ? AND revoked_at = 0 AND (call_executors <> '' OR call_handlers <> '')", tenant).Find(&keys).Error; err != nil {
		return fmt.Errorf("find scopes of API keys: %w", err)
	}
	edit := func(text string) string {
		list := lines(text)
		for _, entry := range slices.Clone(list) {
			if of, _, _ := strings.Cut(entry, "/"); of == executor {
				list = change(list, entry)
			}
		}
		return strings.Join(list, "\n")
	}
	for _, k := range keys {
		executors, handlers := edit(k.CallExecutors), edit(k.CallHandlers)
		if executors == k.CallExecutors && handlers == k.CallHandlers {
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

// The columns of scopes, in bytes.
const maxScopeExecutors, maxScopeHandlers = 4096, 8192
