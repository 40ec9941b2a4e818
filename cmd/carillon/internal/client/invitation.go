package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Invitation offers an account a role in a tenant. Username is empty of those
// for the own account, Tenant of those that the tenant has sent.
type Invitation struct {
	ID        string    `json:"id"`
	Username  string    `json:"username"`
	Tenant    Ref       `json:"tenant"`
	Role      string    `json:"role"`
	InvitedBy string    `json:"invitedBy"`
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Invite invites an account of another tenant.
func (c *Client) Invite(ctx context.Context, username, role string) (d Doc[Invitation], err error) {
	body := map[string]string{"username": username, "role": role}
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/invitations", body: body}, &d)
	return d, err
}

// Invitations lists the tenant's open ones.
func (c *Client) Invitations(ctx context.Context) ([]Doc[Invitation], error) {
	return c.invitations(ctx, "/invitations")
}

// MyInvitations lists those for the own account.
func (c *Client) MyInvitations(ctx context.Context) ([]Doc[Invitation], error) {
	return c.invitations(ctx, "/me/invitations")
}

func (c *Client) invitations(ctx context.Context, path string) ([]Doc[Invitation], error) {
	return all(0, url.Values{}, func(q url.Values) (p Page[Invitation], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: path, query: q}, &p)
		return p, err
	})
}

// TakeInvitationBack ends one of the tenant's.
func (c *Client) TakeInvitationBack(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: "/invitations/" + url.PathEscape(id)}, nil)
	return err
}

// AnswerInvitation accepts or declines one for the own account.
func (c *Client) AnswerInvitation(ctx context.Context, id string, accept bool) error {
	answer := "/decline"
	if accept {
		answer = "/accept"
	}
	_, err := c.do(ctx, request{method: http.MethodPost, path: "/me/invitations/" + url.PathEscape(id) + answer}, nil)
	return err
}
