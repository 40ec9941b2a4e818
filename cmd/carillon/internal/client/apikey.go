package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// APIKey lets a program act in the tenant.
type APIKey struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	Prefix        string     `json:"prefix"`
	Role          string     `json:"role"`
	CreatedAt     time.Time  `json:"createdAt"`
	CreatedBy     string     `json:"createdBy"`
	LastUsedAt    *time.Time `json:"lastUsedAt"`
	ExpiresAt     *time.Time `json:"expiresAt"`
	CallExecutors []string   `json:"callExecutors"`
	Secret        string     `json:"secret"` // of a key that was just made
}

// APIKeyRequest is what a new key is to be.
type APIKeyRequest struct {
	Name          string   `json:"name"`
	Role          string   `json:"role"`
	ExpiresAt     string   `json:"expiresAt,omitempty"`
	CallExecutors []string `json:"callExecutors,omitempty"` // empty = all
}

// CreateAPIKey makes a key; the answer has its secret.
func (c *Client) CreateAPIKey(ctx context.Context, r APIKeyRequest) (d Doc[APIKey], err error) {
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/api-keys", body: r}, &d)
	return d, err
}

// APIKeys lists the tenant's keys.
func (c *Client) APIKeys(ctx context.Context) ([]Doc[APIKey], error) {
	return all(0, url.Values{}, func(q url.Values) (p Page[APIKey], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: "/api-keys", query: q}, &p)
		return p, err
	})
}

// RevokeAPIKey ends a key.
func (c *Client) RevokeAPIKey(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: "/api-keys/" + url.PathEscape(id)}, nil)
	return err
}
