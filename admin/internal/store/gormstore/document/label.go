package document

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// labelled finds documents with a label key=value, or with the beginning of the value, among the
// first SearchedRows of the tenant. A text without an equals sign finds none.
func (s *Table) labelled(ctx context.Context, q db.Querier, p domain.SearchQuery) (out []domain.Found, err error) {
	key, value, is := strings.Cut(p.Text, "=")
	if !is || key == "" {
		return nil, nil
	}
	text, versions := "d.spec", ""
	if s.Versions != "" {
		text = "v.spec"
		versions = fmt.Sprintf(" JOIN %s AS v ON v.tenant_id = d.tenant_id AND v.%s = d.id AND v.version = d.version", s.Versions, s.Owner)
	}
	statement := fmt.Sprintf("SELECT d.id, d.name, CASE WHEN JSON_VALID(%[1]s) THEN JSON_EXTRACT(%[1]s, '$.labels') END AS found FROM (SELECT id FROM %[2]s WHERE tenant_id = %[3]d LIMIT %[4]d) AS c"+
		" JOIN %[2]s AS d ON d.id = c.id%[5]s WHERE %[1]s LIKE '%%\"labels\"%%'", text, s.Name, int64(p.Tenant), record.SearchedRows, versions)
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		found := domain.Found{Match: domain.MatchLabel}
		var raw sql.NullString
		if err := rows.Scan(&found.ID, &found.Name, &raw); err != nil {
			return err
		}
		if hasLabel(raw.String, key, value) {
			out = append(out, found)
		}
		return nil
	}, statement)
	return out, err
}

// hasLabel reports whether labels in JSON have one of this name whose value begins so, in any case.
func hasLabel(raw, key, value string) bool {
	var labels map[string]string
	if json.Unmarshal([]byte(raw), &labels) != nil {
		return false
	}
	for name, is := range labels {
		if strings.EqualFold(name, key) && len(is) >= len(value) && strings.EqualFold(is[:len(value)], value) {
			return true
		}
	}
	return false
}
