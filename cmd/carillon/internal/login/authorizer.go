package login

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/client"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// APIKey authorizes with a key, which is never renewed.
type APIKey string

// Token returns the key.
func (k APIKey) Token(context.Context) (string, error) { return string(k), nil }

// Renew cannot.
func (k APIKey) Renew(context.Context, string) (string, error) { return "", nil }

// Refresher renews a session at the server; client.Client does.
type Refresher interface {
	Refresh(ctx context.Context, cookies []string) (client.Login, error)
}

// NotLoggedInError says that there are no credentials for a server, or no
// usable ones any more.
type NotLoggedInError struct {
	Server string
	// Ended: there was a session, and the server does not know it any more.
	Ended bool
}

func (e *NotLoggedInError) Error() string {
	if e.Ended {
		return fmt.Sprintf("the session at %s has ended", e.Server)
	}
	return fmt.Sprintf("not logged in at %s", e.Server)
}

// renewBefore is how long before its end a token is renewed, so that it does
// not end on the way.
const renewBefore = 20 * time.Second

// renewTimeout bounds one renewal.
const renewTimeout = 30 * time.Second

// StoredSession authorizes with the stored session of a context.
type StoredSession struct {
	store           *Store
	context, server string // the server is for messages
	refresh         Refresher
	now             func() time.Time
}

// NewStoredSession uses refresh, a client of server without credentials, to renew.
func NewStoredSession(store *Store, context, server string, refresh Refresher) *StoredSession {
	return &StoredSession{store: store, context: context, server: server, refresh: refresh, now: time.Now}
}

// Token returns the stored token, or a renewed one when it is about to end.
func (s *StoredSession) Token(ctx context.Context) (string, error) {
	kept, _, err := s.store.Find(s.context)
	if err != nil {
		return "", err
	}
	session := kept.Session
	if session == nil {
		return "", &NotLoggedInError{Server: s.server}
	}
	if s.now().Before(session.ExpiresAt.Add(-renewBefore)) {
		return session.AccessToken, nil
	}
	return s.Renew(ctx, session.AccessToken)
}

// Renew exchanges the cookie for a new token. When another process has done so
// in the meantime, that one's token is returned.
func (s *StoredSession) Renew(ctx context.Context, expired string) (string, error) {
	unlock, err := s.store.lock("renew")
	if err != nil {
		return "", err
	}
	defer unlock()
	kept, _, err := s.store.Find(s.context)
	session := kept.Session
	switch {
	case err != nil:
		return "", err
	case session == nil:
		return "", &NotLoggedInError{Server: s.server}
	case session.AccessToken != expired:
		return session.AccessToken, nil
	case len(session.Cookies) == 0:
		return "", &NotLoggedInError{Server: s.server, Ended: true}
	}
	// The cookie is used up once the server has seen it: an interrupt must not
	// lose the answer.
	refreshCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout)
	defer cancel()
	fresh, err := s.refresh.Refresh(refreshCtx, session.Cookies)
	if p, refused := errors.AsType[*apiclient.Problem](err); refused && p.Status == 401 {
		return "", &NotLoggedInError{Server: s.server, Ended: true}
	}
	if err != nil {
		return "", fmt.Errorf("renew the session: %w", err)
	}
	if err := s.store.Save(s.context, SessionOf(fresh)); err != nil {
		return "", err
	}
	return fresh.AccessToken, nil
}

// SessionOf is what to keep of a login.
func SessionOf(l client.Login) *Session {
	return &Session{
		AccessToken: l.AccessToken, ExpiresAt: l.ExpiresAt, Cookies: l.Cookies,
		Username: l.User.Username, Tenant: l.Tenant.Name,
	}
}
