package gormstore

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	schema "github.com/carillon-sched/carillon/sql"
)

// Scripts of before the mechanism keep ids, numbers, signatures and each byte of their contents.
func TestScriptsOfBeforeBecomeDocuments(t *testing.T) {
	const content = "#!/bin/sh\r\necho \"${{ x }} \\n\" '\u00fc\u4e00\U0001f600' \x01\t`true`\n"
	for name, options := range map[string]func(testing.TB) Options{"sqlite": sqliteOptions, "mysql": mysqlOptions} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			file := schema.SQLite.ReadFile
			if name == "mysql" {
				file = schema.MySQL.ReadFile
			}
			migration, err := file(name + "/00015_scripts.sql")
			require.NoError(t, err)
			ctx := t.Context()
			require.NoError(t, s.Run(ctx, "migrate", func(tx *db.Tx) error {
				exec := func(statement string, args ...any) {
					_, err := tx.Exec(ctx, statement, args...)
					require.NoError(t, err, statement)
				}
				const script = "INSERT INTO scripts (id, tenant_id, state, name, language, description, revision, created_at, updated_at, created_by, updated_by) VALUES "
				exec(script + "(71, 7, 1, 'report', 'shell', 'd', 2, 1000, 2000, 'anna', 'bob'), (72, 7, 3, 'gone', 'node', '', 1, 1000, 3000, 'anna', 'bob')")
				const revision = "INSERT INTO script_revisions (script_id, revision, tenant_id, content, sha256, signature, note, created_at, created_by) VALUES "
				for id, revisions := range map[int]int{71: 2, 72: 1} {
					for n := range revisions {
						exec(revision+"(?, ?, 7, ?, ?, ?, 'why', 1000, 'anna')", id, n+1, strings.Repeat(content, n+1), make([]byte, 32), []byte("signed"))
					}
				}
				for _, statement := range strings.Split(regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(string(migration), ""), ";") {
					if strings.TrimSpace(statement) != "" && !regexp.MustCompile(`^\s*(CREATE|ALTER)`).MatchString(statement) {
						exec(statement)
					}
				}
				return nil
			}))
			for version, want := range map[int64]string{1: content, 2: content + content, 0: content + content} {
				got, err := s.FindScript(ctx, 7, domain.ScriptUse{ID: 71, Revision: version})
				require.NoError(t, err)
				require.Equal(t, []string{want, "report", "shell", "signed"}, []string{got.Content, got.Name, got.Language, string(got.Signature)})
			}
			table := s.ScriptTable(func(domain.Script, int64, []byte) []byte { return []byte("anew") })
			_, err = table.Restore(ctx, 7, 72, "carla")
			require.NoError(t, err)
			got, err := s.FindScriptByName(ctx, 7, "gone")
			require.NoError(t, err)
			require.Equal(t, []any{int64(2), content, "anew"}, []any{got.Version, got.Content, string(got.Signature)})
		})
	}
}
