package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Script is what commands read of a script; Doc has the rest.
type Script struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Language    string    `json:"language"`
	Description string    `json:"description"`
	Revision    int64     `json:"revision"`
	Content     string    `json:"content"` // empty in lists
	UpdatedAt   time.Time `json:"updatedAt"`
	UpdatedBy   string    `json:"updatedBy"`
}

// ScriptRevision is one content of a script.
type ScriptRevision struct {
	Revision  int64     `json:"revision"`
	SHA256    string    `json:"sha256"`
	Note      string    `json:"note"`
	CreatedAt time.Time `json:"createdAt"`
	CreatedBy string    `json:"createdBy"`
	Content   string    `json:"content"` // empty in lists
}

// ScriptDiff is what changed between two revisions.
type ScriptDiff struct {
	Added, Removed int
	Lines          []struct{ Op, Text string }
}

// ScriptPolicy is what agents may do for a tenant.
type ScriptPolicy struct {
	Revision  int64      `json:"revision"`
	Languages []string   `json:"languages"`
	HTTP      bool       `json:"http"`
	Note      string     `json:"note"`
	CreatedAt *time.Time `json:"createdAt"`
	CreatedBy string     `json:"createdBy"`
}

// Scripts lists scripts by name.
func (c *Client) Scripts(ctx context.Context) ([]Doc[Script], error) {
	return all(0, url.Values{}, func(q url.Values) (p Page[Script], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: "/scripts", query: q}, &p)
		return p, err
	})
}

// Script gets one script by id, with its newest content.
func (c *Client) Script(ctx context.Context, id string) (d Doc[Script], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/scripts/" + url.PathEscape(id)}, &d)
	return d, err
}

// CreateScript makes a script with its first revision.
func (c *Client) CreateScript(ctx context.Context, name, language, content, note string) (d Doc[Script], err error) {
	body := map[string]string{"name": name, "language": language, "content": content, "note": note}
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/scripts", body: body}, &d)
	return d, err
}

// ReviseScript writes a new revision, if the script still has the old one.
func (c *Client) ReviseScript(ctx context.Context, id string, revision int64, content, note string) (d Doc[Script], err error) {
	body := map[string]string{"content": content, "note": note}
	_, err = c.do(ctx, request{method: http.MethodPut, path: "/scripts/" + url.PathEscape(id), body: body, header: ifVersion(revision)}, &d)
	return d, err
}

// RestoreScript makes an old revision's content the newest.
func (c *Client) RestoreScript(ctx context.Context, id string, revision int64, note string) (d Doc[Script], err error) {
	body := map[string]any{"revision": revision, "note": note}
	_, err = c.do(ctx, request{method: http.MethodPost, path: "/scripts/" + url.PathEscape(id) + "/restore", body: body}, &d)
	return d, err
}

// DeleteScript removes a script that no job uses.
func (c *Client) DeleteScript(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: "/scripts/" + url.PathEscape(id)}, nil)
	return err
}

// ScriptRevisions lists the newest revisions first.
func (c *Client) ScriptRevisions(ctx context.Context, id string) ([]Doc[ScriptRevision], error) {
	return all(0, url.Values{}, func(q url.Values) (p Page[ScriptRevision], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: "/scripts/" + url.PathEscape(id) + "/revisions", query: q}, &p)
		return p, err
	})
}

// ScriptRevision gets one revision with its content.
func (c *Client) ScriptRevision(ctx context.Context, id string, revision int64) (r ScriptRevision, err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/scripts/" + url.PathEscape(id) + "/revisions/" + strconv.FormatInt(revision, 10)}, &r)
	return r, err
}

// DiffScript compares two revisions.
func (c *Client) DiffScript(ctx context.Context, id string, from, to int64) (d ScriptDiff, err error) {
	q := url.Values{"from": {strconv.FormatInt(from, 10)}, "to": {strconv.FormatInt(to, 10)}}
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/scripts/" + url.PathEscape(id) + "/diff", query: q}, &d)
	return d, err
}

// ScriptPolicy gets what agents may do.
func (c *Client) ScriptPolicy(ctx context.Context) (d Doc[ScriptPolicy], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/script-policy"}, &d)
	return d, err
}

// SetScriptPolicy says what agents may do.
func (c *Client) SetScriptPolicy(ctx context.Context, languages []string, calls bool, note string) (d Doc[ScriptPolicy], err error) {
	body := map[string]any{"languages": languages, "http": calls, "note": note}
	_, err = c.do(ctx, request{method: http.MethodPut, path: "/script-policy", body: body}, &d)
	return d, err
}

// ScriptKey gets the public key that signs scripts, base64.
func (c *Client) ScriptKey(ctx context.Context) (string, error) {
	var key struct{ PublicKey string }
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/script-key"}, &key)
	return key.PublicKey, err
}
