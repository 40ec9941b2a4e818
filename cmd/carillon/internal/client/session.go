package client

import (
	"context"
	"net/http"
	"strings"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Login is a session's begin or renewal.
type Login struct {
	apiclient.Login
	// Cookies carry the refresh token: name=value pairs for the next renewal.
	Cookies []string
}

// LogIn begins a session.
func (c *Client) LogIn(ctx context.Context, who apiclient.LoginInputBody) (Login, error) {
	d, err := c.Login(ctx, who)
	return Login{d.Value, pairs(d.Header)}, err
}

// Refresh renews a session. The cookies can be used once.
func (c *Client) Refresh(ctx context.Context, cookies []string) (Login, error) {
	d, err := c.Client.Refresh(ctx, withCookies(cookies))
	return Login{d.Value, pairs(d.Header)}, err
}

// Switch begins a session in another tenant of the user.
func (c *Client) Switch(ctx context.Context, tenant string) (Login, error) {
	d, err := c.SwitchTenant(ctx, apiclient.SwitchInputBody{Tenant: tenant})
	return Login{d.Value, pairs(d.Header)}, err
}

// LogOut ends a session.
func (c *Client) LogOut(ctx context.Context, cookies []string) error {
	_, err := c.Logout(ctx, withCookies(cookies))
	return err
}

// ChangePassword changes the user's own password. It ends all sessions of the
// user; the cookies returned begin a new one.
func (c *Client) ChangePassword(ctx context.Context, current, fresh string) (cookies []string, err error) {
	d, err := c.Client.ChangePassword(ctx, apiclient.PasswordInputBody{Current: current, New: fresh})
	return pairs(d.Header), err
}

func withCookies(cookies []string) apiclient.Edit {
	return apiclient.Header("Cookie", strings.Join(cookies, "; "))
}

// pairs drops what a browser would need of cookies, and those being deleted.
func pairs(header http.Header) (out []string) {
	for _, c := range (&http.Response{Header: header}).Cookies() {
		if c.MaxAge >= 0 && c.Value != "" {
			out = append(out, c.Name+"="+c.Value)
		}
	}
	return out
}
