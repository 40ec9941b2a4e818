package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Executor is a group of processes. Handlers is a number in lists and a
// catalogue in details, so it is read from the raw answer where needed.
type Executor struct {
	ID              string    `json:"id"`
	Name            string    `json:"name"`
	Description     string    `json:"description"`
	InstancesOnline int       `json:"instancesOnline"`
	InstancesTotal  int       `json:"instancesTotal"`
	CreatedAt       time.Time `json:"createdAt"`
}

// Handler is one entry of an executor's catalogue.
type Handler struct {
	Name            string    `json:"name"`
	Description     string    `json:"description"`
	Idempotent      bool      `json:"idempotent"`
	Weight          int       `json:"weight"` // slots that a run takes; 0: a server that does not say
	InstancesOnline int       `json:"instancesOnline"`
	LastSeenAt      time.Time `json:"lastSeenAt"`
	// Versions are builds of the application that have it, the newest first.
	Versions []HandlerVersion `json:"versions"`
}

// HandlerVersion is one build of the application that has a handler.
type HandlerVersion struct {
	Version         string `json:"version"`
	InForce         bool   `json:"inForce"`
	InstancesOnline int    `json:"instancesOnline"`
}

// ExecutorDetail is one executor with its catalogue.
type ExecutorDetail struct {
	Executor
	Handlers            []Handler            `json:"handlers"`
	RefusedDeclarations []RefusedDeclaration `json:"refusedDeclarations"`
}

// RefusedDeclaration is a job that the application declares and that was not taken.
type RefusedDeclaration struct {
	Job       string `json:"job"`
	Code      string `json:"code"`
	Message   string `json:"message"`
	Version   string `json:"version"`
	RefusedAt string `json:"refusedAt"`
}

// ExecutorSummary is one row of the list.
type ExecutorSummary struct {
	Executor
	Handlers int `json:"handlers"`
}

// Instance is one process.
type Instance struct {
	ID              string            `json:"id"`
	Name            string            `json:"name"`
	Host            string            `json:"host"`
	PID             int               `json:"pid"`
	Version         string            `json:"version"`
	SDKVersion      string            `json:"sdkVersion"`
	Slots           int               `json:"slots"`
	Running         int               `json:"running"`
	State           string            `json:"state"`
	StartedAt       time.Time         `json:"startedAt"`
	LastHeartbeatAt time.Time         `json:"lastHeartbeatAt"`
	Labels          map[string]string `json:"labels"`
	Handlers        []string          `json:"handlers"`
}

// JoinToken lets processes register. Secret is set only in the answer to its creation.
type JoinToken struct {
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Prefix      string     `json:"prefix"`
	CreatedAt   time.Time  `json:"createdAt"`
	CreatedBy   string     `json:"createdBy"`
	ExpiresAt   *time.Time `json:"expiresAt"`
	MaxUses     *int       `json:"maxUses"`
	Uses        int        `json:"uses"`
	Secret      string     `json:"secret"`
	DeclareJobs bool       `json:"declareJobs"`
}

// Executors lists executors whose name contains query.
func (c *Client) Executors(ctx context.Context, query string, limit int) ([]Doc[ExecutorSummary], error) {
	q := url.Values{}
	set(q, "q", query)
	return all(limit, q, func(q url.Values) (p Page[ExecutorSummary], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: "/executors", query: q}, &p)
		return p, err
	})
}

// Executor gets one executor.
func (c *Client) Executor(ctx context.Context, id string) (d Doc[ExecutorDetail], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/executors/" + url.PathEscape(id)}, &d)
	return d, err
}

// CreateExecutor makes an executor.
func (c *Client) CreateExecutor(ctx context.Context, name, description string) (d Doc[Executor], err error) {
	body := map[string]string{"name": name, "description": description}
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/executors", body: body}, &d)
	return d, err
}

// Limit bounds how many runs of a tenant or an executor go on at once.
type Limit struct {
	Kind       string `json:"kind"`
	Subject    Ref    `json:"subject"`
	MaxRunning int    `json:"maxRunning"` // 0 = none
	Running    int    `json:"running"`
	Waiting    int    `json:"waiting"`
}

// Limits lists the limits of the tenant and its executors.
func (c *Client) Limits(ctx context.Context) ([]Doc[Limit], error) {
	return all(0, url.Values{}, func(q url.Values) (p Page[Limit], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: "/limits", query: q}, &p)
		return p, err
	})
}

// SetExecutorLimit sets an executor's limit; 0 takes it away.
func (c *Client) SetExecutorLimit(ctx context.Context, executor string, maxRunning int) (d Doc[Limit], err error) {
	_, err = c.do(ctx, request{method: http.MethodPut, path: "/executors/" + url.PathEscape(executor) + "/limit", body: map[string]int{"maxRunning": maxRunning}}, &d)
	return d, err
}

// SetTenantLimit sets a tenant's limit; only platform administrators may.
func (c *Client) SetTenantLimit(ctx context.Context, tenant string, maxRunning int) (d Doc[Limit], err error) {
	_, err = c.do(ctx, request{method: http.MethodPut, path: "/tenants/" + url.PathEscape(tenant) + "/limit", body: map[string]int{"maxRunning": maxRunning}}, &d)
	return d, err
}

// Quota is how much a tenant may have of a kind, and has.
type Quota struct {
	Kind    string `json:"kind"`
	Limit   int64  `json:"limit"` // 0 = none, -1 = the default
	Used    int64  `json:"used"`
	Default bool   `json:"default"`
}

// Quotas lists those of a tenant; empty = one's own.
func (c *Client) Quotas(ctx context.Context, tenant string) ([]Doc[Quota], error) {
	path := "/quotas"
	if tenant != "" {
		path = "/tenants/" + url.PathEscape(tenant) + path
	}
	var p Page[Quota]
	_, err := c.do(ctx, request{method: http.MethodGet, path: path}, &p)
	return p.Items, err
}

// SetQuota changes one quota of a tenant; only platform administrators may.
func (c *Client) SetQuota(ctx context.Context, tenant, kind string, limit int64) ([]Doc[Quota], error) {
	body := map[string]any{"items": []map[string]any{{"kind": kind, "limit": limit}}}
	var p Page[Quota]
	_, err := c.do(ctx, request{method: http.MethodPut, path: "/tenants/" + url.PathEscape(tenant) + "/quotas", body: body}, &p)
	return p.Items, err
}

// Instances lists an executor's processes.
func (c *Client) Instances(ctx context.Context, id string, includeGone bool) ([]Doc[Instance], error) {
	q := url.Values{}
	if includeGone {
		q.Set("includeGone", "true")
	}
	var p Page[Instance]
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/executors/" + url.PathEscape(id) + "/instances", query: q}, &p)
	return p.Items, err
}

// TokenRequest describes a join token to make.
type TokenRequest struct {
	Name      string `json:"name,omitempty"`
	ExpiresAt string `json:"expiresAt,omitempty"` // RFC 3339; empty = never
	MaxUses   int    `json:"maxUses,omitempty"`   // 0 = no limit
	// DeclareJobs: applications that register with it may declare jobs; nil = yes.
	DeclareJobs *bool `json:"declareJobs,omitempty"`
}

// CreateToken makes a join token; the answer has its secret.
func (c *Client) CreateToken(ctx context.Context, executor string, r TokenRequest) (d Doc[JoinToken], err error) {
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/executors/" + url.PathEscape(executor) + "/join-tokens", body: r}, &d)
	return d, err
}

// Tokens lists the join tokens of an executor.
func (c *Client) Tokens(ctx context.Context, executor string) ([]Doc[JoinToken], error) {
	var p Page[JoinToken]
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/executors/" + url.PathEscape(executor) + "/join-tokens"}, &p)
	return p.Items, err
}

// Handlers lists an executor's catalogue, also while nothing of it runs.
func (c *Client) Handlers(ctx context.Context, id string) ([]Doc[Handler], error) {
	return all(0, url.Values{}, func(q url.Values) (p Page[Handler], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: "/executors/" + url.PathEscape(id) + "/handlers", query: q}, &p)
		return p, err
	})
}

// RevokeToken ends a join token.
func (c *Client) RevokeToken(ctx context.Context, executor, token string) error {
	_, err := c.do(ctx, request{
		method: http.MethodDelete, path: "/executors/" + url.PathEscape(executor) + "/join-tokens/" + url.PathEscape(token),
	}, nil)
	return err
}
