package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Explanation is why a run did or did not start.
type Explanation struct {
	Run       *Run              `json:"run"`
	Summary   Bilingual         `json:"summary"`
	Party     string            `json:"party"`
	Steps     []ExplanationStep `json:"steps"`
	Instances []InstanceVerdict `json:"instances"`
}

// ExplanationStep is one thing that happened to a run.
type ExplanationStep struct {
	At   time.Time `json:"at"`
	Code string    `json:"code"`
	Text Bilingual `json:"text"`
}

// InstanceVerdict is an instance with why it was chosen or not.
type InstanceVerdict struct {
	Instance Ref       `json:"instance"`
	Verdict  string    `json:"verdict"`
	Text     Bilingual `json:"text"`
}

// ExplainRun asks why a run did or did not start.
func (c *Client) ExplainRun(ctx context.Context, id string) (d Doc[Explanation], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: "/runs/" + url.PathEscape(id) + "/explain"}, &d)
	return d, err
}

// ExplainFire asks the same of a job's fire time.
func (c *Client) ExplainFire(ctx context.Context, job, at string) (d Doc[Explanation], err error) {
	_, err = c.do(ctx, request{
		method: http.MethodGet, path: "/jobs/" + url.PathEscape(job) + "/explain", query: url.Values{"at": {at}},
	}, &d)
	return d, err
}
