package gormstore

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

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

// A rule of before the mechanism of documents keeps its id, its contents and its next look.
func TestAlertRuleOfBefore(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 1, domain.BlockParallel)
			_, err := s.Write.ExecContext(t.Context(), `INSERT INTO alert_channels (id, tenant_id, name, kind, enabled, version, settings, spec, secrets, created_at, updated_at)
				VALUES (7, ?, 'on call', 'email', 1, 1, '{}', '{"apiVersion":"carillon/v1","name":"on call","spec":{"kind":"email","emails":["a@example.com"]}}', '', 1, 2)`, int64(w.tenant))
			require.NoError(t, err)
			_, err = s.Write.ExecContext(t.Context(), `INSERT INTO alert_rules (id, tenant_id, name, version, spec, next_at, next_job, on_success, created_at, updated_at) VALUES (9, ?, 'money', 3,
				'{"description":"d","enabled":true,"position":3,"match":{"executors":[1],"jobs":[2],"labels":"team=finance"},"condition":"long","severity":"critical","channels":[7],"repeatMs":3600000,"quiet":{"Zone":"UTC","From":"22:00","To":"06:00","Days":[5]},"escalateMs":60000,"escalateTo":[8],"afterMs":1500,"factor":2}', 4, 5, 0, 1, 2)`, int64(w.tenant))
			require.NoError(t, err)
			row, err := alertsql.Rules(s.DB).Find(t.Context(), w.tenant, 9)
			require.NoError(t, err)
			require.JSONEq(t, `{"description":"d","enabled":true,"position":3,"match":{"executors":["1"],"jobs":["2"],"labels":"team=finance"},"condition":{"kind":"long","after":"1.5s","factor":2},"severity":"critical","channels":["7"],"repeat":"1h0m0s","quietHours":{"zone":"UTC","from":"22:00","to":"06:00","days":["friday"]},"escalateAfter":"1m0s","escalateTo":["8"]}`, string(row.Spec))
			rule, err := noun.AlertRuleOf(&row)
			require.NoError(t, err)
			labels, err := domain.ParseSelector("team=finance")
			require.NoError(t, err)
			require.Equal(t, noun.AlertRule{ID: 9, TenantID: w.tenant, Version: 3, UpdatedAt: time.UnixMilli(2).UTC(), Spec: noun.AlertRuleSpec{
				Name: "money", Description: "d", Enabled: true, Position: 3, Match: noun.AlertMatcher{Executors: []domain.ExecutorID{1}, Jobs: []domain.JobID{2}, Labels: labels},
				Condition: noun.AlertCondition{Kind: noun.ConditionLong, After: 1500 * time.Millisecond, Factor: 2}, Severity: noun.SeverityCritical, Channels: []domain.ChannelID{7},
				Repeat: time.Hour, Quiet: noun.QuietHours{Zone: "UTC", From: "22:00", To: "06:00", Days: []time.Weekday{time.Friday}}, EscalateAfter: time.Minute, EscalateTo: []domain.ChannelID{8},
			}}, rule)

			_, err = alertsql.Rules(s.DB).Replace(t.Context(), row)
			require.ErrorContains(t, err, "the alert channel 8 was deleted")
			rule.Spec.EscalateTo = rule.Spec.Channels
			row.Spec, err = json.Marshal(noun.TextOf(&rule.Spec))
			require.NoError(t, err)
			row, err = alertsql.Rules(s.DB).Replace(t.Context(), row)
			require.NoError(t, err)
			require.Equal(t, []int64{9, 4}, []int64{row.ID, row.Version})
			var next, job int64
			require.NoError(t, s.Write.QueryRowContext(t.Context(), "SELECT next_at, next_job FROM alert_rules WHERE id = 9").Scan(&next, &job))
			require.Greater(t, next, row.UpdatedAt.UnixMilli()-1)
			require.Zero(t, job)
		})
	}
}
