package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Denial keeps a process or a certificate of an executor out.
type Denial struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"` // instance or certificate
	Subject   string    `json:"subject"`
	Instance  string    `json:"instance"`
	Reason    string    `json:"reason"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy"`
}

// DenialRequest names an instance or a certificate's serial number.
type DenialRequest struct {
	InstanceID string `json:"instanceId,omitempty"`
	Serial     string `json:"serial,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

func denials(executor string) string { return "/executors/" + url.PathEscape(executor) + "/denials" }

// Deny keeps somebody out from now on.
func (c *Client) Deny(ctx context.Context, executor string, r DenialRequest) (d Doc[Denial], err error) {
	_, err = c.do(ctx, request{method: http.MethodPost, path: denials(executor), body: r}, &d)
	return d, err
}

// Denials lists whom an executor keeps out.
func (c *Client) Denials(ctx context.Context, executor string) ([]Doc[Denial], error) {
	var p Page[Denial]
	_, err := c.do(ctx, request{method: http.MethodGet, path: denials(executor)}, &p)
	return p.Items, err
}

// Allow takes a denial back.
func (c *Client) Allow(ctx context.Context, executor, denial string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: denials(executor) + "/" + url.PathEscape(denial)}, nil)
	return err
}
