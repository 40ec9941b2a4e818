package declare

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/proto"
)

// says declares labels and alerts; an alert that is nil says nothing.
func says(labels map[string]string, alert *proto.AlertDeclaration) func(*proto.JobDeclaration) {
	return func(d *proto.JobDeclaration) { d.Labels, d.Alert = labels, alert }
}

// Labels and alerts that code declares are the code's, the others the console's, and
// what the code says no more goes.
func TestDeclaredLabelsAndAlerts(t *testing.T) {
	t.Parallel()
	no := false
	for _, own := range []string{"code", ""} {
		t.Run("owned by "+own, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s *shop) {
				first := says(map[string]string{"team": "books"}, &proto.AlertDeclaration{OnFailure: &no, WebhookUrl: "https://a.example.com"})
				s.register("1", daily("close", "1", own, first))
				j := s.job("close")
				require.Equal(t, map[string]string{"team": "books"}, j.Spec.Labels)
				require.Equal(t, domain.Alert{IncludeNoExecutor: true, WebhookURL: "https://a.example.com"}, j.Spec.Alert)
				require.Equal(t, domain.CodeSays{"alert.onFailure", "alert.webhookUrl", "labels.team"}, j.Spec.CodeSays)

				s.label("close", func(j *domain.JobSpec) {
					j.Labels = map[string]string{"team": "books", "env": "prod"}
					j.Alert.Emails, j.Alert.WebhookSecret = []string{"ops@example.com"}, []byte("sealed")
					j.Owner = domain.Owner{Name: "Anna", Email: "anna@example.com"}
				})
				s.register("2", daily("close", "2", own, says(map[string]string{"tier": "gold"}, &proto.AlertDeclaration{WebhookUrl: "https://b.example.com"})))
				j = s.job("close")
				require.Equal(t, "0 0 2 * * *", j.Spec.Schedule.Expr)
				require.Equal(t, map[string]string{"tier": "gold", "env": "prod"}, j.Spec.Labels, "team went, env is the console's")
				require.Equal(t, domain.Alert{
					OnFailure: true, IncludeNoExecutor: true, Emails: []string{"ops@example.com"},
					WebhookURL: "https://b.example.com", WebhookSecret: []byte("sealed"),
				}, j.Spec.Alert, "onFailure has its default again, the key and the addresses stay")
				require.Equal(t, domain.Owner{Name: "Anna", Email: "anna@example.com"}, j.Spec.Owner)

				revision := j.Revision
				s.register("2", daily("close", "2", own, says(map[string]string{"tier": "gold"}, &proto.AlertDeclaration{WebhookUrl: "https://b.example.com"})))
				require.Equal(t, revision, s.job("close").Revision)

				s.register("3", daily("close", "2", own))
				j = s.job("close")
				require.Equal(t, map[string]string{"env": "prod"}, j.Spec.Labels)
				require.Empty(t, j.Spec.Alert.WebhookURL)
				require.Empty(t, j.Spec.Alert.WebhookSecret, "there is nothing to sign")
				require.NotNil(t, j.Spec.CodeSays)
				require.Empty(t, j.Spec.CodeSays)

				// What the console says already becomes the code's when the code says it.
				s.register("4", daily("close", "2", own, says(map[string]string{"env": "prod"}, nil)))
				require.Equal(t, domain.CodeSays{"labels.env"}, s.job("close").Spec.CodeSays)
			})
		})
	}
}

// label edits what is the console's of a job that the code owns, as the API does.
func (s *shop) label(name string, change func(*domain.JobSpec)) {
	s.t.Helper()
	s.t.Helper()
	v := s.job(name)
	change(&v.Spec)
	_, err := s.UpdateJob(s.t.Context(), store.UpdateJobParams{
		Tenant: s.key.Tenant, ID: v.ID, Spec: v.Spec, Source: v.Source, DeclarationHash: v.DeclarationHash, By: "anna", Next: timing.Next,
	})
	require.NoError(s.t, err)
}

// A job that was stored before it was noted what code says keeps its labels, alerts
// and owner, and its revision while the declaration says the same.
func TestDeclaredBeforeLabelsWere(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *shop) {
		d := daily("close", "1", "code")
		d.OwnerEmail = "books@example.com"
		s.register("1", d)
		s.label("close", func(j *domain.JobSpec) {
			j.CodeSays, j.Labels = nil, map[string]string{"team": "books"}
			j.Alert = domain.Alert{OnFailure: true, Emails: []string{"ops@example.com"}}
		})
		before := s.job("close")
		require.Nil(t, before.Spec.CodeSays)
		d.Dialect = "auto" // says the same in other words
		s.register("2", d)
		require.Equal(t, before.Revision, s.job("close").Revision)
		d.Cron = "0 0 2 * * *"
		d.OwnerEmail = ""
		s.register("3", d)
		after := s.job("close").Spec
		require.Equal(t, before.Spec.Alert, after.Alert)
		require.Equal(t, before.Spec.Labels, after.Labels)
		require.Equal(t, "books@example.com", after.Owner.Email, "who is told stays until somebody says another")
	})
}

// What the SDK and the generator refuse is refused here as well: not all that
// registers is ours.
func TestDeclaredValuesOutOfRange(t *testing.T) {
	t.Parallel()
	s := newShop(t, "sqlite", filepath.Join(t.TempDir(), "carillon.db"))
	many := map[string]string{}
	for i := range 33 {
		many[fmt.Sprint("k", i)] = ""
	}
	n := 0
	for want, change := range map[string]func(*proto.JobDeclaration){
		"job.retry.backoff: must be from 1 to 100":                              func(d *proto.JobDeclaration) { d.RetryBackoffPermille = 999 },
		"job.retry.backoff: must be from 0 to 100":                              func(d *proto.JobDeclaration) { d.RetryBackoffPermille = 100_001 },
		"job.retry.maxDelay: must be from 0s to 24h":                            func(d *proto.JobDeclaration) { d.MaxRetryDelayMs = 86_400_001 },
		"job.dispatchTimeout: must be from 0s (the default, 5m) to 168h":        func(d *proto.JobDeclaration) { d.DispatchTimeoutMs = -1 },
		"job.onLost: must be auto, fail or retry":                               func(d *proto.JobDeclaration) { d.OnLost = "repeat" },
		"job.labels: must not be more than 32":                                  says(many, nil),
		"job.labels: keys have 1 to 63 bytes":                                   says(map[string]string{"a:b": ""}, nil),
		"job.labels.a: values have at most 128 bytes and no control characters": says(map[string]string{"a": "\n"}, nil),
		"job.alert.emails: is not a mail address such as ops@example.com":       says(nil, &proto.AlertDeclaration{Emails: []string{"ops"}}),
		"job.owner.email: is not a mail address such as ops@example.com":        func(d *proto.JobDeclaration) { d.OwnerEmail = "ops@example.com\r\nBcc: x@y.z" },
		"job.alert.webhookUrl: is not an http or https address":                 says(nil, &proto.AlertDeclaration{WebhookUrl: "ftp://example.com"}),
		"job.alert.webhookUrl: must not contain a user name or password":        says(nil, &proto.AlertDeclaration{WebhookUrl: "https://a:b@example.com"}),
	} {
		n++
		_, notices := s.register(fmt.Sprint("1.", n), daily("close", "1", "code", change))
		require.Len(t, notices, 1, want)
		require.Equal(t, "validation_failed", notices[0].Code)
		require.Contains(t, notices[0].Message, want)
		s.gone("close")
	}

	s.register("2", daily("close", "1", "code"))
	s.label("close", func(j *domain.JobSpec) { delete(many, "k0"); j.Labels = many })
	_, notices := s.register("3", daily("close", "1", "code", says(map[string]string{"team": "books"}, nil)))
	require.Len(t, notices, 1)
	require.Contains(t, notices[0].Message, "a job has at most 32 labels; this one has 32 of the console beside those that are declared")
}
