package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// API speaks to one admin node as any client would. It is safe for concurrent
// use once Token is set.
type API struct {
	Base  string // http://host:port
	Token string // API key or access token

	client *http.Client
}

// callLimit bounds one request; long polls are shorter.
const callLimit = 60 * time.Second

// NewAPI returns a client of its own connections for the node at base.
func NewAPI(base string) *API {
	return &API{Base: base, client: &http.Client{
		Timeout:   callLimit,
		Transport: &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: 10 * time.Second},
	}}
}

// As returns a client for the same node with another identity.
func (a *API) As(token string) *API { return &API{Base: a.Base, Token: token, client: a.client} }

// StatusError is an answer that is no success.
type StatusError struct {
	Status int
	Text   string
}

func (e *StatusError) Error() string { return e.Text }

// Call sends in as JSON and reads the answer into out; both may be nil.
// headers are pairs of name and value.
func (a *API) Call(ctx context.Context, method, path string, in, out any, headers ...string) error {
	raw, err := a.do(ctx, method, path, in, headers)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(raw, out)
}

func (a *API) do(ctx context.Context, method, path string, in any, headers []string) ([]byte, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.Base+path, body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.Token != "" {
		req.Header.Set("Authorization", "Bearer "+a.Token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 300 {
		return nil, &StatusError{res.StatusCode, fmt.Sprintf("%s %s: %s: %s", method, path, res.Status, raw)}
	}
	return raw, nil
}

// Ready waits until the node serves, a minute at most.
func (a *API) Ready(ctx context.Context) error {
	return Until(ctx, time.Minute, a.Base+" ready", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return a.Call(ctx, http.MethodGet, "/readyz", nil, nil)
	})
}

// SignIn signs in with a password and makes an API key of the role "admin",
// which does not expire during a run; the client has it afterwards. The tenant
// may have as many jobs, fires and calls as it likes: quotas are not what is
// measured.
func (a *API) SignIn(ctx context.Context, user, password, tenant string) error {
	var session struct {
		AccessToken string
		Tenant      struct{ ID string }
	}
	in := map[string]string{"username": user, "password": password}
	if tenant != "" {
		in["tenant"] = tenant
	}
	if err := a.Call(ctx, http.MethodPost, "/api/v1/auth/login", in, &session); err != nil {
		return err
	}
	a.Token = session.AccessToken
	if err := a.liftQuotas(ctx, session.Tenant.ID); err != nil {
		return err
	}
	var key struct{ Secret string }
	if err := a.Call(ctx, http.MethodPost, "/api/v1/api-keys", map[string]string{"name": "lab", "role": "admin"}, &key); err != nil {
		return err
	}
	a.Token = key.Secret
	return nil
}

func (a *API) liftQuotas(ctx context.Context, tenant string) error {
	type quota struct {
		Kind  string `json:"kind"`
		Limit int64  `json:"limit"`
	}
	body := map[string][]quota{"items": {{Kind: "jobs"}, {Kind: "fires_per_minute"}, {Kind: "api_calls_per_second"}}}
	err := a.Call(ctx, http.MethodPut, "/api/v1/tenants/"+tenant+"/quotas", body, nil)
	var refused *StatusError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil // a version that has none
	}
	return err
}

// CreateExecutor makes an executor and a join token for it.
func (a *API) CreateExecutor(ctx context.Context, name string) (id, joinToken string, err error) {
	var made struct{ ID string }
	if err := a.Call(ctx, http.MethodPost, "/api/v1/executors", map[string]string{"name": name}, &made); err != nil {
		return "", "", err
	}
	var token struct{ Secret string }
	err = a.Call(ctx, http.MethodPost, "/api/v1/executors/"+made.ID+"/join-tokens", map[string]string{"name": "lab"}, &token)
	return made.ID, token.Secret, err
}

// CreateJob makes a job and returns its id.
func (a *API) CreateJob(ctx context.Context, job map[string]any) (string, error) {
	var made struct{ ID string }
	err := a.Call(ctx, http.MethodPost, "/api/v1/jobs", job, &made)
	return made.ID, err
}

// Online waits until exactly n instances of the executor are there, for limit
// at most.
func (a *API) Online(ctx context.Context, executorID string, n int, limit time.Duration) error {
	return Until(ctx, limit, fmt.Sprintf("%d instances online", n), func(ctx context.Context) error {
		var e struct{ InstancesOnline int }
		if err := a.Call(ctx, http.MethodGet, "/api/v1/executors/"+executorID, nil, &e); err != nil {
			return err
		}
		if e.InstancesOnline != n {
			return fmt.Errorf("%d are", e.InstancesOnline)
		}
		return nil
	})
}

// Metrics reads the node's metrics by name; those with labels are summed.
func (a *API) Metrics(ctx context.Context) (map[string]float64, error) {
	out := map[string]float64{}
	return out, a.eachMetric(ctx, func(name, _ string, value float64) { out[name] += value })
}

// MetricBy reads one metric by the value of one of its labels.
func (a *API) MetricBy(ctx context.Context, metric, label string) (map[string]float64, error) {
	out := map[string]float64{}
	return out, a.eachMetric(ctx, func(name, labels string, value float64) {
		_, rest, ok := strings.Cut(labels, label+`="`)
		if of, _, end := strings.Cut(rest, `"`); ok && end && name == metric {
			out[of] += value
		}
	})
}

// eachMetric calls seen for each series, with what stands between its braces.
func (a *API) eachMetric(ctx context.Context, seen func(name, labels string, value float64)) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	raw, err := a.do(ctx, http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		labels := ""
		name, rest, ok := strings.Cut(lines.Text(), " ")
		if at := strings.LastIndexByte(lines.Text(), '}'); at > 0 {
			name, labels, _ = strings.Cut(lines.Text()[:at], "{")
			rest, ok = strings.TrimSpace(lines.Text()[at+1:]), true
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
		if !ok || err != nil || strings.HasPrefix(name, "#") {
			continue
		}
		seen(name, labels, value)
	}
	return lines.Err()
}

// Date returns the node's own clock as its answers tell it, to the second.
func (a *API) Date(ctx context.Context) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Base+"/healthz", nil)
	if err != nil {
		return time.Time{}, err
	}
	res, err := a.client.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	defer res.Body.Close()
	return http.ParseTime(res.Header.Get("Date"))
}

// Until tries every 50 ms until try succeeds, for limit at most; the error
// then says what was waited for, and the last failure.
func Until(ctx context.Context, limit time.Duration, what string, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s: %w", what, limit, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
