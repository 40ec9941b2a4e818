package gormstore

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/alertsql"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	schema "github.com/carillon-sched/carillon/sql"
)

// A channel of before the mechanism of documents keeps its id, its contents and its secrets.
func TestAlertChannelOfBefore(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			require.NoError(t, Migrate(t.Context(), o))
			s := openStore(t, o)
			w := newWorld(t, s, 1, domain.BlockParallel)
			_, err := s.Write.ExecContext(t.Context(), `INSERT INTO alert_channels (id, tenant_id, name, kind, enabled, version, settings, secrets, created_at, updated_at)
				VALUES (7, ?, 'on call', 'webhook', 0, 3, '{"language":"zh","templates":{"body":"{{.Title}}"},"host":"https://h.example","hasToken":true}', 'sealed', 1, 2)`, int64(w.tenant))
			require.NoError(t, err)
			migration, err := map[string]interface{ ReadFile(string) ([]byte, error) }{"mysql": schema.MySQL, "sqlite": schema.SQLite}[name].ReadFile(name + "/00014_alert_channels.sql")
			require.NoError(t, err)
			_, err = s.Write.ExecContext(t.Context(), string(regexp.MustCompile(`(?m)^UPDATE .*$`).Find(migration)))
			require.NoError(t, err)

			c, err := alertsql.New(s.Engine).FindAlertChannel(t.Context(), w.tenant, 7)
			require.NoError(t, err)
			require.Equal(t, noun.AlertChannel{ID: 7, TenantID: w.tenant, Version: 3, Secrets: []byte("sealed"), Spec: noun.AlertChannelSpec{
				Name: "on call", Kind: noun.ChannelWebhook, Language: "zh", Host: "https://h.example", Templates: noun.ChannelTemplates{Body: "{{.Title}}"},
			}}, c)
			row, err := alertsql.Channels(s.DB).Find(t.Context(), w.tenant, 7)
			require.NoError(t, err)
			require.Equal(t, map[string]string{"url": "fingerprint:unknown", "token": "fingerprint:unknown"}, row.Marks)
			row.Spec = []byte(`{"kind":"webhook","enabled":true}`)
			_, err = alertsql.Channels(s.DB).Replace(t.Context(), row)
			require.NoError(t, err)
			c, err = alertsql.New(s.Engine).FindAlertChannel(t.Context(), w.tenant, 7)
			require.NoError(t, err)
			require.Equal(t, []any{int64(4), true}, []any{c.Version, c.Spec.Enabled})
		})
	}
}
