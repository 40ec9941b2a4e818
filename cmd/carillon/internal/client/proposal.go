package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Proposal is what an application's code wants a job to become.
type Proposal struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Executor   Ref       `json:"executor"`
	Job        *Ref      `json:"job"` // nil: there is none yet
	State      string    `json:"state"`
	Hash       string    `json:"hash"`
	Version    string    `json:"version"`
	ProposedAt time.Time `json:"proposedAt"`
	Changes    []Change  `json:"changes"`
}

// Change is one setting that differs.
type Change struct {
	Field string          `json:"field"`
	From  json.RawMessage `json:"from"`
	To    json.RawMessage `json:"to"`
}

// Proposals lists what waits for a decision.
func (c *Client) Proposals(ctx context.Context) ([]Doc[Proposal], error) {
	return all(0, url.Values{}, func(q url.Values) (p Page[Proposal], err error) {
		_, err = c.do(ctx, request{method: http.MethodGet, path: "/job-proposals", query: q}, &p)
		return p, err
	})
}

// AcceptProposal makes the job what was proposed under the hash.
func (c *Client) AcceptProposal(ctx context.Context, id, hash string) (d Doc[Job], err error) {
	_, err = c.do(ctx, request{
		method: http.MethodPost, path: "/job-proposals/" + url.PathEscape(id) + "/accept", body: map[string]string{"hash": hash},
	}, &d)
	return d, err
}

// DeclineProposal leaves the job as it is.
func (c *Client) DeclineProposal(ctx context.Context, id, hash string) error {
	_, err := c.do(ctx, request{
		method: http.MethodPost, path: "/job-proposals/" + url.PathEscape(id) + "/decline", body: map[string]string{"hash": hash},
	}, nil)
	return err
}

// JobDeclaration compares a job with what code declares of it.
type JobDeclaration struct {
	Hash     string     `json:"hash"`
	Version  string     `json:"version"`
	EditedAt *time.Time `json:"editedAt"` // in the console; nil: it was not
	EditedBy string     `json:"editedBy"`
	GiveBack bool       `json:"giveBack"`
	Changes  []Change   `json:"changes"`
}

// Declaration returns what code declares of a job.
func (c *Client) Declaration(ctx context.Context, job string) (d JobDeclaration, err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/jobs/" + url.PathEscape(job) + "/declaration"}, &d)
	return d, err
}

// GiveBack makes the job what code declares under the hash.
func (c *Client) GiveBack(ctx context.Context, job, hash string) (d Doc[Job], err error) {
	_, err = c.do(ctx, request{
		method: http.MethodPost, path: "/jobs/" + url.PathEscape(job) + "/give-back", body: map[string]string{"hash": hash},
	}, &d)
	return d, err
}
