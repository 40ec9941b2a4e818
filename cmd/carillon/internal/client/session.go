package client

import (
	"context"
	"net/http"
	"time"
)

// Login is a session's begin or renewal.
type Login struct {
	AccessToken string    `json:"accessToken"`
	ExpiresAt   time.Time `json:"expiresAt"`
	User        User      `json:"user"`
	Tenant      Ref       `json:"tenant"`

	// Cookies carry the refresh token: name=value pairs for the next renewal.
	Cookies []string `json:"-"`
}

// User is who logged in.
type User struct {
	ID                 string `json:"id"`
	Username           string `json:"username"`
	Role               string `json:"role"`
	PlatformAdmin      bool   `json:"platformAdmin"`
	MustChangePassword bool   `json:"mustChangePassword"`
}

// Me is who asks.
type Me struct {
	User   User   `json:"user"`
	Tenant Ref    `json:"tenant"`
	Kind   string `json:"kind"`
}

// Version is the server's.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
}

// LogIn begins a session. Tenant may be empty.
func (c *Client) LogIn(ctx context.Context, username, password, tenant string) (Login, error) {
	body := map[string]string{"username": username, "password": password}
	if tenant != "" {
		body["tenant"] = tenant
	}
	return c.session(ctx, request{method: http.MethodPost, path: "/auth/login", body: body})
}

// Refresh renews a session. The cookies can be used once.
func (c *Client) Refresh(ctx context.Context, cookies []string) (Login, error) {
	return c.session(ctx, request{method: http.MethodPost, path: "/auth/refresh", header: cookieHeader(cookies)})
}

// LogOut ends a session.
func (c *Client) LogOut(ctx context.Context, cookies []string) error {
	_, err := c.do(ctx, request{method: http.MethodPost, path: "/auth/logout", header: cookieHeader(cookies)}, nil)
	return err
}

func (c *Client) session(ctx context.Context, r request) (Login, error) {
	var l Login
	response, err := c.do(ctx, r, &l)
	if err != nil {
		return l, err
	}
	l.Cookies = pairs(response.Cookies())
	return l, nil
}

func cookieHeader(cookies []string) map[string]string {
	if len(cookies) == 0 {
		return nil
	}
	joined := cookies[0]
	for _, c := range cookies[1:] {
		joined += "; " + c
	}
	return map[string]string{"Cookie": joined}
}

// Me asks who the credentials stand for.
func (c *Client) Me(ctx context.Context) (d Doc[Me], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/me"}, &d)
	return d, err
}

// Version asks the server for its version.
func (c *Client) Version(ctx context.Context) (d Doc[Version], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/version"}, &d)
	return d, err
}

// ChangePassword changes the user's own password. It ends all sessions of the
// user; the cookies returned begin a new one.
func (c *Client) ChangePassword(ctx context.Context, current, fresh string) (cookies []string, err error) {
	response, err := c.do(ctx, request{
		method: http.MethodPost, path: "/auth/password", body: map[string]string{"current": current, "new": fresh},
	}, nil)
	if err != nil {
		return nil, err
	}
	return pairs(response.Cookies()), nil
}

// pairs drops what a browser would need of cookies, and those being deleted.
func pairs(cookies []*http.Cookie) (out []string) {
	for _, c := range cookies {
		if c.MaxAge >= 0 && c.Value != "" {
			out = append(out, c.Name+"="+c.Value)
		}
	}
	return out
}
