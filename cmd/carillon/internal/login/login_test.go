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

// named is the context of the tests.
const named = "test"

// putSession makes the context with a session.
func putSession(t *testing.T, s *Store, session Session) {
	t.Helper()
	require.NoError(t, s.Put(named, Context{Server: server, Session: &session}))
}

func TestStoreIsPrivate(t *testing.T) {
	s := newStore(t)
	_, ok, err := s.Find(named)
	require.NoError(t, err)
	require.False(t, ok)

	putSession(t, s, Session{AccessToken: "a", Username: "u"})
	require.NoError(t, s.Put("other", Context{Server: "http://other.test"}))

	found, ok, err := s.Find(named)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "a", found.Session.AccessToken)

	entries, err := os.ReadDir(filepath.Dir(s.Path()))
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), e.Name())
	}
}

func TestContexts(t *testing.T) {
	s := newStore(t)
	current := func() string {
		_, name, err := s.Contexts()
		require.NoError(t, err)
		return name
	}
	nameOf := func(server string) string {
		name, err := s.NameOf(server)
		require.NoError(t, err)
		return name
	}
	require.NoError(t, s.Put("b", Context{Server: server}))
	require.Equal(t, "b", current(), "the first one")
	require.NoError(t, s.Put("a", Context{Server: server, Session: &Session{AccessToken: "of a"}}))
	require.NoError(t, s.Put("c", Context{Server: "http://other.test"}))
	require.Equal(t, "b", current())
	require.Equal(t, "b", nameOf(server), "the current one is nearer than the first")
	require.NoError(t, s.Use("c"))
	require.Equal(t, "a", nameOf(server))
	require.Empty(t, nameOf("http://nobody.test"))

	require.NoError(t, s.Rename("c", "d"))
	require.Equal(t, "d", current())
	require.NoError(t, s.Remove("d"))
	require.Empty(t, current())

	require.NoError(t, s.Save("a", nil))
	found, ok, err := s.Find("a")
	require.NoError(t, err)
	require.True(t, ok, "who logs out keeps the name of the server")
	require.Equal(t, Context{Server: server}, found)
	require.NoError(t, s.Save("nobody", &Session{}))
	_, ok, err = s.Find("nobody")
	require.NoError(t, err)
	require.False(t, ok, "a renewal does not bring back what was removed meanwhile")
}

func TestDamagedFile(t *testing.T) {
	s := newStore(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(s.Path()), 0o700))
	require.NoError(t, os.WriteFile(s.Path(), []byte("{"), 0o600))
	_, _, err := s.Find(named)
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
	putSession(t, NewStore(path), Session{AccessToken: "t0", ExpiresAt: time.Now(), Cookies: []string{"c=0"}})
	r := &rotating{}
	var group sync.WaitGroup
	got := make([]string, 20)
	errs := make([]error, 20)
	for i := range got {
		group.Go(func() {
			got[i], errs[i] = NewStoredSession(NewStore(path), named, server, r).Token(context.Background())
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
	session := NewStoredSession(s, named, server, r)

	_, err := session.Token(ctx)
	missing, ok := errors.AsType[*NotLoggedInError](err)
	require.True(t, ok)
	require.False(t, missing.Ended)

	// A token that is good for long is used as it is.
	putSession(t, s, Session{AccessToken: "t0", ExpiresAt: time.Now().Add(time.Hour), Cookies: []string{"c=0"}})
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
	kept, _, err := s.Find(named)
	require.NoError(t, err)
	require.Equal(t, []string{"c=2"}, kept.Session.Cookies)

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
	putSession(t, s, *SessionOf(client.Login{Login: apiclient.Login{AccessToken: "a"}, Cookies: []string{"c=1"}}))
	raw, err := os.ReadFile(s.Path())
	require.NoError(t, err)
	var f map[string]any
	require.NoError(t, json.Unmarshal(raw, &f))
	require.ElementsMatch(t, []string{"current", "contexts"}, keys(f))
	kept := f["contexts"].(map[string]any)[named].(map[string]any)
	require.ElementsMatch(t, []string{"server", "session"}, keys(kept))
	require.ElementsMatch(t, []string{"accessToken", "expiresAt", "cookies", "username", "tenant"}, keys(kept["session"].(map[string]any)))
}

func keys(m map[string]any) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}
