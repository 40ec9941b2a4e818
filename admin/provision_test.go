package admin_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// provisionFile writes a file with one of each, and returns it with the secrets of
// the join token and the API key.
func provisionFile(t *testing.T) (file, token, key string) {
	t.Helper()
	dir := t.TempDir()
	secrets := map[string]string{"admin": password, "anna": "a bell in the tower"}
	for name, kind := range map[string]string{"token": "join-token", "key": "api-key"} {
		secret, err := admin.NewSecret(kind)
		require.NoError(t, err)
		secrets[name] = secret
	}
	for name, secret := range secrets {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(secret+"\n"), 0o600))
	}
	file = filepath.Join(dir, "provision.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
administrator: {password: {file: admin}}
tenants:
  - name: shop
    quotas: {jobs: 3}
    executors: [{name: web, joinTokens: [{secret: {file: token}}]}]
    apiKeys: [{name: calls, role: editor, secret: {file: key}}]
users:
  - {username: anna, password: {file: anna}, memberships: [{tenant: shop, role: operator}]}
`), 0o600))
	return file, secrets["token"], secrets["key"]
}

// TestWhatIsDeclaredIsThere: an application, a program and a person come in after an
// unattended start, and after a second one with the same file.
func TestWhatIsDeclaredIsThere(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			file, token, key := provisionFile(t)
			var log syncBuffer
			dsn, dir := "", t.TempDir()
			for round := range 2 {
				n := startNode(t, func(c *admin.Config) {
					if dsn == "" {
						dsn = database(t, dir)
					}
					c.DataDir, c.Database, c.ProvisionFile, c.AdminPassword = dir, dsn, file, ""
					c.Logger = slog.New(slog.NewTextHandler(&log, nil))
				})
				require.Nil(t, n.admin.FirstLogin(), "its password was given")
				n.token = key
				n.do(http.MethodGet, "/api/v1/executors", nil, nil, 200)
				n.token = ""
				n.do(http.MethodPost, "/api/v1/auth/login", map[string]string{"username": "anna", "password": "a bell in the tower"}, nil, 200)

				ex, err := executor.New(executor.Config{
					Name: "web", Addresses: []string{n.admin.ExecutorAddress()}, Token: executor.Secret(token), JournalDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
				})
				require.NoError(t, err)
				executor.HandleFunc(ex, "work", func(context.Context) error { return nil })
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- ex.Run(ctx) }()
				<-ex.Ready()
				n.token = key
				if round == 0 {
					n.until(n.runNow(n.newJob("web", "work", nil), nil), "succeeded")
					require.Contains(t, log.String(), `made=6`)
				} else {
					require.Contains(t, log.String(), `made=0`)
				}
				cancel()
				require.NoError(t, <-done)
				n.stop()
			}
			for _, secret := range []string{token, key, password, "a bell in the tower"} {
				require.NotContains(t, log.String(), secret)
			}
		})
	}
}

// TestABadFileEndsTheStart before anything is made.
func TestABadFileEndsTheStart(t *testing.T) {
	t.Parallel()
	file, _, _ := provisionFile(t)
	config := admin.Config{DataDir: t.TempDir(), HTTPAddress: "127.0.0.1:0", ExecutorAddress: "127.0.0.1:0", ProvisionFile: file}
	summary, err := admin.CheckProvision(file)
	require.NoError(t, err)
	require.Equal(t, "1 tenant, 1 executor, 1 join token, 1 API key, 1 user", summary)

	config.AdminPassword = password
	_, err = admin.New(t.Context(), config)
	require.ErrorContains(t, err, "administrator.password: it is given by --admin-password-file or CARILLON_ADMIN_PASSWORD, too")
	var wrong *admin.ProvisionError
	require.ErrorAs(t, err, &wrong)

	config.AdminPassword = ""
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(file), "token")))
	_, err = admin.New(t.Context(), config)
	require.ErrorAs(t, err, &wrong)
	require.NoFileExists(t, filepath.Join(config.DataDir, "carillon.db"))
	_, err = admin.CheckProvision(file)
	require.ErrorContains(t, err, "provision.yaml:6: tenants[0].executors[0].joinTokens[0].secret: open ")
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
