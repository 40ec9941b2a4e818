package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/client"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

const server = "http://carillon.test"

func newStore(t *testing.T) *Store {
	return NewStore(filepath.Join(t.TempDir(), "carillon", "credentials.json"))
}

func TestStoreIsPrivate(t *testing.T) {
	s := newStore(t)
	_, ok, err := s.Find(server)
	require.NoError(t, err)
	require.False(t, ok)

	require.NoError(t, s.Save(server, Session{AccessToken: "a", Username: "u"}))
	require.NoError(t, s.Save("http://other.test", Session{AccessToken: "b"}))
	require.NoError(t, s.Use(server))

	found, ok, err := s.Find(server)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "a", found.AccessToken)
	used, err := s.Server()
	require.NoError(t, err)
	require.Equal(t, server, used)

	entries, err := os.ReadDir(filepath.Dir(s.Path()))
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), e.Name())
	}

	require.NoError(t, s.Remove(server))
	_, ok, err = s.Find(server)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestDamagedFile(t *testing.T) {
	s := newStore(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(s.Path()), 0o700))
	require.NoError(t, os.WriteFile(s.Path(), []byte("{"), 0o600))
	_, _, err := s.Find(server)
	require.ErrorContains(t, err, "remove the file and log in again")
}

// rotating is a server that ends the session when a cookie comes twice.
type rotating struct {
	mu    sync.Mutex
	next  int
	calls int
	ended bool
}

func (r *rotating) Refresh(_ context.Context, cookies []string) (client.Login, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.ended || len(cookies) != 1 || cookies[0] != "c="+strconv.Itoa(r.next) {
		r.ended = true
		return client.Login{}, &apiclient.Problem{Status: http.StatusUnauthorized, Code: apiclient.ProblemCodeUnauthenticated}
	}
	r.next++
	return client.Login{
		Login:   apiclient.Login{AccessToken: fmt.Sprintf("t%d", r.next), ExpiresAt: time.Now().Add(time.Hour)},
		Cookies: []string{"c=" + strconv.Itoa(r.next)},
	}, nil
}

// Commands that start together with an expired token renew it once, although
// none of them knows of the others.
func TestRenewalsTakeTurns(t *testing.T) {
	path := newStore(t).Path()
	require.NoError(t, NewStore(path).Save(server, Session{AccessToken: "t0", ExpiresAt: time.Now(), Cookies: []string{"c=0"}}))
	r := &rotating{}
	var group sync.WaitGroup
	got := make([]string, 20)
	errs := make([]error, 20)
	for i := range got {
		group.Go(func() {
			got[i], errs[i] = NewStoredSession(NewStore(path), server, r).Token(context.Background())
		})
	}
	group.Wait()
	for i := range got {
		require.NoError(t, errs[i])
		require.Equal(t, "t1", got[i])
	}
	require.Equal(t, 1, r.calls)
}

func TestSession(t *testing.T) {
	ctx := t.Context()
	s := newStore(t)
	r := &rotating{}
	session := NewStoredSession(s, server, r)

	_, err := session.Token(ctx)
	missing, ok := errors.AsType[*NotLoggedInError](err)
	require.True(t, ok)
	require.False(t, missing.Ended)

	// A token that is good for long is used as it is.
	require.NoError(t, s.Save(server, Session{AccessToken: "t0", ExpiresAt: time.Now().Add(time.Hour), Cookies: []string{"c=0"}}))
	token, err := session.Token(ctx)
	require.NoError(t, err)
	require.Equal(t, "t0", token)
	require.Zero(t, r.calls)

	// The server may call it expired all the same.
	token, err = session.Renew(ctx, "t0")
	require.NoError(t, err)
	require.Equal(t, "t1", token)

	// An interrupt does not lose the next cookie.
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	token, err = session.Renew(stopped, "t1")
	require.NoError(t, err)
	require.Equal(t, "t2", token)
	kept, _, err := s.Find(server)
	require.NoError(t, err)
	require.Equal(t, []string{"c=2"}, kept.Cookies)

	// Once the server has ended the session, the user must log in again.
	r.ended = true
	_, err = session.Renew(ctx, "t2")
	ended, ok := errors.AsType[*NotLoggedInError](err)
	require.True(t, ok)
	require.True(t, ended.Ended)
}

// No password is ever kept.
func TestFileFormat(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Save(server, SessionOf(client.Login{Login: apiclient.Login{AccessToken: "a"}, Cookies: []string{"c=1"}})))
	raw, err := os.ReadFile(s.Path())
	require.NoError(t, err)
	var f map[string]any
	require.NoError(t, json.Unmarshal(raw, &f))
	require.ElementsMatch(t, []string{"server", "sessions"}, keys(f))
	require.ElementsMatch(t, []string{"accessToken", "expiresAt", "cookies", "username", "tenant"},
		keys(f["sessions"].(map[string]any)[server].(map[string]any)))
}

func keys(m map[string]any) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}
